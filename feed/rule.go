package feed

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"

	"github.com/ringiflow/ringi/inbox"
	"github.com/ringiflow/ringi/inbox/kafka"
	"github.com/ringiflow/ringi/inbox/nats"
	"github.com/ringiflow/ringi/inbox/rabbitmq"
	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/workflow/exact"
	"github.com/ringiflow/ringi/workflow/expr"
)

// A rule makes of a message what ringi gets.
type rule struct {
	when *expr.Condition // nil: every message

	// Of an event, or of a start when definition is set. A nil value is the default.
	event, key, id, data *expr.Value

	definition string
	version    int
}

// messageType is what expressions know of a message.
func messageType() *expr.Type {
	return expr.Fields(map[string]*expr.Type{
		"id": expr.Text(), "type": expr.Text(), "key": expr.Text(), "headers": expr.Any(), "data": expr.Any(),
	})
}

// A view is a message as expressions see it.
type view struct {
	ID      string            `json:"id"`
	Type    string            `json:"type"`
	Key     string            `json:"key"`
	Headers map[string]string `json:"headers"`
	Data    json.RawMessage   `json:"data"`
}

// first returns the first of these headers that says something.
func first(headers map[string]string, names ...string) string {
	for _, name := range names {
		if value := headers[name]; value != "" {
			return value
		}
	}
	return ""
}

// look makes the view of a delivery. Type and key are those that package outbox gave
// the message, else what its broker has of that kind.
func look(d inbox.Delivery) view {
	v := view{
		ID: d.ID, Headers: d.Headers, Data: d.Body,
		Type: first(d.Headers, "ce-type", "ce_type", rabbitmq.HeaderType, "type"),
		Key:  first(d.Headers, "ce-subject", "ce_subject", kafka.HeaderKey),
	}
	if d.Headers[nats.HeaderSubject] != "" { // whose headers cannot carry every byte
		v.Type, v.Key = decoded(v.Type), decoded(v.Key)
	}
	return v
}

// decoded is a text without the escapes of package outbox/nats.
func decoded(text string) string {
	if plain, err := url.PathUnescape(text); err == nil {
		return plain
	}
	return text
}

// errNoID says that nothing tells a repeat of the message from another one.
var errNoID = errors.New("feed: the message has no id of its own, so that a repeat could not be told from another one: let its sender give it one, or say what it is with id: ${ message.data.… }")

// apply makes of a message what ringi gets; passed says that the rule is about others.
// An error is the message's own.
func (r *rule) apply(d inbox.Delivery) (m outbox.Message, passed bool, err error) {
	v := look(d)
	env := &expr.Env{}
	if r.reads() {
		if v.Data, err = exact.Canonical(d.Body); err != nil {
			return m, false, fmt.Errorf("feed: the message is not JSON, which its rule reads: %w", err)
		}
		if env.Message, err = json.Marshal(v); err != nil {
			return m, false, fmt.Errorf("feed: the message cannot be read: %w", err)
		}
		if env.Message, err = exact.Canonical(env.Message); err != nil {
			return m, false, fmt.Errorf("feed: the message cannot be read: %w", err)
		}
	}
	if r.when != nil {
		if holds, err := r.when.Eval(env); err != nil || !holds {
			return m, err == nil, wrapped("when", err)
		}
	}
	if m.ID, err = text("id", r.id, env, d.ID); err != nil {
		return m, false, err
	}
	if !inbox.Usable(m.ID) {
		return m, false, errNoID
	}
	m.Payload = d.Body
	if r.data != nil {
		if m.Payload, err = r.data.Eval(env); err != nil {
			return m, false, wrapped("data or input", err)
		}
	}
	if r.definition != "" {
		return r.start(m, env)
	}
	m.ContentType = "application/json"
	if m.Type, err = text("event", r.event, env, v.Type); err != nil {
		return m, false, err
	}
	if m.AggregateID, err = text("key", r.key, env, v.Key); err != nil {
		return m, false, err
	}
	if m.Type == "" {
		return m, false, errors.New("feed: the message does not say its type, and the rule names no event: write event: NAME")
	}
	return m, false, nil
}

// start is the message that starts a run, under the id of m and with its payload.
func (r *rule) start(m outbox.Message, env *expr.Env) (outbox.Message, bool, error) {
	key, err := text("key", r.key, env, "")
	if err != nil {
		return m, false, err
	}
	start, err := outbox.StartRun(outbox.RunStart{Definition: r.definition, Version: r.version, Key: key, Input: m.Payload})
	if err != nil {
		return m, false, err
	}
	start.ID = m.ID
	return start, false, nil
}

// reads reports whether there is an expression.
func (r *rule) reads() bool {
	return r.when != nil || r.event != nil || r.key != nil || r.id != nil || r.data != nil
}

// text is what a value yields, which must be a text or a number.
func text(field string, v *expr.Value, env *expr.Env, usual string) (string, error) {
	if v == nil {
		return usual, nil
	}
	raw, err := v.Eval(env)
	if err != nil {
		return "", wrapped(field, err)
	}
	var out string
	if json.Unmarshal(raw, &out) == nil {
		return out, nil
	}
	if len(raw) > 0 && (raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9') {
		return string(raw), nil // as it was written
	}
	return "", fmt.Errorf("feed: %s is neither a text nor a number in this message", field)
}

func wrapped(field string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("feed: %s: %w", field, err)
}
