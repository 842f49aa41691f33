package relay

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/ringiflow/ringi/outbox"
)

// A DepthView is an outbox.Depth as programs print it.
type DepthView struct {
	Destination string    `json:"destination"`
	Tenant      int64     `json:"tenant"`
	Pending     int64     `json:"pending"`
	Claimed     int64     `json:"claimed"`
	Parked      int64     `json:"parked"`
	Failing     int64     `json:"failing"`
	Dead        int64     `json:"dead"`
	OldestAt    time.Time `json:"oldestAt,omitzero"`
	OldestMS    int64     `json:"oldestMs"` // its age
}

// DepthCells name the cells of a DepthView.
func DepthCells() []string {
	return []string{"DESTINATION", "TENANT", "PENDING", "CLAIMED", "FAILING", "PARKED", "DEAD", "OLDEST"}
}

// Cells are the view as a row of a table.
func (v DepthView) Cells() []string {
	cells := []string{v.Destination}
	for _, n := range []int64{v.Tenant, v.Pending, v.Claimed, v.Failing, v.Parked, v.Dead} {
		cells = append(cells, strconv.FormatInt(n, 10))
	}
	return append(cells, stamp(v.OldestAt))
}

// stamp is a time in a table, to the second.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// ViewDepths shows a backlog at a time.
func ViewDepths(depths []outbox.Depth, now time.Time) []DepthView {
	views := make([]DepthView, len(depths))
	for i, d := range depths {
		views[i] = DepthView{
			Destination: d.Destination, Tenant: d.Tenant, Pending: d.Pending, Claimed: d.Claimed, Parked: d.Parked,
			Failing: d.Failing, Dead: d.Dead, OldestAt: d.Oldest,
		}
		if !d.Oldest.IsZero() {
			views[i].OldestMS = max(0, now.Sub(d.Oldest).Milliseconds())
		}
	}
	return views
}

// A MessageView is an outbox.Entry as programs print it.
type MessageView struct {
	ID            string            `json:"id"`
	Tenant        int64             `json:"tenant"`
	Destination   string            `json:"destination"`
	AggregateType string            `json:"aggregateType"`
	AggregateID   string            `json:"aggregateId"`
	Type          string            `json:"type"`
	Sequence      int64             `json:"sequence,omitempty"`
	State         string            `json:"state"`
	Attempts      int               `json:"attempts"`
	CreatedAt     time.Time         `json:"createdAt"`
	NextAt        time.Time         `json:"nextAt,omitzero"` // of a pending one
	DeliveredAt   time.Time         `json:"deliveredAt,omitzero"`
	ClaimedBy     string            `json:"claimedBy,omitempty"`
	LastError     string            `json:"lastError,omitempty"`
	Bytes         int               `json:"bytes"` // of the payload
	ContentType   string            `json:"contentType,omitempty"`
	Headers       map[string]string `json:"headers,omitempty"`
	Payload       json.RawMessage   `json:"payload,omitempty"`       // with payload, if it is JSON
	PayloadBase64 []byte            `json:"payloadBase64,omitempty"` // with payload, if it is not
}

// MessageCells name the cells of a MessageView.
func MessageCells() []string {
	return []string{"ID", "STATE", "AGGREGATE", "TYPE", "DESTINATION", "TRIES", "CREATED", "ERROR"}
}

// Cells are the view as a row of a table.
func (v MessageView) Cells() []string {
	return []string{v.ID, v.State, v.AggregateType + "/" + v.AggregateID, v.Type, v.Destination, strconv.Itoa(v.Attempts), stamp(v.CreatedAt), v.LastError}
}

// ViewMessages shows messages, with what they carry if payload says so.
func ViewMessages(entries []outbox.Entry, payload bool) []MessageView {
	views := make([]MessageView, len(entries))
	for i, e := range entries {
		v := MessageView{
			ID: e.ID, Tenant: e.Tenant, Destination: e.Destination, AggregateType: e.AggregateType, AggregateID: e.AggregateID, Type: e.Type,
			Sequence: e.Seq, State: e.State.String(), Attempts: e.Attempts, CreatedAt: e.CreatedAt, DeliveredAt: e.DeliveredAt,
			ClaimedBy: e.ClaimedBy, LastError: e.LastError, Bytes: len(e.Payload), ContentType: e.ContentType,
		}
		if e.State == outbox.Pending {
			v.NextAt = e.NextAt
		}
		switch {
		case !payload:
		case json.Valid(e.Payload):
			v.Headers, v.Payload = e.Headers, e.Payload
		default:
			v.Headers, v.PayloadBase64 = e.Headers, e.Payload
		}
		views[i] = v
	}
	return views
}

// ChangeView shows what was done to messages, and why.
type ChangeView struct {
	At       time.Time `json:"at"`
	Verb     string    `json:"verb"`
	Reason   string    `json:"reason,omitempty"`
	Messages []string  `json:"messages"` // their ids
}

// ChangeCells name the cells of a ChangeView.
func ChangeCells() []string { return []string{"AT", "VERB", "MESSAGES", "REASON"} }

// Cells are the view as a row of a table.
func (v ChangeView) Cells() []string {
	what := strconv.Itoa(len(v.Messages))
	if len(v.Messages) == 1 {
		what = v.Messages[0]
	}
	return []string{stamp(v.At), v.Verb, what, v.Reason}
}

// ViewChanges shows changes.
func ViewChanges(list []outbox.Change) []ChangeView {
	views := make([]ChangeView, len(list))
	for i, c := range list {
		views[i] = ChangeView{At: c.At, Verb: c.Verb, Reason: c.Reason, Messages: c.Messages}
	}
	return views
}
