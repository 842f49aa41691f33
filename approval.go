package ringi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ringiflow/ringi/workflow"
)

// openApproval asks people: every text and the subject are computed now, so
// that all of them see, and vote on, the same thing.
func (t *turn) openApproval(step *workflow.Step, scope string) {
	a, where, err := t.approval(step, t.envIn(scope))
	if err != nil {
		t.expressionIncident(step, scope, "approval."+where, err)
		return
	}
	if raw, err := json.Marshal(a); err == nil {
		if why, ok := t.fits(raw); !ok {
			t.stepIncident(IncidentLimit, step, scope, "the approval of step "+step.ID+" is too large: "+why)
			return
		}
	}
	t.emit(ApprovalOpened{Step: step.ID, Scope: scope, Approval: a})
	t.setTimer(step.ID, a.ExpiresAt, false)
}

// approval evaluates the texts of an approval; where names the key that failed.
func (t *turn) approval(step *workflow.Step, env *workflow.Env) (a Approval, where string, err error) {
	d := step.Approval
	a = Approval{Risk: d.Risk, OnReject: d.OnReject, ExpiresAt: t.cmd.At.Add(d.ExpireAfter)}
	texts := []struct {
		name string
		from *workflow.Value
		to   *string
	}{{"title", d.Title, &a.Title}, {"summary", d.Summary, &a.Summary}, {"consequence", d.Consequence, &a.Consequence}}
	for _, x := range texts {
		if *x.to, err = t.textOf(x.from, env); err != nil {
			return a, x.name, err
		}
	}
	a.Subject = json.RawMessage("{}")
	if d.Subject != nil {
		if a.Subject, err = t.ev.Value(d.Subject, env); err != nil {
			return a, "subject", err
		}
	}
	if a.Digest, err = workflow.Digest(a.Subject); err != nil {
		return a, "subject", err
	}
	if a.Show, err = t.shown(d.Show, env); err != nil {
		return a, "show", err
	}
	if a.Separation, err = t.textsOf(d.Separation, env); err != nil {
		return a, "separation", err
	}
	for _, l := range d.Ask {
		from, err := t.textsOf(l.From, env)
		if err != nil {
			return a, "ask", err
		}
		a.Lanes = append(a.Lanes, Lane{Name: l.Name, From: from, Quorum: l.Quorum})
	}
	return a, "", nil
}

func (t *turn) textOf(v *workflow.Value, env *workflow.Env) (string, error) {
	if v == nil {
		return "", nil
	}
	raw, err := t.ev.Value(v, env)
	return text(raw), err
}

func (t *turn) textsOf(vs []*workflow.Value, env *workflow.Env) ([]string, error) {
	var out []string
	for _, v := range vs {
		s, err := t.textOf(v, env)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

func (t *turn) shown(rows []workflow.Show, env *workflow.Env) ([]Shown, error) {
	var out []Shown
	for _, r := range rows {
		s := Shown{Label: r.Label}
		var err error
		if r.Value != nil {
			s.Value, err = t.ev.Value(r.Value, env)
		}
		if r.Table != nil && err == nil {
			s.Table, err = t.ev.Value(r.Table, env)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.Label, err)
		}
		out = append(out, s)
	}
	return out, nil
}

// decideApproval is the one place where a vote is judged, whatever way it
// came. The instant decides: after the expiry a vote is refused whether or
// not the timer has fired.
func (t *turn) decideApproval(d DecideApproval) (Answer, error) {
	st := t.s.step(d.Step)
	if st == nil || st.Approval == nil {
		return Answer{}, refuse(CodeNotFound, fmt.Sprintf("run %s asks no approval in step %q", t.s.Run, d.Step), "see `ringi approvals`")
	}
	a := st.Approval
	if st.Outcome != Open {
		return t.voteOnClosed(st, d)
	}
	if !t.cmd.At.Before(a.ExpiresAt) {
		return Answer{}, expired(a)
	}
	lanes, err := t.right(a)
	if err != nil {
		return Answer{}, err
	}
	if d.Digest != a.Digest {
		return Answer{}, refuse(CodeVersionChanged, "what you saw is not what is asked: the subject's digest is "+a.Digest, "read the approval again and decide on that")
	}
	if v := voteOf(a, t.cmd.Actor.ID); v != nil {
		if v.Approve == d.Approve {
			return Answer{Outcome: Repeated, By: v.Person}, nil
		}
		return Answer{}, refuse(CodeAlreadyDecided, "you have decided otherwise already", "withdraw that decision first")
	}
	t.emit(DecisionRecorded{
		Step: st.ID, Person: t.cmd.Actor.ID, Approve: d.Approve, Lanes: lanes,
		Groups: t.cmd.Actor.Groups, Digest: d.Digest, Comment: clip(d.Comment),
	})
	t.countVotes(st)
	return Answer{Outcome: Accepted}, nil
}

func expired(a *Approval) error {
	return refuse(CodeAlreadyDecided, "the approval expired at "+a.ExpiresAt.Format(time.RFC3339), "it can no longer be decided")
}

// voteOnClosed answers a click that came after the decision: the same vote of
// the same person is a repeat, anything else hears who decided.
func (t *turn) voteOnClosed(st *Step, d DecideApproval) (Answer, error) {
	if v := voteOf(st.Approval, t.cmd.Actor.ID); v != nil && v.Approve == d.Approve && d.Digest == st.Approval.Digest {
		return Answer{Outcome: Repeated, By: v.Person}, nil
	}
	return Answer{}, t.alreadyDecided(st.ID)
}

func (t *turn) alreadyDecided(step string) error {
	st := t.s.step(step)
	if st == nil || st.Approval == nil {
		return refuse(CodeNotFound, fmt.Sprintf("run %s asks no approval in step %q", t.s.Run, step), "see `ringi approvals`")
	}
	var who []string
	for _, v := range st.Approval.Votes {
		who = append(who, v.Person)
	}
	message := fmt.Sprintf("the approval %s is closed: %s", step, st.Outcome)
	if len(who) > 0 {
		message += " (votes of " + strings.Join(who, ", ") + ")"
	}
	return refuse(CodeAlreadyDecided, message, "nothing more is needed from you")
}

// right returns the lanes that the actor may vote in at this very moment.
func (t *turn) right(a *Approval) ([]int, error) {
	actor := t.cmd.Actor
	switch {
	case actor.Kind != Person:
		return nil, refuse(CodeForbidden, "only people decide approvals; "+actor.ID+" is a "+string(actor.Kind), "sign in as a person")
	case actor.ID == t.s.Requester:
		return nil, refuse(CodeForbidden, actor.ID+" asked for this and may not decide it", "ask somebody else")
	case slices.ContainsFunc(a.Separation, func(from string) bool { return matches(actor, from) }):
		return nil, refuse(CodeForbidden, actor.ID+" may not decide this: separation of duties", "ask somebody else")
	}
	var lanes []int
	for i, l := range a.Lanes {
		if slices.ContainsFunc(l.From, func(from string) bool { return matches(actor, from) }) {
			lanes = append(lanes, i)
		}
	}
	if len(lanes) == 0 {
		return nil, refuse(CodeForbidden, actor.ID+" is not among the approvers", "ask one of "+approvers(a))
	}
	return lanes, nil
}

// MayDecide reports whether the actor may vote on the approval now.
func MayDecide(requester string, a Approval, actor Actor) bool {
	t := &turn{s: &State{Requester: requester}, cmd: Command{Actor: actor}}
	_, err := t.right(&a)
	return err == nil && voteOf(&a, actor.ID) == nil
}

func matches(a Actor, from string) bool {
	if g, ok := strings.CutPrefix(from, "group:"); ok {
		return a.In(g)
	}
	u, ok := strings.CutPrefix(from, "user:")
	return ok && u == a.ID
}

func approvers(a *Approval) string {
	var all []string
	for _, l := range a.Lanes {
		all = append(all, l.From...)
	}
	return strings.Join(all, ", ")
}

func voteOf(a *Approval, person string) *Vote {
	for i := range a.Votes {
		if a.Votes[i].Person == person {
			return &a.Votes[i]
		}
	}
	return nil
}

// countVotes closes the approval at the first rejection, or when every lane
// has its quorum of distinct people, each of whom counts in one lane only.
func (t *turn) countVotes(st *Step) {
	step := t.def.Step(st.ID)
	for _, v := range st.Approval.Votes {
		if !v.Approve {
			t.approvalRejected(step, st, Rejected, Cause{Code: codeRejected, Message: v.Person + " rejected " + st.ID})
			return
		}
	}
	if !QuorumReached(st.Approval.Lanes, st.Approval.Votes) {
		return
	}
	t.emit(StepEnded{Step: st.ID, Scope: st.Scope, Outcome: Succeeded, Output: decided(st.Approval, "approve")})
	t.next(step, st.Scope)
}

func (t *turn) approvalExpired(step *workflow.Step, st *Step) {
	t.approvalRejected(step, st, Expired, Cause{Code: codeExpired, Message: "nobody decided " + st.ID + " in time"})
}

// approvalRejected fails the step, unless the definition looks at the answer
// itself: forgetting to look must never let a run go on.
func (t *turn) approvalRejected(step *workflow.Step, st *Step, outcome Outcome, cause Cause) {
	if st.Approval.OnReject == "continue" {
		t.emit(StepEnded{Step: st.ID, Scope: st.Scope, Outcome: outcome, Output: decided(st.Approval, "reject")})
		t.next(step, st.Scope)
		return
	}
	t.stepFailed(step, st.Scope, outcome, cause)
}

// decided is the output of an approval: {decision, decided_by}.
func decided(a *Approval, decision string) json.RawMessage {
	by := []string{}
	for _, v := range a.Votes {
		by = append(by, v.Person)
	}
	raw, err := json.Marshal(struct {
		Decision  string   `json:"decision"`
		DecidedBy []string `json:"decided_by"`
	}{decision, by})
	if err != nil {
		return json.RawMessage("null") // strings always marshal
	}
	return raw
}

func (t *turn) withdrawDecision(w WithdrawDecision) (Answer, error) {
	st := t.s.step(w.Step)
	if st == nil || st.Approval == nil || st.Outcome != Open {
		return Answer{}, t.alreadyDecided(w.Step)
	}
	if t.cmd.Actor.Kind != Person {
		return Answer{}, refuse(CodeForbidden, "only people decide approvals", "sign in as a person")
	}
	if !t.cmd.At.Before(st.Approval.ExpiresAt) {
		return Answer{}, expired(st.Approval)
	}
	if voteOf(st.Approval, t.cmd.Actor.ID) == nil {
		return Answer{Outcome: Repeated}, nil
	}
	t.emit(DecisionWithdrawn{Step: st.ID, Person: t.cmd.Actor.ID, Reason: clip(w.Reason)})
	return Answer{Outcome: Accepted}, nil
}

// QuorumReached reports whether the approving votes fill every lane when each
// person counts in one lane only. It looks for a matching of seats to people,
// since somebody who may vote in two lanes must be able to fill either.
func QuorumReached(lanes []Lane, votes []Vote) bool {
	seat := map[int]int{} // vote → lane
	for lane, l := range lanes {
		for range l.Quorum {
			if !takeSeat(lane, votes, seat, map[int]bool{}) {
				return false
			}
		}
	}
	return true
}

func takeSeat(lane int, votes []Vote, seat map[int]int, tried map[int]bool) bool {
	for i, v := range votes {
		if tried[i] || !v.Approve || !slices.Contains(v.Lanes, lane) {
			continue
		}
		tried[i] = true
		held, taken := seat[i]
		if !taken || takeSeat(held, votes, seat, tried) {
			seat[i] = lane
			return true
		}
	}
	return false
}
