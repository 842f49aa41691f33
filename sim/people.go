package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/sim/draw"
	"github.com/ringiflow/ringi/sim/fault"
	"github.com/ringiflow/ringi/sim/story"
)

// A crowd is everybody who sends commands and is no worker: clients that start
// runs and send events, people who vote, operators.
type crowd struct {
	w       *world
	clients *sender
	starts  int
	events  int
}

func newCrowd(w *world) *crowd { return &crowd{w: w, clients: newSender(w, "a client")} }

// one sends one command and forgets it, or sends it until it is answered.
func (c *crowd) send(actor ringi.Actor, run ringi.RunID, do ringi.Action, then func(ringi.Result)) {
	cmd := ringi.Command{Tenant: ringi.DefaultTenant, Run: run, Actor: actor, Do: do}
	if c.w.tracer.on {
		c.w.tell("%s asks%s %s", actor.ID, ofRun(run), story.Order(do))
	}
	c.clients.do(ringi.ActionName(do), []ringi.Command{cmd}, func(results []ringi.Result) {
		if then != nil && results != nil {
			then(results[0])
		}
	})
}

// begin starts a run.
func (c *crowd) begin() {
	w, d := c.w, c.w.actors
	c.starts++
	start := drawStart(d, draw.One(d, w.definitions...).Name, c.starts)
	erin, _ := draw.Person("erin")
	c.send(erin, "", start, func(r ringi.Result) {
		if r.Err != nil || !r.Created {
			w.struck(fault.StartRepeated, "of %s: %s", start.Definition, errorText(r.Err))
		}
	})
	if start.Key != "" && w.strikes(fault.StartRepeated, 0.3) {
		c.send(erin, "", start, nil)
	}
}

func eventKeys() []string { return []string{"a", "b", "c"} }

// newEvent makes an event that nobody has sent yet.
func (c *crowd) newEvent(name, key string) ringi.SentEvent {
	c.events++
	e := ringi.SentEvent{ID: fmt.Sprintf("event-%d", c.events), Name: name, Key: key, Data: json.RawMessage(fmt.Sprintf(`{"n":%d}`, c.events))}
	c.w.sent[e.ID] = e
	return e
}

// keptFor is for how long an event is kept whose sender does not say.
const keptFor = 24 * time.Hour

// event sends an event; now and then again under the same id.
func (c *crowd) event(name, key string) {
	w := c.w
	sent := c.newEvent(name, key)
	id := sent.ID
	e := ringi.SendEvent{ID: id, Name: name, Key: key, Data: sent.Data}
	if w.actors.Hit(0.2) && !w.calm {
		e.Keep = 30 * time.Second
	}
	if w.keeps[id] = e.Keep; e.Keep == 0 {
		w.keeps[id] = keptFor
	}
	if c.over(name, key) {
		w.struck(fault.EventLate, "%s of %s %s", id, name, key)
	}
	robot, _ := draw.Person("robot")
	w.count.commands["send_event"]++
	c.send(robot, "", e, nil)
	if w.strikes(fault.EventRepeated, 0.3) {
		w.struck(fault.EventRepeated, "%s", id)
		w.after(w.order.Span(0, 5*time.Second), "event again", func() { c.send(robot, "", e, nil) })
	}
}

// over reports whether a wait for such an event has ended without one.
func (c *crowd) over(name, key string) bool {
	for _, sh := range c.w.watch.all() {
		def := c.w.definition(sh.state)
		for _, st := range sh.state.Steps {
			if st.Outcome == ringi.Open || st.By != "" || st.Wait != nil || def == nil {
				continue
			}
			if step := def.Step(st.ID); step != nil && step.Wait != nil && step.Wait.Event == name && inputKey(sh.state) == key {
				return true
			}
		}
	}
	return false
}

func inputKey(s *ringi.State) string {
	var in struct {
		S string `json:"s"`
	}
	_ = json.Unmarshal(s.Input, &in) // the world made it
	return in.S
}

// asked lists the open approvals as the store has them.
func (c *crowd) asked() []ringi.ApprovalView {
	list, _, err := c.w.db.Approvals(context.Background(), ringi.ApprovalQuery{Tenant: ringi.DefaultTenant})
	if err != nil {
		c.w.fail("store", "approvals cannot be read: %v", err)
	}
	return list
}

// vote lets somebody vote, who may or may not.
func (c *crowd) vote() {
	list := c.asked()
	if len(list) == 0 {
		return
	}
	w, d := c.w, c.w.actors
	a := list[d.Below(len(list))]
	p, v := drawVote(d, a)
	send := func() { c.send(p, a.Run, v, func(r ringi.Result) { c.voted(p, r) }) }
	send()
	if w.strikes(fault.DoubleClick, 0.25) {
		w.struck(fault.DoubleClick, "%s on %s of run %s", p.ID, a.Step, short(a.Run))
		send()
	}
	if w.strikes(fault.WithdrawRace, 0.25) {
		w.after(d.Span(0, 400*time.Millisecond), "withdrawal", func() {
			w.struck(fault.WithdrawRace, "%s on %s of run %s", p.ID, a.Step, short(a.Run))
			c.send(p, a.Run, ringi.WithdrawDecision{Step: a.Step, Reason: "a second thought"}, nil)
		})
	}
	if left := a.ExpiresAt.Sub(w.db.clock.now()); left > 0 && left < time.Hour && w.strikes(fault.ExpiryRace, 0.4) {
		w.after(left-10*time.Millisecond+d.Span(0, 20*time.Millisecond), "vote at the expiry", func() {
			w.struck(fault.ExpiryRace, "%s of run %s", a.Step, short(a.Run))
			if d.Hit(0.5) {
				send()
				return
			}
			c.send(p, a.Run, ringi.WithdrawDecision{Step: a.Step, Reason: "in the last moment"}, nil)
		})
	}
}

func (c *crowd) voted(p ringi.Actor, r ringi.Result) {
	if ringi.ErrorCode(r.Err) == ringi.CodeForbidden {
		c.w.struck(fault.ForeignVote, "%s on run %s", p.ID, short(r.Run))
	}
}

// operate lets an operator do something to some run, sensible or not.
func (c *crowd) operate() {
	w, d := c.w, c.w.actors
	runs := w.watch.all()
	if len(runs) == 0 {
		return
	}
	sh := runs[d.Below(len(runs))]
	op := ringi.Actor{ID: "op", Kind: draw.One(d, ringi.Person, ringi.Machine)}
	if sh.state.End != nil {
		w.struck(fault.CommandAtEnded, "run %s", short(sh.key.Run))
	}
	var do ringi.Action
	switch k := d.Below(30); {
	case k < 3:
		do = ringi.Cancel{Reason: "drawn"}
	case k < 7:
		do = ringi.Pause{Reason: "drawn"}
	case sh.state.Paused != nil:
		do = ringi.Resume{Reason: "drawn"}
	case k == 7:
		do = ringi.Terminate{Reason: "drawn"}
	default:
		c.resolve(sh, op)
		return
	}
	c.send(op, sh.key.Run, do, nil)
}

// resolve answers one incident of a run in one of the ways that are open.
func (c *crowd) resolve(sh *shadow, op ringi.Actor) {
	d := c.w.actors
	if len(sh.state.Incidents) == 0 {
		return
	}
	a := drawResolution(d, *sh.state.Incidents[d.Below(len(sh.state.Incidents))])
	c.send(op, sh.key.Run, a, nil)
}

// flood repeats a result that is long out of date, a thousand times.
func (c *crowd) flood() {
	w := c.w
	for _, sh := range w.watch.all() {
		for _, st := range sh.state.Steps {
			if sh.state.End != nil || st.Attempts == 0 {
				continue
			}
			w.struck(fault.EvidenceFlood, "about %s of run %s", st.ID, short(sh.key.Run))
			ref := ringi.CallRef{Step: st.ID, Attempt: 99, Token: 1}
			commands := make([]ringi.Command, ringi.MaxEvidence+50)
			for i := range commands {
				commands[i] = ringi.Command{
					Tenant: sh.key.Tenant, Run: sh.key.Run, Actor: ringi.Actor{ID: "mad", Kind: ringi.Machine},
					Do: ringi.FailActivity{CallRef: ref, Worker: "mad", Failure: ringi.Failure{Code: "again"}},
				}
			}
			for _, n := range w.nodes {
				if n.awake() {
					n.do(commands, func([]ringi.Result) {})
					return
				}
			}
			return
		}
	}
}
