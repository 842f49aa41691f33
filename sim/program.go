package sim

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ringiflow/ringi"
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
	design := newDice(seed, streamDesign)
	for i := range definitions {
		g := &designer{d: design, name: fmt.Sprintf("case%d", i+1)}
		p.Sources = append(p.Sources, g.definition())
		p.names = append(p.names, g.name)
	}
	return p
}

// People are who votes in a program, with the one who requests and a machine
// that would like to be a person.
func People() []ringi.Actor { return people() }

// A Caller draws what one client of a program does, worker or person. Callers
// of different numbers draw differently. It must not be used concurrently.
type Caller struct {
	d      *dice
	p      Program
	number uint64
	calls  int
}

// Caller makes the caller of a number.
func (p Program) Caller(number uint64) *Caller {
	return &Caller{d: newDice(p.seed, streamIDs+1+number), p: p, number: number}
}

// Hit is true with a probability.
func (c *Caller) Hit(probability float64) bool { return c.d.hit(probability) }

// Below draws from 0 to n-1.
func (c *Caller) Below(n int) int { return c.d.below(n) }

// Start draws a start, now and then with a key that others use too.
func (c *Caller) Start() ringi.Start {
	c.calls++
	return drawStart(c.d, one(c.d, c.p.names...), int(c.number)*1000+c.calls)
}

// Event draws an event that some run may wait for.
func (c *Caller) Event() ringi.SendEvent {
	c.calls++
	return ringi.SendEvent{
		ID: fmt.Sprintf("event-%d-%d", c.number, c.calls), Name: one(c.d, eventNames()...), Key: one(c.d, eventKeys()...),
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
	case task.Activity == activityFind:
		return json.RawMessage(`{"applied":"no"}`), nil
	case c.d.hit(0.1):
		return nil, declined().failure
	case c.d.hit(0.1):
		return nil, flaky("").failure
	}
	return json.RawMessage(fmt.Sprintf(`{"id":"x%d-%d","n":%d}`, c.number, c.calls, c.d.below(10))), nil
}

// drawStart draws the start with a number of a definition.
func drawStart(d *dice, definition string, number int) ringi.Start {
	key := ""
	switch {
	case d.hit(0.25):
		key = fmt.Sprintf("key-%d", d.below(3))
	case d.hit(0.5):
		key = fmt.Sprintf("start-%d", number)
	}
	input := json.RawMessage(fmt.Sprintf(`{"n":%d,"z":%d,"s":%q}`, d.below(12), one(d, 0, 1, 1, 1), one(d, eventKeys()...)))
	start := ringi.Start{Definition: definition, Key: key, Input: input}
	if d.hit(0.2) {
		start.EventID = "event-0"
	}
	return start
}

// drawVote draws somebody, who may vote or not, and a vote on what is asked, or
// on something else.
func drawVote(d *dice, a ringi.ApprovalView) (ringi.Actor, ringi.DecideApproval) {
	p := one(d, people()...)
	v := ringi.DecideApproval{Step: a.Step, Approve: !d.hit(0.15), Digest: a.Digest, Comment: "seen"}
	if d.hit(0.05) {
		v.Digest = "of something else"
	}
	return p, v
}

// drawResolution draws one of the ways to close an incident that are open.
func drawResolution(d *dice, i ringi.Incident) ringi.ResolveIncident {
	how := one(d, i.Allowed...)
	if d.hit(0.3) && slices.Contains(i.Allowed, ringi.ResolveRunOther) {
		how = ringi.ResolveRunOther
	}
	a := ringi.ResolveIncident{Incident: i.ID, How: how, Reason: "drawn"}
	switch how {
	case ringi.ResolveDone:
		a.Output = json.RawMessage(`{"id":"by hand","n":1}`)
	case ringi.ResolveRunOther:
		a.Activity, a.Input = activityHand, json.RawMessage(`{"key":"by hand"}`)
	}
	return a
}
