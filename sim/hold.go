package sim

import (
	"bytes"
	"context"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/sim/promise"
	"github.com/ringiflow/ringi/store"
	"github.com/ringiflow/ringi/workflow"
)

// mayHandOut holds a hand-out to the one before it, and to what keeps a task
// from being handed out.
func (x *watch) mayHandOut(sh *shadow, row ringi.TaskRow, token int64, at time.Time) {
	run := short(sh.key.Run)
	if sh.rewound {
		return
	}
	last := sh.tokens[promise.Call(row.Step, row.Direction)]
	if last != 0 && ringi.TokenSeq(last) == ringi.TokenSeq(token) && !x.lapsed[sweptName{sh.key, last}] {
		x.w.fail("lease", "%s of run %s is handed out under token %s, and was not given back under %s", row.Step, run, promise.TokenText(token), promise.TokenText(last))
	}
	again := ringi.TokenSeq(last) == ringi.TokenSeq(token) // what was given back is ready at once, by whatever clock
	if l := sh.Calls[promise.Call(row.Step, row.Direction)]; l != nil && !again && at.Before(l.Ready) {
		x.w.fail("retry", "%s of run %s is handed out at %s, and waits until %s", row.Step, run, at, l.Ready)
	}
	if row.Direction != ringi.Forward {
		return
	}
	for _, i := range sh.state.Incidents {
		if i.Kind == ringi.IncidentTwoEffects && i.Step == row.Step {
			x.w.fail("two_effects", "%s of run %s is handed out, and a person is asked whether its effect stands already", row.Step, run)
		}
	}
	if st := promise.StepOf(sh.state, row.Step); st != nil && sh.state.Unwind != nil && !promise.Afterwards(st.Scope) {
		x.w.fail("forward", "%s of run %s is handed out although the run is being undone", row.Step, run)
	}
}

// given holds a task that a node gives away to what the store holds: the token
// stands there, and the task says what the log says.
func (x *watch) given(n *node, tasks []ringi.Task) {
	for _, task := range tasks {
		sh := x.of(task.Tenant, task.Run)
		if sh == nil || sh.rewound || x.w.db.restores > 0 {
			continue
		}
		if last := sh.tokens[promise.Call(task.Step, task.Direction)]; last < task.Token {
			x.w.fail("given", "node %s gives %s of run %s away under token %s, and the store knows only %s", n.name, task.Step, short(task.Run), promise.TokenText(task.Token), promise.TokenText(last))
		}
		asks := sh.Asks[ringi.TokenSeq(task.Token)]
		switch {
		case asks == nil:
			x.w.fail("given", "node %s gives %s of run %s away under token %s, which no event stands behind", n.name, task.Step, short(task.Run), promise.TokenText(task.Token))
		case asks.Key != task.Key || asks.Activity != task.Activity || asks.Attempt != task.Attempt || asks.Effect != task.Effect || !bytes.Equal(asks.Input, task.Input):
			x.w.fail("given", "node %s gives %s of run %s away as %s, attempt %d, key %s, input %s; the log has %s, attempt %d, key %s, input %s", n.name, task.Step, short(task.Run),
				task.Activity, task.Attempt, task.Key, task.Input, asks.Activity, asks.Attempt, asks.Key, asks.Input)
		case task.Begin != promise.MustBegin(asks.Effect):
			x.w.fail("begin", "node %s gives %s of run %s away, whose contract is %s, and that it must ask for permission is %v", n.name, task.Step, short(task.Run), asks.Effect, task.Begin)
		}
	}
}

// beaten holds the extension of a lease to the latest token.
func (x *watch) beaten(b store.Beat) {
	sh := x.runs[b.Key]
	if sh == nil || sh.rewound {
		return
	}
	if last := sh.tokens[promise.Call(b.Step, b.Direction)]; last != b.Token {
		x.w.fail("token", "a heartbeat under token %s extends the lease of %s of run %s, and the latest is %s", promise.TokenText(b.Token), b.Step, short(b.Key.Run), promise.TokenText(last))
	}
}

// gaveBack holds what a settlement took back to what may be: a hand-over that
// nobody confirmed, and whose lease is over or whose task went to nobody.
func (x *watch) gaveBack(s store.Settlement, before []store.DueTask) {
	after := x.w.db.leases()
	find := func(list []store.DueTask, l store.Lapse) *store.DueTask {
		for i := range list {
			if list[i].Key == l.Key && list[i].Row.Lane == l.Lane && list[i].Token == l.Token && list[i].Leased {
				return &list[i]
			}
		}
		return nil
	}
	now := x.w.db.clock.now()
	for _, l := range s.Lapses {
		was := find(before, l)
		if was == nil || find(after, l) != nil {
			continue // nothing came of it
		}
		x.lapsed[sweptName{l.Key, l.Token}] = true
		switch {
		case was.Confirmed, was.Row.Begun != 0, was.Row.Awaited:
			x.w.fail("hand_over", "%s of run %s is given back under token %s, and its worker has confirmed it", was.Row.Step, short(l.Key.Run), promise.TokenText(l.Token))
		case was.LeaseEnd.After(now.Add(tolerance)) && x.w.now.Sub(x.w.db.jumped) > time.Minute && x.inHand(l.Key.Run, l.Token):
			x.w.fail("hand_over", "%s of run %s is given back under token %s at %s, a worker has it, and its lease ends at %s", was.Row.Step, short(l.Key.Run), promise.TokenText(l.Token), now, was.LeaseEnd)
		}
	}
}

// withdrawn holds a call that is taken back to that nobody is making it: what a
// worker may have under way is awaited.
func (t *transition) withdrawn(f ringi.ActivityWithdrawn) {
	for _, l := range t.leases {
		if l.Key != t.sh.key || l.Row.Step != f.Step || l.Row.Direction != ringi.Forward || !l.Leased {
			continue
		}
		for _, c := range promise.Calls(t.sh.state, f.Step, ringi.Forward) {
			if c.Seq == ringi.TokenSeq(l.Token) && (c.Begun != 0 || c.Effect == string(workflow.Idempotent)) {
				t.fail("lease", "%s is taken back while a worker holds it under token %s and may be making the call", f.Step, promise.TokenText(l.Token))
			}
		}
	}
}

// inHand reports whether a living worker has a task.
func (x *watch) inHand(run ringi.RunID, token int64) bool {
	for _, h := range x.w.hands {
		for _, j := range h.jobs {
			if h.up && j.Task.Run == run && j.Task.Token == token {
				return true
			}
		}
	}
	return false
}

// A storedEvent is an event that the store has taken, and until when a wait may
// still open and find it.
type storedEvent struct {
	ringi.SentEvent
	tenant ringi.Tenant
	keep   time.Time
}

// early holds a wait that has just opened to the events that came before it:
// what was sent and is kept is found.
func (x *watch) early(sh *shadow, w *store.Write) {
	for _, c := range w.Waits {
		if c.Row == nil {
			continue
		}
		for _, e := range x.events {
			if e.tenant != w.Key.Tenant || e.Name != c.Row.Event || e.Key != c.Row.Key || e.ID == sh.state.EventID || !c.Row.OpenedAt.Before(e.keep) {
				continue
			}
			if !x.paired(w.Key, c.Step, e.Name, e.Key) {
				x.w.fail("event", "%s of run %s waits for %s of %s, which came before as %s and is kept until %s, and is not found", c.Step, short(w.Key.Run), e.Name, e.Key, e.ID, e.keep)
			}
			break
		}
	}
}

func (x *watch) paired(key store.Key, step, name, of string) bool {
	pairs, err := x.w.db.Pairs(context.Background(), store.PairQuery{Tenant: key.Tenant, Name: name, Key: of, Limit: 1 << 10})
	if err != nil {
		x.w.fail("store", "pairs cannot be read: %v", err)
	}
	for _, p := range pairs {
		if p.Key == key && p.Step == step {
			return true
		}
	}
	return false
}

// outdated are the pairs of an event and a wait when an event is due to be
// removed, or nil when none is.
func (x *watch) outdated(now time.Time) []store.Pair {
	for _, e := range x.events {
		if !e.keep.After(now) {
			pairs, err := x.w.db.Pairs(context.Background(), store.PairQuery{Limit: 1 << 10})
			if err != nil {
				x.w.fail("store", "pairs cannot be read: %v", err)
			}
			return pairs
		}
	}
	return nil
}

// removed holds the removal of events to those that nobody waits for.
func (x *watch) removed(now time.Time, before []store.Pair) {
	kept := x.events[:0]
	for _, e := range x.events {
		if e.keep.After(now) {
			kept = append(kept, e)
		}
	}
	x.events = kept
	for _, p := range before {
		if !x.paired(p.Key, p.Step, p.Event.Name, p.Event.Key) {
			x.w.fail("event", "event %s is removed, and %s of run %s waits for it", p.Event.ID, p.Step, short(p.Key.Run))
		}
	}
}
