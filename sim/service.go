package sim

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/sim/draw"
	"github.com/ringiflow/ringi/sim/fault"
	"github.com/ringiflow/ringi/sim/promise"
)

// A service is what the activities call: the outside world, which knows
// nothing of ringi but the keys that it is handed. Its books count what really
// took place; the checks hold the engine to them.
type service struct {
	w      *world
	byKey  map[string]*deed   // what took place under a key
	deeds  map[deedName]*deed // by what it was for
	serial int
}

// A deedName says what a call was for.
type deedName struct {
	run       ringi.RunID
	step      string
	direction ringi.Direction
	edition   int
}

// A deed is what took place for one call of a run.
type deed struct {
	name    deedName
	effect  string
	times   int  // effective calls by attempts that were permitted at that moment
	excused int  // effective calls by attempts that had been given up
	refused bool // the service said a definite no under this key, for ever
	undone  bool // by an undo that came after
	answer  json.RawMessage
}

func newService(w *world) *service {
	return &service{w: w, byKey: map[string]*deed{}, deeds: map[deedName]*deed{}}
}

// An outcome is what a caller gets from a service.
type outcome struct {
	output  json.RawMessage
	failure *ringi.Failure // nil: it worked
}

// call is one call that reaches the service now.
func (s *service) call(task ringi.Task) outcome {
	d := s.deed(task)
	switch task.Activity {
	case draw.ActivityLook:
		return s.look(task)
	case draw.ActivityFind:
		return s.find(task)
	case draw.ActivityPut:
		return s.put(task, d)
	case draw.ActivityUndo, draw.ActivityHand:
		return s.undo(task, d, true)
	case draw.ActivityTake:
		return s.undo(task, d, false)
	}
	return s.again(task, d)
}

// deed finds the entry of a task in the books.
func (s *service) deed(task ringi.Task) *deed {
	name := deedName{run: task.Run, step: task.Step, direction: task.Direction}
	if task.Direction == ringi.Undo {
		if sh := s.w.watch.of(task.Tenant, task.Run); sh != nil {
			if u := promise.UndoOf(sh.state, task.Step); u != nil {
				name.edition = u.Edition
			}
		}
	}
	d := s.deeds[name]
	if d == nil {
		d = &deed{name: name, effect: task.Effect}
		s.deeds[name] = d
	}
	if s.byKey[task.Key] == nil {
		s.byKey[task.Key] = d
	}
	return d
}

// permitted reports whether the attempt of a task is the one under way at this
// moment, under the largest token.
func (s *service) permitted(task ringi.Task) bool {
	sh := s.w.watch.of(task.Tenant, task.Run)
	if sh == nil || sh.tokens[promise.Call(task.Step, task.Direction)] != task.Token {
		return false
	}
	for _, c := range promise.Calls(sh.state, task.Step, task.Direction) {
		return !c.Idle && c.Seq == ringi.TokenSeq(task.Token) && (!promise.MustBegin(c.Effect) || c.Begun == task.Token)
	}
	return false
}

// takesPlace writes an effect into the books, and complains when there is one
// too many.
func (s *service) takesPlace(task ringi.Task, d *deed) {
	sh := s.w.watch.of(task.Tenant, task.Run)
	if !s.permitted(task) {
		d.excused++
		s.w.tell("the service does %s for %s, for an attempt that was given up", task.Activity, d)
		return
	}
	d.times++
	s.w.trace("effect ", string(task.Run), " ", task.Step, " ", string(task.Direction))
	s.w.tell("the service does %s for %s (time %d)", task.Activity, d, d.times)
	if sh.rewound || sh.ordered[task.Step] || sh.excused[task.Step] {
		return
	}
	if d.times > 1 {
		s.w.fail("double_effect", "%s took place %d times under the contract %s", d, d.times, task.Effect)
	}
	if d.undone {
		s.w.fail("effect_after_undo", "%s took place after it had been undone", d)
	}
}

// String names a deed as a reader knows it.
func (d *deed) String() string {
	return fmt.Sprintf("%s%s of run %s", d.name.step, promise.DirectionText(d.name.direction), short(d.name.run))
}

// look only reads.
func (s *service) look(task ringi.Task) outcome {
	switch {
	case s.w.actors.Hit(0.1):
		return declined()
	case s.w.actors.Hit(0.08):
		return flaky("")
	}
	return s.answer(task)
}

// put honours its key: it takes place once, and answers every repeat alike.
func (s *service) put(task ringi.Task, d *deed) outcome {
	switch {
	case d.times+d.excused > 0 && d.answer != nil:
		return outcome{output: d.answer}
	case d.refused || d.undone || d.times+d.excused == 0 && s.w.actors.Hit(0.1):
		d.refused = true
		return declined()
	case s.w.strikes(fault.ServiceFlaky, 0.12):
		s.w.struck(fault.ServiceFlaky, "%s refuses the connection", d)
		if s.serial%2 == 0 {
			return flaky(ringi.AppliedNo) // which is true of this attempt, and says nothing about the one before
		}
		return flaky("")
	}
	s.takesPlace(task, d)
	o := s.answer(task)
	d.answer = o.output
	if s.w.strikes(fault.ServiceFlaky, 0.1) {
		s.w.struck(fault.ServiceFlaky, "%s does not say that it took place", d)
		return flaky("")
	}
	return o
}

// again takes place each time that it is called.
func (s *service) again(task ringi.Task, d *deed) outcome {
	switch {
	case d.undone || s.w.actors.Hit(0.15):
		return declined()
	case s.w.strikes(fault.ServiceFlaky, 0.1):
		s.w.struck(fault.ServiceFlaky, "%s says that nothing took place", d)
		return flaky(ringi.AppliedNo)
	case s.w.strikes(fault.ServiceFlaky, 0.08):
		s.w.struck(fault.ServiceFlaky, "%s does not say that nothing took place", d)
		return flaky("")
	}
	s.takesPlace(task, d)
	o := s.answer(task)
	d.answer = o.output
	if s.w.strikes(fault.ServiceFlaky, 0.1) {
		s.w.struck(fault.ServiceFlaky, "%s does not say that it took place", d)
		return flaky("")
	}
	return o
}

// find says what the books know of a key.
func (s *service) find(task ringi.Task) outcome {
	if s.w.strikes(fault.ProbeUnknown, 0.5) {
		s.w.struck(fault.ProbeUnknown, "about %s of run %s", task.Step, short(task.Run))
		return draw.One(s.w.actors, flaky(""), outcome{output: json.RawMessage(`{"applied":"unknown"}`)})
	}
	var in struct {
		Key string `json:"key"`
	}
	if err := json.Unmarshal(task.Input, &in); err != nil {
		s.w.fail("input", "a probe of %s got %s", task.Step, task.Input)
	}
	if d := s.byKey[in.Key]; d != nil && d.times+d.excused > 0 {
		return outcome{output: json.RawMessage(fmt.Sprintf(`{"applied":"yes","output":%s}`, d.answer))}
	}
	return outcome{output: json.RawMessage(`{"applied":"no"}`)}
}

// undo takes an effect back by the key that its forward call had; also when
// there is none, which it remembers.
func (s *service) undo(task ringi.Task, d *deed, keyed bool) outcome {
	if keyed && d.times+d.excused > 0 {
		return outcome{output: d.answer}
	}
	switch {
	case s.w.strikes(fault.ServiceFlaky, 0.15):
		s.w.struck(fault.ServiceFlaky, "%s fails", d)
		return flaky(draw.One(s.w.actors, ringi.AppliedNo, ""))
	case s.w.actors.Hit(unwilling(task)):
		return declined()
	}
	s.takesPlace(task, d)
	d.answer = json.RawMessage(`{"undone":true}`)
	if f := s.deeds[deedName{run: task.Run, step: task.Step}]; f != nil {
		f.undone = true
	} else {
		s.deeds[deedName{run: task.Run, step: task.Step}] = &deed{name: deedName{run: task.Run, step: task.Step}, undone: true}
	}
	if s.w.strikes(fault.ServiceFlaky, 0.08) {
		s.w.struck(fault.ServiceFlaky, "%s does not say that it took place", d)
		return flaky("")
	}
	return outcome{output: d.answer}
}

// unwilling is how likely an undo is declined. What a person orders in place of
// one fails often, so that people have to order something else again.
func unwilling(task ringi.Task) float64 {
	if task.Activity == draw.ActivityHand {
		return 0.5
	}
	return 0.1
}

// answer makes an output.
func (s *service) answer(task ringi.Task) outcome {
	s.serial++
	if s.w.strikes(fault.BadOutput, 0.08) {
		s.w.struck(fault.BadOutput, "of %s of run %s", task.Step, short(task.Run))
		return outcome{output: json.RawMessage(fmt.Sprintf(`{"id":%d}`, s.serial))}
	}
	return outcome{output: json.RawMessage(fmt.Sprintf(`{"id":"x%d","n":%d}`, s.serial, s.w.actors.Below(10)))}
}

func declined() outcome {
	return outcome{failure: &ringi.Failure{Code: "declined", Message: "the service says no", Applied: ringi.AppliedNo}}
}

func flaky(applied ringi.Applied) outcome {
	return outcome{failure: &ringi.Failure{Code: "flaky", Message: "the service did not answer", Retryable: true, Applied: applied}}
}

// length draws how long a call takes until it takes place, and from there until
// its answer is back.
func (s *service) length(task ringi.Task) (until, back time.Duration) {
	d := s.w.actors
	until, back = d.Span(time.Millisecond, 300*time.Millisecond), d.Span(time.Millisecond, 300*time.Millisecond)
	switch {
	case d.Hit(0.1) && !s.w.calm:
		until += d.Span(0, task.Timeout+5*time.Second) // may be longer than it has
	case d.Hit(0.08) && !s.w.calm:
		back += d.Span(0, task.Timeout+5*time.Second)
	case d.Hit(0.2):
		until += d.Span(0, 4*time.Second)
	}
	return until, back
}
