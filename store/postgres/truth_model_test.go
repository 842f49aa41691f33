package postgres_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/ringiflow/ringi"
)

// A history is what callers of a cluster asked and were answered, each with the
// moments before and after. Every object has a history of its own: a start key,
// a call of a step, an approval. Safe for concurrent use.
type history struct {
	began time.Time

	mu     sync.Mutex
	starts map[string][]porcupine.Operation // by definition and key
	calls  map[string][]porcupine.Operation // by run, step and direction
	votes  map[string][]porcupine.Operation // by run and step
	seen   map[string]int                   // how often each kind of answer came
}

func newHistory() *history {
	return &history{
		began: time.Now(), seen: map[string]int{},
		starts: map[string][]porcupine.Operation{}, calls: map[string][]porcupine.Operation{}, votes: map[string][]porcupine.Operation{},
	}
}

// now is a moment of the history.
func (h *history) now() int64 { return int64(time.Since(h.began)) }

// never is when an operation returns whose outcome nobody told: what it asked
// for may happen at any time afterwards, or not at all.
const never = math.MaxInt64

// add puts an operation that began at a moment into one of the histories.
func (h *history) add(to map[string][]porcupine.Operation, object string, began int64, in, out any, answer string) {
	ended := h.now()
	if answer == unknown {
		ended = never
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen[fmt.Sprint(in)+" "+answer]++
	to[object] = append(to[object], porcupine.Operation{Input: in, Output: out, Call: began, Return: ended})
}

// The answers that are no word of ringi's.
const (
	unknown = "unknown" // no answer, or one that leaves open what happened
	created = "created"
	nothing = "nothing" // of a read
	refused = "refused" // for a reason that no model is about
)

// answerOf is the answer to a command in one word.
func answerOf(r ringi.Result) string {
	switch code := ringi.ErrorCode(r.Err); code {
	case "":
		return string(r.Answer.Outcome)
	case ringi.CodeUnavailable, ringi.CodeInternal:
		return unknown
	case ringi.CodeAlreadyDecided, ringi.CodeForbidden, ringi.CodeVersionChanged, ringi.CodeStartKeyConflict:
		return string(code)
	}
	return refused
}

// check tells of every object whose history no order of its operations
// explains.
func (h *history) check(t testing.TB) {
	t.Helper()
	for _, m := range []struct {
		what    string
		model   porcupine.Model
		objects map[string][]porcupine.Operation
	}{{"start key", startModel(), h.starts}, {"call", callModel(), h.calls}, {"approval", voteModel(), h.votes}} {
		for object, ops := range m.objects {
			if r := porcupine.CheckOperationsTimeout(m.model, ops, time.Minute); r != porcupine.Ok {
				t.Errorf("%s %s: the history is not linearizable (%s):\n%s", m.what, object, r, told(ops))
			}
		}
	}
}

// told lists operations in the order of their beginnings.
func told(ops []porcupine.Operation) string {
	ops = slices.Clone(ops)
	slices.SortFunc(ops, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	var b strings.Builder
	for _, o := range ops {
		until := "…"
		if o.Return != never {
			until = time.Duration(o.Return).Round(time.Microsecond).String()
		}
		fmt.Fprintf(&b, "  %s to %s: %v -> %v\n", time.Duration(o.Call).Round(time.Microsecond), until, o.Input, o.Output)
	}
	return b.String()
}

// startIn is a start of one definition under one key, or a read of who holds it.
type startIn struct {
	read  bool
	input string
}

func (in startIn) String() string {
	if in.read {
		return "read"
	}
	return "start"
}

// startOut is what came of it; run is the holder of the key.
type startOut struct {
	answer string
	run    ringi.RunID
}

// startState is a start key: free, or held by a run with an input.
type startState struct {
	taken bool
	run   ringi.RunID // "" while nobody has told
	input string
}

// startModel: the first start takes the key for ever; the same start again is
// answered with the same run, one with other input is refused.
func startModel() porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any { return []any{startState{}} },
		Step: func(state, input, output any) []any {
			return stepStart(state.(startState), input.(startIn), output.(startOut))
		},
	}
	return m.ToModel()
}

func stepStart(s startState, in startIn, out startOut) []any {
	held := s.taken && (s.run == out.run || s.run == "")
	known := startState{true, out.run, s.input}
	switch {
	case out.answer == unknown && !in.read && !s.taken:
		return []any{s, startState{true, "", in.input}}
	case out.answer == unknown, out.answer == refused:
		return []any{s}
	case out.answer == nothing && !s.taken:
		return []any{s}
	case in.read && held && out.answer != nothing:
		return []any{known}
	case out.answer == created && !s.taken:
		return []any{startState{true, out.run, in.input}}
	case out.answer == string(ringi.Repeated) && held && s.input == in.input:
		return []any{known}
	case out.answer == string(ringi.CodeStartKeyConflict) && s.taken && s.input != in.input:
		return []any{s}
	}
	return nil
}

// callIn is what was asked about one call of a step.
type callIn struct {
	op    string // claim, begin, or how an attempt ended
	token int64
}

func (in callIn) String() string { return in.op }

// The operations on calls besides the two ends, which are those of the log.
const (
	opClaim     = "claim"
	opBegin     = "begin"
	opSucceeded = "succeeded"
	opFailed    = "failed"
)

// callState is a call of a step as its tokens tell it.
type callState struct {
	claimed int64  // the largest token that was handed out
	floor   int64  // the smallest that may still count
	begun   int64  // the last that was permitted
	settled string // what counted, each as " token/end"
}

// callModel: tokens grow and none is given twice; a result counts once, and
// only under the largest token; a permitted attempt is not handed out again.
func callModel() porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any { return []any{callState{}} },
		Step: func(state, input, output any) []any {
			s, in, answer := state.(callState), input.(callIn), output.(string)
			next, ok := s.take(in)
			switch {
			case answer == unknown && ok:
				return []any{s, next}
			case answer == unknown, answer == refused:
				return []any{s}
			case answer == string(ringi.Accepted) && ok:
				return []any{next}
			case answer == string(ringi.Repeated) && s.holds(in):
				return []any{s}
			case answer == string(ringi.Stale) && !s.holds(in):
				return []any{s} // its lease may have ended
			}
			return nil
		},
	}
	return m.ToModel()
}

func (in callIn) settles() string { return fmt.Sprintf(" %d/%s", in.token, in.op) }

func (s callState) holds(in callIn) bool { return strings.Contains(s.settled, in.settles()) }

// take is the state behind an operation that counts; false when it may not.
func (s callState) take(in callIn) (callState, bool) {
	if in.token < s.floor {
		return s, false
	}
	const nextAttempt = 16 // bits of hand-outs
	switch in.op {
	case opClaim:
		if in.token <= s.claimed || s.begun != 0 && ringi.TokenSeq(s.begun) == ringi.TokenSeq(in.token) {
			return s, false
		}
		s.claimed, s.floor = in.token, in.token
	case opBegin:
		s.begun, s.floor = in.token, in.token
	default:
		s.settled += in.settles()
		s.floor = (ringi.TokenSeq(in.token) + 1) << nextAttempt
	}
	return s, true
}

// voteIn is a vote, its withdrawal, or a read of all votes.
type voteIn struct {
	op      string // vote, withdraw or read
	person  string
	approve bool
	right   bool // this person may vote
	same    bool // on what is asked
	asked   *ringi.ApprovalView
}

func (in voteIn) String() string { return in.op }

const (
	opVote     = "vote"
	opWithdraw = "withdraw"
	opRead     = "read"
)

// voteOut is the answer; votes is what a read saw.
type voteOut struct{ answer, votes string }

// voteState is an approval: its votes, each as "person+ " or "person- ",
// whether they closed it, and whether it was over otherwise. An approval that
// has expired is still read as open until its timer has fired.
type voteState struct {
	votes  string
	closed bool
	over   bool
}

// ended reports whether nobody may vote any more.
func (s voteState) ended() bool { return s.closed || s.over }

// voteModel: one vote a person, none after the quorum, the first rejection or
// any other end; what is read is what counted.
func voteModel() porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any { return []any{voteState{}} },
		Step: func(state, input, output any) []any {
			return stepVote(state.(voteState), input.(voteIn), output.(voteOut))
		},
	}
	return m.ToModel()
}

func stepVote(s voteState, in voteIn, out voteOut) []any {
	next, ok := s.take(in)
	switch out.answer {
	case unknown:
		if ok {
			return []any{s, next}
		}
		return []any{s}
	case refused:
		return []any{s}
	case string(ringi.Accepted):
		if ok {
			return []any{next}
		}
	case string(ringi.Repeated):
		if in.op == opVote && strings.Contains(s.votes, mark(in.person, in.approve)) || in.op == opWithdraw && !s.ended() && !s.voted(in.person) {
			return []any{s}
		}
	case string(ringi.CodeAlreadyDecided): // by votes, or by an end that is no vote: expiry, cancel
		over := s
		over.over = !s.closed
		all := []any{over}
		if !s.ended() && strings.Contains(s.votes, mark(in.person, !in.approve)) {
			all = append(all, s)
		}
		return all
	case string(ringi.CodeForbidden):
		if !s.ended() && !in.right {
			return []any{s}
		}
	case string(ringi.CodeVersionChanged):
		if !s.ended() && in.right && !in.same {
			return []any{s}
		}
	case nothing: // of a read
		if !s.closed && s.votes == out.votes {
			return []any{s}
		}
	}
	return nil
}

func mark(person string, approve bool) string {
	if approve {
		return person + "+ "
	}
	return person + "- "
}

func (s voteState) voted(person string) bool {
	return strings.Contains(s.votes, mark(person, true)) || strings.Contains(s.votes, mark(person, false))
}

// take is the state behind a vote or a withdrawal that counts.
func (s voteState) take(in voteIn) (voteState, bool) {
	if s.ended() || in.op == opRead {
		return s, false
	}
	if in.op == opWithdraw {
		with := s.votes
		for _, approve := range []bool{true, false} {
			s.votes = strings.Replace(s.votes, mark(in.person, approve), "", 1)
		}
		return s, s.votes != with
	}
	if !in.right || !in.same || s.voted(in.person) {
		return s, false
	}
	all := append(strings.SplitAfter(s.votes, " "), mark(in.person, in.approve))
	slices.Sort(all)
	s.votes = strings.Join(all, "")
	s.closed = !in.approve || quorum(in.asked, s.votes)
	return s, true
}

// quorum reports whether the approving votes fill every lane with different
// people, by trying every way to seat them.
func quorum(a *ringi.ApprovalView, votes string) bool {
	var seats [][]string
	for _, l := range a.Lanes {
		for range l.Quorum {
			seats = append(seats, l.From)
		}
	}
	var people []ringi.Actor
	for _, p := range voters() {
		if strings.Contains(votes, mark(p.ID, true)) {
			people = append(people, p)
		}
	}
	return seated(seats, people)
}

func seated(seats [][]string, people []ringi.Actor) bool {
	if len(seats) == 0 {
		return true
	}
	for i, p := range people {
		if among(p, seats[0]) && seated(seats[1:], slices.Delete(slices.Clone(people), i, i+1)) {
			return true
		}
	}
	return false
}

// among reports whether a person is named, or in a group that is.
func among(p ringi.Actor, from []string) bool {
	return slices.ContainsFunc(from, func(f string) bool {
		group, ok := strings.CutPrefix(f, "group:")
		return ok && slices.Contains(p.Groups, group) || f == "user:"+p.ID
	})
}

// mayVote is who may vote, said again without the rules' help.
func mayVote(p ringi.Actor, a *ringi.ApprovalView) bool {
	if p.Kind != ringi.Person || p.ID == a.Requester || among(p, a.Separation) {
		return false
	}
	return slices.ContainsFunc(a.Lanes, func(l ringi.Lane) bool { return among(p, l.From) })
}
