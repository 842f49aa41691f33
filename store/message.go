package store

import (
	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/outbox"
)

// OutboxMessage is a message of a run as its row in the outbox: JSON, with the
// run and the step that sent it as headers.
func OutboxMessage(m ringi.Message) outbox.Message {
	return outbox.Message{
		ID: m.ID, Tenant: int64(m.Tenant),
		AggregateType: m.AggregateType, AggregateID: m.AggregateID, Type: m.Type,
		Payload: m.Data, ContentType: "application/json",
		Headers:   map[string]string{"ringi-run": string(m.Run), "ringi-step": m.Step},
		CreatedAt: m.At,
	}
}
