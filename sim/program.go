package sim

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/sim/draw"
)

// A Program is what a seed draws, without the world around it: for a cluster
// with a real database and real concurrency, where the order of things is
// nobody's to choose.
type Program struct {
	Sources []string // definitions in YAML, which the checker passes
	seed    uint64
	names   []string
}

// Draw draws the program of a seed, the same every time: up to so many of the
// definitions that a world of this seed has.
func Draw(seed uint64, definitions int) Program {
	p := Program{seed: seed}
	design := draw.New(seed, draw.StreamDesign)
	for i := range definitions {
		name := fmt.Sprintf("case%d", i+1)
		p.Sources = append(p.Sources, draw.Definition(design, name, false))
		p.names = append(p.names, name)
	}
	return p
}

// People are who votes in a program, with the one who requests and a machine
// that would like to be a person.
func People() []ringi.Actor { return draw.People() }

// A Caller draws what one client of a program does, worker or person. Callers
// of different numbers draw differently. It must not be used concurrently.
type Caller struct {
	d      *draw.Dice
	p      Program
	number uint64
	calls  int
}

// Caller makes the caller of a number.
func (p Program) Caller(number uint64) *Caller {
	return &Caller{d: draw.New(p.seed, draw.StreamIDs+1+number), p: p, number: number}
}

// Hit is true with a probability.
func (c *Caller) Hit(probability float64) bool { return c.d.Hit(probability) }

// Below draws from 0 to n-1.
func (c *Caller) Below(n int) int { return c.d.Below(n) }

// Start draws a start, now and then with a key that others use too.
func (c *Caller) Start() ringi.Start {
	c.calls++
	return drawStart(c.d, draw.One(c.d, c.p.names...), int(c.number)*1000+c.calls)
}

// Event draws an event that some run may wait for.
func (c *Caller) Event() ringi.SendEvent {
	c.calls++
	return ringi.SendEvent{
		ID: fmt.Sprintf("event-%d-%d", c.number, c.calls), Name: draw.One(c.d, draw.EventNames()...), Key: draw.One(c.d, eventKeys()...),
		Data: json.RawMessage(fmt.Sprintf(`{"n":%d}`, c.calls)),
	}
}

// Vote draws who votes on an approval and how; some may not.
func (c *Caller) Vote(a ringi.ApprovalView) (ringi.Actor, ringi.DecideApproval) {
	return drawVote(c.d, a)
}

// Resolve draws one of the answers to an incident that are open.
func (c *Caller) Resolve(i ringi.Incident) ringi.ResolveIncident { return drawResolution(c.d, i) }

// Perform draws what a service answers to a call: its output, or a failure.
// Probes say that nothing took place.
func (c *Caller) Perform(task ringi.Task) (json.RawMessage, *ringi.Failure) {
	c.calls++
	switch {
	case task.Activity == draw.ActivityFind:
		return json.RawMessage(`{"applied":"no"}`), nil
	case c.d.Hit(0.1):
		return nil, declined().failure
	case c.d.Hit(0.1):
		return nil, flaky("").failure
	}
	return json.RawMessage(fmt.Sprintf(`{"id":"x%d-%d","n":%d}`, c.number, c.calls, c.d.Below(10))), nil
}

// drawStart draws the start with a number of a definition.
func drawStart(d *draw.Dice, definition string, number int) ringi.Start {
	key := ""
	switch {
	case d.Hit(0.25):
		key = fmt.Sprintf("key-%d", d.Below(3))
	case d.Hit(0.5):
		key = fmt.Sprintf("start-%d", number)
	}
	input := json.RawMessage(fmt.Sprintf(`{"n":%d,"z":%d,"s":%q}`, d.Below(12), draw.One(d, 0, 1, 1, 1), draw.One(d, eventKeys()...)))
	start := ringi.Start{Definition: definition, Key: key, Input: input}
	if d.Hit(0.2) {
		start.EventID = "event-0"
	}
	return start
}

// drawVote draws somebody, who may vote or not, and a vote on what is asked, or
// on something else.
func drawVote(d *draw.Dice, a ringi.ApprovalView) (ringi.Actor, ringi.DecideApproval) {
	p := draw.One(d, draw.People()...)
	v := ringi.DecideApproval{Step: a.Step, Approve: !d.Hit(0.15), Digest: a.Digest, Comment: "seen"}
	if d.Hit(0.05) {
		v.Digest = "of something else"
	}
	return p, v
}

// drawResolution draws one of the ways to close an incident that are open.
func drawResolution(d *draw.Dice, i ringi.Incident) ringi.ResolveIncident {
	how := draw.One(d, i.Allowed...)
	if d.Hit(0.3) && slices.Contains(i.Allowed, ringi.ResolveRunOther) {
		how = ringi.ResolveRunOther
	}
	if d.Hit(0.08) { // one that may not be open
		how = draw.One(d, ringi.ResolveRetry, ringi.ResolveDone, ringi.ResolveNotDone, ringi.ResolveSkipUndo, ringi.ResolveUndoRest)
	}
	a := ringi.ResolveIncident{Incident: i.ID, How: how, Reason: "drawn"}
	switch how {
	case ringi.ResolveDone:
		a.Output = json.RawMessage(`{"id":"by hand","n":1}`)
	case ringi.ResolveRunOther:
		a.Activity, a.Input = draw.ActivityHand, json.RawMessage(`{"key":"by hand"}`)
	}
	return a
}
