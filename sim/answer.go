package sim

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/sim/fault"
	"github.com/ringiflow/ringi/sim/promise"
	"github.com/ringiflow/ringi/sim/story"
)

// answered looks at an answer in the moment in which a node gives it: what it
// tells must be durable, and must have been so when the node made sure of it.
func (x *watch) answered(n *node, cmd ringi.Command, r ringi.Result) {
	code := ringi.ErrorCode(r.Err)
	x.w.trace("answer ", ringi.ActionName(cmd.Do), " ", string(r.Run), " ", string(r.Answer.Outcome), string(code))
	if x.w.tracer.on {
		x.w.tell("node %s answers %s, who asked%s %s: %s%s %s", n.name, cmd.Actor.ID, ofRun(r.Run), story.Order(cmd.Do), r.Answer.Outcome, code, errorText(r.Err))
	}
	_, isEvent := cmd.Do.(ringi.SendEvent)
	_, isStart := cmd.Do.(ringi.Start)
	switch {
	case code == ringi.CodeInternal, isStart && code == ringi.CodeInvalid:
		x.w.fail("refusal", "%s for run %s was answered: %v", ringi.ActionName(cmd.Do), short(r.Run), r.Err)
	case !isEvent && x.inDoubt(n, r.Run):
		x.w.fail("doubt", "%s for run %s was answered (%s%s) while nobody knows whether its commit was done", ringi.ActionName(cmd.Do), short(r.Run), r.Answer.Outcome, code)
	case isEvent, code == ringi.CodeUnavailable, code == ringi.CodeNotFound, code == ringi.CodeInvalid, code == ringi.CodeLimit:
		return
	}
	sh := x.of(ringi.DefaultTenant, r.Run)
	if sh == nil || sh.rewound {
		return // nothing to compare with
	}
	if sh.state.Seq < r.Seq {
		x.w.fail("answer", "%s for run %s was answered on event %d, and only %d are durable", ringi.ActionName(cmd.Do), short(r.Run), r.Seq, sh.state.Seq)
	}
	x.proved(n, sh, cmd, r)
	x.given(n, r.Tasks)
	if isStart {
		x.started(sh, cmd.Do.(ringi.Start), r)
		return
	}
	x.answeredCall(n, sh, cmd, r)
}

// inDoubt reports whether the answer is given by the round that has a write of
// the run in doubt.
func (x *watch) inDoubt(n *node, run ringi.RunID) bool {
	p := x.w.inside
	if p == nil || p.node != n || p.name != "committer" {
		return false
	}
	_, doubt := n.tap.doubts[run]
	return doubt
}

// submitted counts how often a report was sent.
func (x *watch) submitted(cmd ringi.Command) {
	if ref, kind := reportOf(cmd.Do); kind != "" {
		x.reports[reportName{cmd.Run, ref, kind}]++
		switch do := cmd.Do.(type) {
		case ringi.FailActivity:
			x.said[reportName{cmd.Run, ref, kind}] = do.Failure
		case ringi.CompleteActivity:
			x.outputs[reportName{cmd.Run, ref, kind}] = do.Output
		}
	}
}

// A reportName is what a worker says of one attempt.
type reportName struct {
	run  ringi.RunID
	ref  ringi.CallRef
	kind string
}

func reportOf(do ringi.Action) (ringi.CallRef, string) {
	switch a := do.(type) {
	case ringi.CompleteActivity:
		return a.CallRef, "succeeded"
	case ringi.FailActivity:
		return a.CallRef, "failed"
	}
	return ringi.CallRef{}, ""
}

// proved holds an answer to a write of the round in which it is given: one that
// wrote the events that it was decided on, or claimed that they stood.
func (x *watch) proved(n *node, sh *shadow, cmd ringi.Command, r ringi.Result) {
	p := x.w.inside
	_, isStart := cmd.Do.(ringi.Start) // one that is told of another run has it from the store itself
	if p == nil || p.node != n || p.name != "committer" || r.Seq == 0 || sh.state.End != nil || isStart && !r.Created {
		return // a run that has ended may wait for its repair
	}
	if q, ok := p.proof[r.Run]; !ok || r.Seq < q.from || r.Seq > q.to {
		x.w.fail("unproved", "%s for run %s was answered on event %d, and the round made sure of %d to %d",
			ringi.ActionName(cmd.Do), short(r.Run), r.Seq, q.from, q.to)
	}
}

// started holds the answers to starts of one key to one run.
func (x *watch) started(sh *shadow, start ringi.Start, r ringi.Result) {
	if r.Err != nil || sh.state.Key == "" {
		return
	}
	if !bytes.Equal(start.Input, sh.state.Input) {
		x.w.fail("start_key", "a start with %s is answered with run %s, which was started with %s", start.Input, short(r.Run), sh.state.Input)
	}
	name := sh.state.Definition + "/" + sh.state.Key
	if was, ok := x.keys[name]; ok && was != r.Run {
		x.w.fail("start_key", "key %s was answered with run %s, and now with %s", name, short(was), short(r.Run))
	}
	x.keys[name] = r.Run
}

// answeredCall holds answers to workers to the log.
func (x *watch) answeredCall(n *node, sh *shadow, cmd ringi.Command, r ringi.Result) {
	if r.Err != nil {
		return
	}
	if a, ok := cmd.Do.(ringi.BeginActivity); ok && r.Answer.Outcome == ringi.Accepted && !x.begun(sh, a.CallRef) {
		x.w.fail("begin", "run %s: %s was permitted to begin under %s, and the log does not say so", short(sh.key.Run), a.Step, promise.TokenText(a.Token))
	}
	if _, kind := reportOf(cmd.Do); kind != "" {
		x.reported(n, sh, cmd, r)
	}
}

// reported holds the answer to a report to what the log knows of it: a repeat
// is told to be one, and a success that comes too late is not forgotten.
func (x *watch) reported(n *node, sh *shadow, cmd ringi.Command, r ringi.Result) {
	ref, kind := reportOf(cmd.Do)
	was, taken := sh.taken[ref.Token]
	switch {
	case r.Answer.Outcome == ringi.Accepted && !taken:
		x.w.fail("report", "run %s: the report of %s under %s was accepted, and the log does not have it", short(sh.key.Run), ref.Step, promise.TokenText(ref.Token))
	case r.Answer.Outcome == ringi.Repeated && x.reports[reportName{sh.key.Run, ref, kind}] == 1:
		x.w.fail("repeat", "run %s: the report of %s under %s was sent once, and is called a repeat", short(sh.key.Run), ref.Step, promise.TokenText(ref.Token))
	case r.Answer.Outcome != ringi.Stale:
		return
	case taken && was == kind:
		x.w.fail("report", "run %s: the report of %s under %s was taken before, and its repeat is called stale", short(sh.key.Run), ref.Step, promise.TokenText(ref.Token))
	}
	x.w.struck(fault.LateResult, "of run %s", short(sh.key.Run))
	st := promise.StepOf(sh.state, ref.Step)
	if kind != "succeeded" || ref.Direction != ringi.Forward || st == nil || sh.Asks[ringi.TokenSeq(ref.Token)] == nil || sh.Asks[ringi.TokenSeq(ref.Token)].Effect == "pure" {
		return
	}
	if sh.state.End != nil {
		x.repaired(sh, st)
		x.again(n, cmd)
		return
	}
	if open := st.Outcome == ringi.Open || st.Outcome == ringi.Succeeded; open && promise.MustBegin(st.Effect) && sh.Permits[ref.Token] && ref.Attempt < st.Attempts && !sh.Two[st.ID] {
		x.w.fail("two_effects", "run %s: attempt %d of %s succeeded after it was given up, attempt %d stands, and no person is asked", short(sh.key.Run), ref.Attempt, ref.Step, st.Attempts)
	}
	if st.Outcome != ringi.Open && st.Outcome != ringi.Succeeded && !st.LateEffect && promise.UndoOf(sh.state, ref.Step) == nil {
		x.w.fail("late_effect", "run %s: %s had its effect after it was decided otherwise, and nobody will undo it", short(sh.key.Run), ref.Step)
	}
}

// again repeats a late success for a run that has ended: its log is closed, so
// that nothing in it tells the second word from the first.
func (x *watch) again(n *node, cmd ringi.Command) {
	w := x.w
	ref, kind := reportOf(cmd.Do)
	name := reportName{cmd.Run, ref, kind}
	if x.twice[name] || !w.strikes(fault.RequestRepeated, 0.7) && !(w.calm && w.shape.zombies) {
		return
	}
	x.twice[name] = true
	w.after(w.faults.Span(0, 20*time.Second), "report again at "+n.name, func() {
		if n.awake() {
			w.struck(fault.RequestRepeated, "report of run %s to %s, which had it", short(cmd.Run), n.name)
			n.do([]ringi.Command{cmd}, func([]ringi.Result) {})
		}
	})
}

// repaired holds an effect that is found after the end of its run to the run
// that undoes it, which stands before the worker is answered.
func (x *watch) repaired(sh *shadow, st *ringi.Step) {
	def := x.w.definition(sh.state)
	if def == nil || st.Outcome == ringi.Succeeded || sh.Undo(st.ID) != nil || sh.Late[st.ID] || sh.rewound {
		return
	}
	if step := def.Step(st.ID); step == nil || step.Activity == nil || step.Activity.Compensate == nil {
		return
	}
	if !x.w.undoneElsewhere(sh, st.ID) {
		x.w.fail("late_effect", "run %s has ended, %s had its effect after that, and no run undoes it", short(sh.key.Run), st.ID)
	}
}

// worded holds an output in the log to the one that the worker reported.
func (t *transition) worded(f ringi.ActivitySucceeded) {
	said, known := t.x.outputs[reportName{t.sh.key.Run, f.CallRef, "succeeded"}]
	if known && t.x.w.db.restores == 0 && !bytes.Equal(said, f.Output) {
		t.fail("report", "the worker reported %s for %s%s, and the log has %s", said, f.Step, promise.DirectionText(f.Direction), f.Output)
	}
}

// told holds the answer to a probe in the log to the one that its worker
// reported: that nobody knows is neither yes nor no.
func (t *transition) told(f ringi.ProbeAnswered) {
	said, known := t.x.outputs[reportName{t.sh.key.Run, f.CallRef, "succeeded"}]
	var answer struct {
		Applied ringi.Applied `json:"applied"`
	}
	if known && t.x.w.db.restores == 0 && (json.Unmarshal(said, &answer) != nil || answer.Applied != f.Applied) {
		t.fail("probeable", "the probe of %s answered %s, and the log takes it for %q", f.Step, said, f.Applied)
	}
}

// begun reports whether the log has the permission for a token.
func (x *watch) begun(sh *shadow, ref ringi.CallRef) bool {
	for _, c := range promise.Calls(sh.state, ref.Step, ref.Direction) {
		if c.Begun == ref.Token {
			return true
		}
	}
	return sh.taken[ref.Token] != "" || sh.state.End != nil
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
