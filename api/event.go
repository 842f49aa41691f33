package api

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/ringiflow/ringi"
)

// NewEvent is the body of POST /v1/events.
type NewEvent struct {
	ID     string          `json:"id,omitempty" maxLength:"256" doc:"repeats of an id are dropped, another event under it is refused; absent draws one"`
	Name   string          `json:"name" minLength:"1" maxLength:"256" doc:"what waits name"`
	Key    string          `json:"key,omitempty" maxLength:"256" doc:"which waits of that name"`
	Data   json.RawMessage `json:"data,omitempty" doc:"any JSON value"`
	KeepMS int64           `json:"keepMs,omitempty" minimum:"0" doc:"how long a wait may still open and find it; 0 is 24 h"`
}

// Sent is the answer to an event that is stored.
type Sent struct {
	ID      string              `json:"id"`
	Outcome ringi.AnswerOutcome `json:"outcome" doc:"accepted; repeated: an event with this id was stored before"`
	By      string              `json:"by,omitempty"`
}

type eventInput struct{ Body NewEvent }

func (s *Server) eventRoutes() {
	route(s, Route{
		ID: "sendEvent", Method: http.MethodPost, Path: "/v1/events", Scope: ScopeStart, Tag: "events",
		Summary: "Store an event for the waits of its name and key",
	}, s.sendEvent)
}

func (s *Server) sendEvent(ctx context.Context, in *eventInput) (*answer[Sent], error) {
	b := in.Body
	res, err := s.one(ctx, "", ringi.SendEvent{ID: b.ID, Name: b.Name, Key: b.Key, Data: b.Data, Keep: duration(b.KeepMS)})
	if err != nil {
		return nil, err
	}
	return ok(Sent{ID: res.ID, Outcome: res.Answer.Outcome, By: res.Answer.By}), nil
}
