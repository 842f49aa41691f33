package promise

import (
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/workflow"
)

// A Ledger is what the log says of one call of a step: how often it was tried,
// until when, and how its last attempt ended. Together with the books of undos
// and doubts it is kept from the events alone, beside the state that the rules
// fold for themselves: a rule that folds wrongly agrees with itself, and not
// with these.
type Ledger struct {
	asks    ringi.ActivityScheduled // what a worker is told, with the attempt that stands
	tries   int                     // since the budget was fresh
	since   time.Time               // when that was
	put     time.Time               // when the attempt that stands was put into its queue
	Ready   time.Time               // before, it is not handed out
	total   time.Time               // no try begins after that; zero: no limit
	first   time.Time               // the first failure since the budget was fresh
	failed  bool                    // the attempt failed or was given up
	final   bool                    // and trying again is pointless
	applied ringi.Applied           // and what is known of its effect
	wish    time.Duration           // for how long its service wants to be left alone
	asked   int                     // answers that told nothing, of a probe
}

// An UndoBook is a place in the order of undoing.
type UndoBook struct {
	step    string
	open    bool
	undone  bool // by a call or by a person's word
	called  bool // it was begun since somebody ordered it last
	edition int
}

// Books are the ledgers of a run. They are not for concurrent use.
type Books struct {
	Calls   map[string]*Ledger                 // by Call
	Asks    map[int64]*ringi.ActivityScheduled // by the event that the tokens come from
	Permits map[int64]bool                     // tokens that were permitted to begin
	Undos   []*UndoBook                        // in the order of completion of what they undo
	Doubt   map[string]bool                    // steps that may have had an effect which nothing has settled
	Two     map[string]bool                    // steps about which a person was asked whether two effects stand
	Late    map[string]bool                    // steps whose late effect was found
	Votes   map[string]map[string]bool         // by step and person: whether their vote that stands is a yes
	paused  time.Time
}

// NewBooks returns the books of a run of which nothing is known yet.
func NewBooks() Books {
	return Books{
		Calls: map[string]*Ledger{}, Asks: map[int64]*ringi.ActivityScheduled{}, Permits: map[int64]bool{},
		Doubt: map[string]bool{}, Two: map[string]bool{}, Late: map[string]bool{}, Votes: map[string]map[string]bool{},
	}
}

// Undo is the place of a step in the order of undoing, or nil.
func (b *Books) Undo(step string) *UndoBook {
	for _, u := range b.Undos {
		if u.step == step {
			return u
		}
	}
	return nil
}

// Note enters one event. s is the state before it, asked only for which
// incident is meant.
func (b *Books) Note(s *ringi.State, e ringi.Event) {
	switch f := e.Fact.(type) {
	case ringi.ActivityScheduled:
		b.scheduled(e, f)
	case ringi.ActivityRetried:
		b.retried(e, f)
	case ringi.ActivityStarted:
		b.Permits[f.Token] = true
	case ringi.ActivitySucceeded:
		b.succeeded(f)
	case ringi.ActivityFailed:
		settles := !f.Failure.Retryable && f.Failure.Applied == ringi.AppliedNo
		b.ended(e.At, f.CallRef, !f.Failure.Retryable, f.Failure.Applied, settles)
		if l := b.Calls[Call(f.Step, f.Direction)]; l != nil {
			l.wish = time.Duration(f.Failure.RetryAfterMS) * time.Millisecond
		}
	case ringi.ActivityTimedOut:
		b.ended(e.At, f.CallRef, f.Why == ringi.ExpiryQueue || f.Why == ringi.ExpiryTotal, f.Applied, false)
	case ringi.ProbeAnswered:
		b.probed(f)
	case ringi.OutcomeUnknown:
		b.Doubt[f.Step] = f.Assume != ringi.AppliedNo
	case ringi.ActivityWithdrawn:
		b.Doubt[f.Step] = b.Doubt[f.Step] || f.Applied == ringi.AppliedUnknown
	case ringi.StepEnded:
		if f.Outcome == ringi.Succeeded { // by a person's word, too: then its effect is one that the run counts on
			b.Doubt[f.Step] = false
			delete(b.Late, f.Step)
		}
	case ringi.StepReopened:
		delete(b.Late, f.Step)
		if u := b.Undo(f.Step); u != nil && u.undone {
			b.Doubt[f.Step] = false
		}
	case ringi.LateEffectFound:
		b.Doubt[f.Step], b.Late[f.Step] = true, true
	case ringi.IncidentOpened:
		b.Two[f.Incident.Step] = b.Two[f.Incident.Step] || f.Incident.Kind == ringi.IncidentTwoEffects
	default:
		b.noteOrders(s, e)
	}
}

// noteOrders enters what people order, and what becomes of undos by it.
func (b *Books) noteOrders(s *ringi.State, e ringi.Event) {
	switch f := e.Fact.(type) {
	case ringi.UndoRegistered:
		for i, u := range b.Undos {
			if u.step == f.Step {
				b.Undos = append(b.Undos[:i:i], b.Undos[i+1:]...)
				break
			}
		}
		b.Undos = append(b.Undos, &UndoBook{step: f.Step, open: true, edition: f.Edition})
	case ringi.UndoReplaced:
		if u := b.Undo(f.Step); u != nil {
			u.edition++
		}
	case ringi.UndoSettled:
		if u := b.Undo(f.Step); u != nil {
			u.open, u.undone = false, f.Undone
		}
	case ringi.IncidentResolved:
		i := Incident(s, f.ID)
		if i == nil {
			return
		}
		if u := b.Undo(i.Step); u != nil && i.Direction == ringi.Undo && f.How != ringi.ResolveWithdrawn {
			u.called = false
		}
		if i.Direction != ringi.Undo && i.Kind != ringi.IncidentTwoEffects && i.Step != "" && f.How == ringi.ResolveNotDone {
			b.Doubt[i.Step] = false
		}
	case ringi.ApprovalOpened:
		b.Votes[f.Step] = map[string]bool{}
	case ringi.DecisionRecorded:
		if votes := b.Votes[f.Step]; votes != nil {
			votes[f.Person] = f.Approve
		}
	case ringi.DecisionWithdrawn:
		delete(b.Votes[f.Step], f.Person)
	case ringi.RunPaused:
		b.paused = e.At
	case ringi.RunResumed:
		b.resumed(e.At)
	}
}

func (b *Books) scheduled(e ringi.Event, f ringi.ActivityScheduled) {
	l := &Ledger{asks: f, tries: 1, since: e.At, put: e.At, Ready: e.At}
	if f.TotalAt != nil {
		l.total = *f.TotalAt
	}
	b.Calls[Call(f.Step, f.Direction)] = l
	b.Asks[e.Seq] = &f
	if u := b.Undo(f.Step); u != nil && f.Direction == ringi.Undo {
		u.called = true
	}
}

func (b *Books) retried(e ringi.Event, f ringi.ActivityRetried) {
	l := b.Calls[Call(f.Step, f.Direction)]
	if l == nil {
		return
	}
	l.tries++
	if f.Fresh {
		l.tries, l.since, l.total, l.first = 1, e.At, time.Time{}, time.Time{}
	}
	l.asks.Attempt = f.Attempt
	asks := l.asks
	b.Asks[e.Seq] = &asks
	l.put, l.Ready, l.failed, l.final, l.wish = e.At, f.ReadyAt, false, false, 0
}

func (b *Books) succeeded(f ringi.ActivitySucceeded) {
	switch f.Direction {
	case ringi.Forward:
		b.Doubt[f.Step] = f.Problem != ""
	case ringi.Undo:
		if u := b.Undo(f.Step); u != nil {
			u.open, u.undone = false, true
		}
	}
}

// ended enters the end of an attempt without a result. settles says that the
// service spoke for all attempts under the key, if it honours one.
func (b *Books) ended(at time.Time, ref ringi.CallRef, final bool, applied ringi.Applied, settles bool) {
	l := b.Calls[Call(ref.Step, ref.Direction)]
	if l == nil {
		return
	}
	l.failed, l.final, l.applied = true, final, applied
	if l.first.IsZero() {
		l.first = at
	}
	switch {
	case ref.Direction == ringi.Probe:
		l.asked++
	case ref.Direction == ringi.Undo:
	case applied == ringi.AppliedUnknown:
		b.Doubt[ref.Step] = true
	case settles && l.asks.Effect == string(workflow.Idempotent):
		b.Doubt[ref.Step] = false
	}
}

func (b *Books) probed(f ringi.ProbeAnswered) {
	switch f.Applied {
	case ringi.AppliedYes:
		b.Doubt[f.Step] = f.Problem != ""
	case ringi.AppliedNo:
		b.Doubt[f.Step] = false
		if l := b.Calls[Call(f.Step, ringi.Forward)]; l != nil {
			l.applied = ringi.AppliedNo
		}
	default:
		if l := b.Calls[Call(f.Step, ringi.Probe)]; l != nil {
			l.failed, l.asked = true, l.asked+1
		}
	}
}

// resumed moves what a pause must not eat, by the pause or by what passed of it.
func (b *Books) resumed(at time.Time) {
	for _, l := range b.Calls {
		for _, x := range []struct {
			limit *time.Time
			from  time.Time
		}{{&l.total, l.since}, {&l.Ready, l.put}, {&l.first, l.first}} {
			if !x.limit.IsZero() {
				*x.limit = x.limit.Add(at.Sub(Later(b.paused, x.from)))
			}
		}
	}
	b.paused = time.Time{}
}
