package scenario

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/workflow"
)

// A Result is what came of a scenario.
type Result struct {
	Scenario    *Scenario
	Differences []Problem     // what came out otherwise than expected; none: it passed
	Story       []string      // what happened, a line each
	Took        time.Duration // of virtual time
	Reached     []string      // the steps that were opened, in that order
}

// Passed reports whether everything came out as expected.
func (r Result) Passed() bool { return len(r.Differences) == 0 }

// beginning is when a run starts that does not say when: an instant like any
// other, so that no result depends on the day.
func beginning() time.Time { return time.Date(2026, time.January, 5, 9, 0, 0, 0, time.UTC) }

// mostCommands bounds what one scenario can make happen; a run that needs more
// goes in a circle.
const mostCommands = 10_000

// Play plays a scenario of a file that Check found nothing wrong with.
func Play(def *workflow.Definition, s *Scenario) Result {
	p := &play{
		def: def, sc: s, now: s.start.when, out: Result{Scenario: s},
		state: &ringi.State{Tenant: ringi.DefaultTenant, Run: run},
		used:  map[string]int{}, inputs: map[int64]json.RawMessage{}, delivered: map[string]bool{}, handed: map[int64]bool{},
	}
	if p.open() {
		p.settle()
		for _, m := range s.moves {
			if p.stuck {
				break
			}
			p.make(m)
		}
		if !p.stuck {
			p.compare(s.expect)
		}
	}
	p.out.Took = p.now.Sub(s.start.when)
	for _, st := range p.state.Steps {
		if st.Outcome != ringi.Skipped && st.Outcome != ringi.NotRun {
			p.out.Reached = append(p.out.Reached, st.ID)
		}
	}
	return p.out
}

// run is the id of every scenario's run, so that keys and digests are the same
// every time.
const run = ringi.RunID("01900000-0000-7000-8000-000000000001")

// A play is a scenario being played.
type play struct {
	def   *workflow.Definition
	sc    *Scenario
	now   time.Time
	state *ringi.State
	out   Result
	stuck bool // it makes no sense to go on

	flights   []flight
	handed    map[int64]bool            // the attempts that a worker took, by the event that scheduled them
	used      map[string]int            // answers taken, by script
	inputs    map[int64]json.RawMessage // by the event that holds them
	sent      []ringi.SentEvent
	delivered map[string]bool // event and step
	commands  int

	ended    []pathEntry // leaf steps in the order of their end
	undone   []string
	messages []ringi.Message
	calls    []call
}

// A call is a hand-out of an activity.
type call struct {
	activity string
	input    json.RawMessage
}

func (p *play) differ(at Place, format string, args ...any) {
	p.out.Differences = append(p.out.Differences, Problem{File: p.sc.file.Name, Place: at, Message: fmt.Sprintf(format, args...)})
}

func (p *play) tell(format string, args ...any) {
	p.out.Story = append(p.out.Story, fmt.Sprintf("%9s  ", "+"+p.now.Sub(p.sc.start.when).String())+fmt.Sprintf(format, args...))
}

// open starts the run.
func (p *play) open() bool {
	o := p.sc.start
	if err := p.def.Input.Check(o.input); err != nil { // as every start is checked at the door
		p.differ(o.at, "the run was not started: the input does not fit the definition: %v", err)
		return false
	}
	key, err := ringi.StartKey(p.def, ringi.Start{Definition: p.def.Name, Key: o.key, Input: o.input}, workflow.CEL{})
	if err == nil {
		_, err = p.send(p.person(o.by), ringi.Start{Definition: p.def.Name, Version: 1, Key: key, Input: o.input})
	}
	if err != nil {
		p.differ(o.at, "the run was not started: %v", err)
		return false
	}
	return true
}

func (p *play) person(name string) ringi.Actor {
	return ringi.Actor{ID: name, Kind: ringi.Person, Groups: p.sc.file.people[name].groups}
}

// send decides a command and takes in what follows from it.
func (p *play) send(by ringi.Actor, do ringi.Action) (ringi.Answer, error) {
	p.commands++
	cmd := ringi.Command{Tenant: ringi.DefaultTenant, Run: run, At: p.now, Actor: by, Do: do}
	d, err := ringi.Decide(p.def, p.state, cmd, workflow.CEL{})
	if err == nil {
		if cmd.Lost = p.lost(d.Needs); cmd.Lost != nil {
			d, err = ringi.Decide(p.def, p.state, cmd, workflow.CEL{})
		}
	}
	if err != nil {
		return ringi.Answer{}, err
	}
	for _, e := range d.Events {
		p.state = ringi.Evolve(p.state, e)
		p.note(e)
	}
	p.messages = append(p.messages, ringi.Messages(ringi.DefaultTenant, run, d.Events)...)
	if d.Repair != nil {
		p.tell("a run is started that undoes %s, whose effect was found after the end", d.Repair.Repair.Step)
	}
	return d.Answer, nil
}

// lost is what a decision relied on and a store would not have found so; nil when
// all of it holds. The rules know no hand-outs: they ask for a row that nobody
// has, and are told of the worker that has it.
func (p *play) lost(needs []ringi.Need) *ringi.Lost {
	seen := map[int]ringi.Seen{}
	for _, t := range ringi.Standing(p.state).Tasks {
		seen[t.Lane] = ringi.Seen{Token: t.Token(0)}
		if p.handed[t.Seq] {
			seen[t.Lane] = ringi.Seen{Token: t.Token(1), Leased: p.flies(t)}
		}
	}
	lost := &ringi.Lost{Tasks: map[int]ringi.Seen{}}
	for _, n := range needs {
		row := seen[n.Lane]
		if row.Token != n.Token || row.Leased && n.How == ringi.NeedFree {
			lost.Tasks[n.Lane] = row
		}
	}
	if len(lost.Tasks) == 0 {
		return nil
	}
	return lost
}

// note remembers of an event what expectations ask for, and tells it.
func (p *play) note(e ringi.Event) {
	switch f := e.Fact.(type) {
	case ringi.ActivityScheduled:
		p.inputs[e.Seq] = f.Input
	case ringi.ActivitySucceeded:
		if f.Direction == ringi.Undo {
			p.undone = append(p.undone, f.Step)
		}
	case ringi.UndoSettled:
		if f.Undone {
			p.undone = append(p.undone, f.Step)
		}
	case ringi.StepReopened:
		p.ended = slices.DeleteFunc(p.ended, func(x pathEntry) bool { return x.step == f.Step })
	}
	for _, st := range p.state.Steps {
		leaf := !st.Holds && st.Outcome != ringi.Open && st.Outcome != ringi.Skipped && st.Outcome != ringi.NotRun
		if leaf && !slices.ContainsFunc(p.ended, func(x pathEntry) bool { return x.step == st.ID }) {
			p.ended = append(p.ended, pathEntry{step: st.ID, outcome: string(st.Outcome)})
		}
	}
	if line := sentence(e.Fact); line != "" {
		p.tell("%s", line)
	}
}
