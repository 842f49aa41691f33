package sim

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/sim/promise"
	"github.com/ringiflow/ringi/sim/story"
	"github.com/ringiflow/ringi/workflow"
)

// rules is the signature of ringi.Decide.
type rules = func(*workflow.Definition, *ringi.State, ringi.Command, ringi.Evaluator) (ringi.Decision, error)

// decide stands between a node and the rules: every command is decided twice
// and must come out alike, on a state that nobody changes by it, and which is
// what the log adds up to at that event.
func (x *watch) decide(n *node) rules {
	decide := x.w.options.Rules
	if decide == nil {
		decide = ringi.Decide
	}
	return func(def *workflow.Definition, s *ringi.State, cmd ringi.Command, ev ringi.Evaluator) (ringi.Decision, error) {
		name := ringi.ActionName(cmd.Do)
		x.w.count.commands[name]++
		before := encoded(s)
		first, err := decide(def, s, cmd, ev)
		again, errAgain := decide(def, s, cmd, ev)
		if a, b := decision(first, err), decision(again, errAgain); !bytes.Equal(a, b) {
			x.w.fail("decide_twice", "%s of run %s was decided in two ways:\n  %s\n  %s", name, short(s.Run), a, b)
		}
		if !bytes.Equal(before, encoded(s)) {
			x.w.fail("decide_changes", "deciding %s changed the state of run %s", name, short(s.Run))
		}
		x.cached(n, s, before)
		x.fires(s, cmd, first)
		x.consumes(s, first)
		if f, ok := cmd.Do.(ringi.FireTimer); ok && len(first.Events) > 0 {
			n.inVain(s, f)
		}
		if len(first.Events) > 0 {
			n.lead(cmd.Run, sha256.Sum256(encoded(ringi.Fold(s, first.Events...))))
		}
		if cmd.Actor.Kind == ringi.System && x.w.tracer.on {
			x.w.tell("node %s asks%s %s: %s%s", n.name, ofRun(cmd.Run), story.Order(cmd.Do), first.Answer.Outcome, errorText(err))
		}
		x.w.trace("decide ", name, " ", string(cmd.Run), " ", string(first.Answer.Outcome), string(ringi.ErrorCode(err)))
		return first, err
	}
}

// fires holds a firing that counts to the timer that stands: the same one, of
// the same generation. The log does not show of which it was.
func (x *watch) fires(s *ringi.State, cmd ringi.Command, d ringi.Decision) {
	f, ok := cmd.Do.(ringi.FireTimer)
	if !ok || len(d.Events) == 0 {
		return
	}
	for _, tm := range s.Timers {
		if tm.ID == f.Timer && tm.Generation == f.Generation {
			return
		}
	}
	x.w.fail("timer", "a firing of %s of generation %d counts for run %s, which has no such timer", f.Timer, f.Generation, short(s.Run))
}

// consumes holds an event that a run takes to a wait that is open for it: in the
// decision, for what comes behind it may not live to be written.
func (x *watch) consumes(s *ringi.State, d ringi.Decision) {
	for _, e := range d.Events {
		f, ok := e.Fact.(ringi.EventReceived)
		if !ok {
			continue
		}
		if st := promise.StepOf(s, f.Step); st == nil || st.Wait == nil || st.Outcome != ringi.Open {
			x.w.fail("event_twice", "event %s is given to %s of run %s, which does not wait for any", f.ID, f.Step, short(s.Run))
		}
	}
}

// lead notes a state that a decision led to.
func (n *node) lead(run ringi.RunID, sum [32]byte) {
	const most = 64 // of the last batches
	if n.led[run] == nil || len(n.led[run]) >= most {
		n.led[run] = map[[32]byte]bool{}
	}
	n.led[run][sum] = true
}

func encoded(s *ringi.State) []byte {
	raw, err := ringi.EncodeState(s)
	if err != nil {
		return []byte(err.Error())
	}
	return raw
}

// decision writes a decision down, byte for byte.
func decision(d ringi.Decision, err error) []byte {
	events, _ := ringi.EncodeEvents(d.Events)
	raw, _ := json.Marshal(struct {
		Events json.RawMessage
		Needs  []ringi.Need
		Answer ringi.Answer
		Repair *ringi.Start
		Err    string
	}{events, d.Needs, d.Answer, d.Repair, errorText(err)})
	return raw
}

// cached compares a state in the memory of a node with the log. A state inside
// a batch, and one of a history that a restore has ended, are in no log.
func (x *watch) cached(n *node, s *ringi.State, raw []byte) {
	sh := x.of(s.Tenant, s.Run)
	if sh == nil || sh.rewound || s.Seq == 0 {
		return
	}
	have := sha256.Sum256(raw)
	if n.led[s.Run][have] {
		return // what an earlier command of a batch led to; nobody has proved it
	}
	if sum, ok := sh.sums[s.Seq]; ok && sum != have && s.Seq <= sh.state.Seq {
		x.w.fail("cache", "%s holds run %s at event %d in a state that its log does not add up to", n.name, short(s.Run), s.Seq)
	}
}
