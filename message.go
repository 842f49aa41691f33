package ringi

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/ringiflow/ringi/workflow"
)

// A Message is what an emit step tells other systems. It is written to the
// outbox in the transaction of the transition that emitted it.
type Message struct {
	ID            string // a UUIDv7 made of the decision's time and a hash of run and step: the same on every decision
	Tenant        Tenant
	Run           RunID
	Step          string
	Type          string
	AggregateType string
	AggregateID   string
	Data          json.RawMessage
	At            time.Time
}

// Messages returns what the events of a decision tell other systems, in order.
func Messages(tenant Tenant, run RunID, events []Event) []Message {
	var out []Message
	for _, e := range events {
		if m, ok := e.Fact.(MessageEmitted); ok {
			out = append(out, Message{
				ID: m.ID, Tenant: tenant, Run: run, Step: m.Step, Type: m.Type,
				AggregateType: m.AggregateType, AggregateID: m.AggregateID, Data: m.Data, At: e.At,
			})
		}
	}
	return out
}

func (t *turn) emitMessage(step *workflow.Step, scope string) {
	env := t.envIn(scope)
	id, err := t.textOf(step.Emit.AggregateID, env)
	if err != nil {
		t.expressionIncident(step, scope, "emit.aggregate.id", err)
		return
	}
	data := json.RawMessage("null")
	if step.Emit.Data != nil {
		if data, err = t.ev.Value(step.Emit.Data, env); err != nil {
			t.expressionIncident(step, scope, "emit.data", err)
			return
		}
	}
	if why, ok := t.fits(data); !ok {
		t.stepIncident(IncidentLimit, step, scope, "the message of step "+step.ID+" is too large: "+why)
		return
	}
	if len(id) == 0 || len(id) > maxTitle {
		t.expressionIncident(step, scope, "emit.aggregate.id", fmt.Errorf("an aggregate id has 1 to %d bytes, this one has %d", maxTitle, len(id)))
		return
	}
	t.emit(MessageEmitted{
		Step: step.ID, Scope: scope, ID: messageID(t.s.Run, step.ID, t.s.Seq+1, t.cmd.At), Type: step.Emit.Type,
		AggregateType: step.Emit.AggregateType, AggregateID: id, Data: data,
	})
	t.next(step, scope)
}

// messageID makes a UUIDv7 without drawing: the time of the decision in front,
// then bits of a hash over what makes the message unique.
func messageID(run RunID, step string, seq int64, at time.Time) string {
	h := sha256.Sum256(fmt.Appendf(nil, "%s/%s/%d", run, step, seq))
	var u [16]byte
	ms := uint64(at.UnixMilli())
	for i := range 6 {
		u[i] = byte(ms >> (40 - 8*i))
	}
	copy(u[6:], h[:10])
	u[6] = u[6]&0x0f | 0x70
	u[8] = u[8]&0x3f | 0x80
	x := hex.EncodeToString(u[:])
	return x[:8] + "-" + x[8:12] + "-" + x[12:16] + "-" + x[16:20] + "-" + x[20:]
}
