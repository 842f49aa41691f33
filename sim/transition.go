package sim

import (
	"slices"
	"strings"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/sim/fault"
	"github.com/ringiflow/ringi/sim/promise"
	"github.com/ringiflow/ringi/store"
	"github.com/ringiflow/ringi/workflow"
)

// A transition is one row of a log on its way into a shadow. Its checks are
// written against the promises of the design, from the events alone; they call
// none of the rules that made the events.
type transition struct {
	x      *watch
	sh     *shadow
	events []ringi.Event
	leases []store.DueTask // as they stood before, when an attempt is given up or a call taken back
	by     *tap            // whose commit it is; nil when nobody knows
	status ringi.Status

	promise.Turn
}

func (t *transition) fail(what, format string, args ...any) {
	t.x.w.fail(what, "run "+short(t.sh.key.Run)+": "+format, args...)
}

// has reports whether the transition holds such a fact.
func (t *transition) has(is func(ringi.Fact) bool) bool {
	return slices.ContainsFunc(t.events, func(e ringi.Event) bool { return is(e.Fact) })
}

// ordered reports whether a person resolved an incident in this transition.
func (t *transition) ordered(how ...ringi.Resolution) bool {
	return t.has(func(f ringi.Fact) bool {
		r, ok := f.(ringi.IncidentResolved)
		return ok && slices.Contains(how, r.How)
	})
}

func (t *transition) begin() {
	x, sh := t.x, t.sh
	t.status = sh.state.Status()
	t.Turn = promise.Turn{
		Books: &sh.Books, Events: t.events, Rewound: sh.rewound,
		Tokens: sh.tokens, Keys: sh.keys, Fail: t.fail, Jumped: x.w.now.Sub(x.w.db.jumped) < time.Minute,
		Said: func(ref ringi.CallRef) (ringi.Failure, bool) {
			f, ok := x.said[reportName{sh.key.Run, ref, "failed"}]
			return f, ok
		},
		Reached: func(token int64) (node string, there time.Duration, known bool) {
			if t.by == nil {
				return "", 0, false
			}
			return t.by.node.name, t.by.swept[sweptName{sh.key, token}], true
		},
	}
}

// end looks at the whole transition.
func (t *transition) end() {
	was, is := t.status, t.sh.state.Status()
	if was.Final() && was != is {
		t.fail("final", "it was %s and is %s", was, is)
	}
	t.State, t.Def = t.sh.state, t.x.w.definition(t.sh.state)
	t.End()
}

// check looks at one event, before it is folded.
func (t *transition) check(i int, e ringi.Event) {
	s := t.sh.state
	switch {
	case e.Seq != s.Seq+1:
		t.fail("sequence", "event %d follows %d", e.Seq, s.Seq)
	case e.At.Before(s.At):
		t.fail("time", "event %d was at %s, the one before at %s", e.Seq, e.At, s.At)
	case s.End != nil:
		t.fail("closed_log", "event %d was written behind the end", e.Seq)
	}
	t.State, t.Def = s, t.x.w.definition(s)
	t.Check(e)
	switch f := e.Fact.(type) {
	case ringi.ActivityScheduled:
		t.scheduled(f)
	case ringi.ActivityRetried:
		t.retried(f)
	case ringi.ActivityStarted:
		if s.Paused != nil {
			t.fail("paused", "%s was permitted to begin while it is paused", f.Step)
		}
	case ringi.ActivitySucceeded:
		t.settled(f.CallRef, true)
		t.worded(f)
	case ringi.ActivityFailed:
		t.settled(f.CallRef, false) // a worker without a function for it says so before it begins
	case ringi.ProbeAnswered:
		t.settled(f.CallRef, true)
		t.told(f)
	case ringi.ActivityTimedOut:
		t.timedOut(e.At, f)
	case ringi.ActivityWithdrawn:
		t.withdrawn(f)
	case ringi.TimerFired:
		t.fired(e.At, f)
	case ringi.EventReceived:
		t.received(f)
	case ringi.UndoRegistered:
		if st := promise.StepOf(s, f.Step); st != nil && st.Effect == string(workflow.Idempotent) && t.sh.denied[f.Step] && !t.sh.ordered[f.Step] {
			t.fail("settled", "%s is to be undone although its service said a definite no", f.Step)
		}
	case ringi.IncidentOpened:
		t.undoGivenUp(e.At, f.Incident)
	case ringi.UnwindStarted:
		t.unwound()
	}
	t.remember(e)
	t.x.w.tempting(t.sh.key.Run, e.Fact)
}

// remember keeps what later checks need.
func (t *transition) remember(e ringi.Event) {
	sh := t.sh
	sh.Note(sh.state, e)
	switch f := e.Fact.(type) {
	case ringi.MessageEmitted:
		sh.sent = append(sh.sent, f.ID)
	case ringi.EventReceived:
		sh.given[f.ID+"/"+f.Step] = true
	case ringi.ActivitySucceeded:
		sh.taken[f.Token] = "succeeded"
	case ringi.ActivityFailed:
		sh.taken[f.Token] = "failed"
		if f.Direction == ringi.Forward {
			sh.denied[f.Step] = !f.Failure.Retryable && f.Failure.Applied == ringi.AppliedNo
		}
	case ringi.ActivityRetried:
		if f.Direction == ringi.Forward {
			delete(sh.denied, f.Step)
		}
	case ringi.LateEffectFound:
		delete(sh.denied, f.Step)
	case ringi.ProbeAnswered:
		sh.taken[f.Token] = "succeeded"
	case ringi.OutcomeUnknown:
		if f.Assume == ringi.AppliedNo {
			sh.excused[f.Step] = true
		}
	case ringi.IncidentResolved:
		if i := promise.Incident(sh.state, f.ID); i != nil && f.How != ringi.ResolveWithdrawn && i.Step != "" {
			sh.ordered[i.Step] = true
		}
	}
}

// scheduled holds a new call to one key for ever, and to the order of undoing.
func (t *transition) scheduled(f ringi.ActivityScheduled) {
	s, edition := t.sh.state, 0
	u := promise.UndoOf(s, f.Step)
	if f.Direction == ringi.Undo && u != nil {
		edition = u.Edition
	}
	name := promise.Call(f.Step, f.Direction) + "/" + promise.Itoa(int64(edition))
	if was, ok := t.sh.keys[name]; ok && was != f.Key {
		t.fail("key", "%s%s was called with key %q, and now with %q", f.Step, promise.DirectionText(f.Direction), was, f.Key)
	}
	for other, key := range t.sh.keys {
		if other != name && key == f.Key {
			t.fail("key", "%s and %s are called with the same key %q", name, other, key)
		}
	}
	t.sh.keys[name] = f.Key
	if f.Direction == ringi.Undo && u != nil && u.Key != f.Key {
		t.fail("key", "the undo of %s is called with key %q, and was registered with %q", f.Step, f.Key, u.Key)
	}
	switch {
	case f.Direction == ringi.Undo:
		t.undoing(f, u)
	case f.Direction == ringi.Forward && s.Unwind != nil && !promise.Afterwards(f.Scope):
		t.fail("forward", "%s is begun although the run is being undone", f.Step)
	}
	for _, c := range promise.Calls(s, f.Step, f.Direction) {
		if !c.Idle {
			t.fail("two_calls", "%s%s is scheduled while an attempt of it is open", f.Step, promise.DirectionText(f.Direction))
		}
	}
}

// undoing holds the first call of an undo to the order: what was completed
// later must be undone before, and nothing forward of the step may be open.
func (t *transition) undoing(f ringi.ActivityScheduled, u *ringi.UndoEntry) {
	s := t.sh.state
	if u == nil {
		t.fail("undo", "%s is undone and was never registered for it", f.Step)
		return
	}
	if s.RepairOf != "" && u.Edition == 0 && !strings.HasPrefix(f.Key, string(s.RepairOf)+"/") {
		t.fail("key", "%s of the ended run %s is undone under key %q, which is not of that run", f.Step, short(s.RepairOf), f.Key)
	}
	if s.Unwind == nil && !u.Late {
		t.fail("undo", "%s is undone while the run goes forward", f.Step)
	}
	for _, c := range promise.Calls(s, f.Step, ringi.Forward) {
		if !c.Idle {
			t.fail("undo", "%s is undone while an attempt of it is open", f.Step)
		}
	}
	if s.Unwind == nil || u.Late {
		return
	}
	for _, st := range s.Steps {
		if (st.Call != nil && !st.Call.Idle || st.Probe != nil) && !promise.Afterwards(st.Scope) {
			t.fail("undo", "%s is undone while %s may still have its effect", f.Step, st.ID)
		}
		if i := promise.Incident(s, st.Incident); i != nil && i.Kind == ringi.IncidentUnknown {
			t.fail("undo", "%s is undone while nobody has said what became of %s", f.Step, st.ID)
		}
	}
}

// undoGivenUp holds the end of an undo's tries to its budget.
func (t *transition) undoGivenUp(at time.Time, i ringi.Incident) {
	u, def := promise.UndoOf(t.sh.state, i.Step), t.x.w.definition(t.sh.state)
	if i.Kind != ringi.IncidentUndo || i.Direction != ringi.Undo || u == nil || u.Call == nil || def == nil {
		return
	}
	step, c := def.Step(i.Step), u.Call
	if u.Edition > 0 || step == nil || step.Activity == nil || step.Activity.Compensate == nil || c.NoMore || u.Effect != string(workflow.Idempotent) {
		return
	}
	if budget := step.Activity.Compensate.Retry.Attempts; c.Attempt-c.Fresh < budget && at.Sub(c.ScheduledAt) < ringi.UndoWithin/2 {
		t.fail("budget", "the undo of %s is given up after %d of %d tries", i.Step, c.Attempt-c.Fresh, budget)
	}
}

// retried holds a further attempt to the contract of its step.
func (t *transition) retried(f ringi.ActivityRetried) {
	s := t.sh.state
	if f.Direction != ringi.Forward {
		return
	}
	st := promise.StepOf(s, f.Step)
	if st == nil {
		t.fail("retry", "%s is tried again and was never begun", f.Step)
		return
	}
	if s.Unwind != nil && !promise.Afterwards(st.Scope) {
		t.fail("forward", "%s is tried again although the run is being undone", f.Step)
	}
	if f.Fresh {
		return // a person ordered it
	}
	switch workflow.Effect(st.Effect) {
	case workflow.AtMostOnce:
		t.fail("at_most_once", "%s is tried again and nobody ordered it", f.Step)
	case workflow.Probeable:
		if st.Doubt {
			t.fail("probeable", "%s is tried again although nobody knows what became of the attempt before", f.Step)
		}
	}
}

// settled holds a result to the attempt under way and the largest token.
func (t *transition) settled(ref ringi.CallRef, done bool) {
	sh := t.sh
	if sh.taken[ref.Token] != "" && !sh.rewound {
		t.fail("token", "token %s of %s was answered for twice", promise.TokenText(ref.Token), ref.Step)
	}
	if last := sh.tokens[promise.Call(ref.Step, ref.Direction)]; ref.Token != last && !sh.rewound {
		t.fail("token", "a result under token %s of %s counts, and the latest is %s", promise.TokenText(ref.Token), ref.Step, promise.TokenText(last))
	}
	for _, c := range promise.Calls(sh.state, ref.Step, ref.Direction) {
		inDoubt := c.Begun == ref.Token // its own word is better than any guess
		if c.Attempt != ref.Attempt || c.Seq != ringi.TokenSeq(ref.Token) || c.Idle && !inDoubt {
			t.fail("attempt", "a result of attempt %d of %s counts, and attempt %d is under way", ref.Attempt, ref.Step, c.Attempt)
		}
		if done && promise.MustBegin(c.Effect) && c.Begun != ref.Token && !sh.rewound {
			t.fail("begin", "a result of %s counts that was never permitted to begin", ref.Step)
		}
	}
}

// timedOut holds the end of a lease to what nobody could have extended.
func (t *transition) timedOut(at time.Time, f ringi.ActivityTimedOut) {
	t.x.w.struck(fault.LeaseExpired, "%s%s of run %s: %s", f.Step, promise.DirectionText(f.Direction), short(t.sh.key.Run), f.Why)
	for _, l := range t.leases {
		if l.Key != t.sh.key || l.Row.Step != f.Step || l.Row.Direction != f.Direction {
			continue
		}
		if f.Why == ringi.ExpiryQueue || f.Why == ringi.ExpiryTotal {
			if l.Leased {
				t.fail("lease", "%s is given up as %s while a worker holds it", f.Step, f.Why)
			}
			return
		}
		if l.Token != f.Token || !l.Leased {
			t.fail("lease", "%s is given up under token %s, and the row has %s", f.Step, promise.TokenText(f.Token), promise.TokenText(l.Token))
		}
		if !l.Confirmed && l.Row.Begun == 0 && !l.Row.Awaited {
			t.fail("hand_over", "%s is given up as an attempt, and its hand-over under token %s was never confirmed", f.Step, promise.TokenText(f.Token))
		}
		// A node that slept stamps what it decided before with too early a time.
		if now := t.x.w.db.clock.now(); now.After(at) {
			at = now
		}
		if l.LeaseEnd.After(at.Add(tolerance)) {
			t.fail("lease", "%s is given up at %s, and its lease ends at %s", f.Step, at, l.LeaseEnd)
		}
		if held := t.x.w.now.Sub(t.x.extended[sweptName{l.Key, l.Token}]); f.Why == ringi.ExpiryLease && held < leaseLength(l)-tolerance {
			t.fail("lease", "%s is given up %s after its lease was extended, which is for %s", f.Step, held, leaseLength(l))
		}
		t.reach(f, l)
	}
}

// tolerance is how far a node may be off when it tells the database's time: two
// seconds are taken for no jump.
const tolerance = promise.Tolerance

// reach holds the node that gives an attempt up to the rule that it must have
// been there for the whole lease.
func (t *transition) reach(f ringi.ActivityTimedOut, l store.DueTask) {
	if t.by == nil {
		return
	}
	length := leaseLength(l)
	if there := t.by.swept[sweptName{t.sh.key, f.Token}]; there < length-tolerance {
		t.fail("outage", "%s is given up by node %s, which had reached the store for only %s, shorter than the lease of %s",
			f.Step, t.by.node.name, there, length)
	}
}

// leaseLength is how long a worker may be silent.
func leaseLength(l store.DueTask) time.Duration {
	if l.Confirmed {
		return l.Row.Heartbeat
	}
	return engineHandover
}

// fired holds a firing to the timer that stands.
func (t *transition) fired(at time.Time, f ringi.TimerFired) {
	s := t.sh.state
	if s.Paused != nil {
		t.fail("paused", "timer %s fired while it is paused", f.Timer)
	}
	for _, tm := range s.Timers {
		if tm.ID == f.Timer {
			if tm.Generation != f.Generation {
				t.fail("timer", "timer %s of generation %d fired, and generation %d stands", f.Timer, f.Generation, tm.Generation)
			}
			if at.Before(tm.FireAt) {
				t.fail("timer", "timer %s fired at %s, and is due at %s", f.Timer, at, tm.FireAt)
			}
			if st := promise.StepOf(s, tm.Step); tm.Step != "" && (st == nil || st.Outcome != ringi.Open) {
				t.fail("timer", "timer %s fired, and its step has ended", f.Timer)
			}
			return
		}
	}
	t.fail("timer", "timer %s fired and does not stand", f.Timer)
}

// received holds an event to its wait, and to once.
func (t *transition) received(f ringi.EventReceived) {
	s := t.sh.state
	if t.sh.given[f.ID+"/"+f.Step] {
		t.fail("event_twice", "event %s was given to %s twice", f.ID, f.Step)
	}
	st := promise.StepOf(s, f.Step)
	switch {
	case st == nil || st.Wait == nil || st.Outcome != ringi.Open:
		t.fail("event", "event %s was given to %s, which does not wait", f.ID, f.Step)
		return
	case f.ID == s.EventID:
		t.fail("event", "event %s was given to the run that it started", f.ID)
	}
	for _, tm := range s.Timers {
		if tm.Step == f.Step && s.Paused == nil && f.SentAt.After(tm.FireAt) {
			t.fail("event", "event %s was sent at %s and given to %s, which had timed out at %s", f.ID, f.SentAt, f.Step, tm.FireAt)
		}
	}
	sent, ok := t.x.w.sent[f.ID]
	if !ok || sent.Name != st.Wait.Event || sent.Key != st.Wait.Key {
		t.fail("event", "event %s was given to %s, which waits for %s of %s", f.ID, f.Step, st.Wait.Event, st.Wait.Key)
	}
	if keep, ok := t.x.keep[f.ID]; ok && f.SentAt.Before(st.Wait.OpenedAt) && !st.Wait.OpenedAt.Before(keep) {
		t.fail("event", "event %s was to be kept until %s, and is given to %s, which began to wait at %s", f.ID, keep, f.Step, st.Wait.OpenedAt)
	}
	if f.SentAt.Before(st.Wait.OpenedAt) {
		t.x.w.struck(fault.EventEarly, "%s for %s of run %s", f.ID, f.Step, short(t.sh.key.Run))
	}
}

// unwound holds a turn around to the pivot, and to once: it says what the run ends
// as.
func (t *transition) unwound() {
	if t.sh.state.Unwind != nil {
		t.fail("turned_twice", "it turns around and is being undone already")
	}
	if t.ordered(ringi.ResolveUndoRest) || t.sh.rewound {
		return
	}
	for _, st := range t.sh.state.Steps {
		certain := st.Outcome == ringi.Succeeded || st.Doubt
		if st.Irreversible && certain {
			t.fail("pivot", "it turns around although %s cannot be undone and had its effect", st.ID)
		}
	}
}
