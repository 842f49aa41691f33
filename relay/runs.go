package relay

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/workflow"
)

// Runs is ringi as a destination: a message of outbox.StartRun starts a run, any
// other is an event whose name is the message's type and whose key the aggregate
// id. The service is an engine in this process or a client of a server; who acts,
// and for which tenant, follows from the client's key.
func Runs(service ringi.Service) *outbox.Runs {
	s := starter{service}
	return &outbox.Runs{Start: s.start, HasKey: s.hasKey, Send: s.send}
}

type starter struct{ service ringi.Service }

func (s starter) start(ctx context.Context, r outbox.RunStart) error {
	return s.do(ctx, ringi.Start{Definition: r.Definition, Version: r.Version, Key: r.Key, Input: r.Input, EventID: r.ID})
}

func (s starter) send(ctx context.Context, m *outbox.Message) error {
	if len(m.Payload) > 0 && !json.Valid(m.Payload) {
		return outbox.Refuse(fmt.Errorf("relay: message %s: the payload is not JSON, which the data of an event is", m.ID))
	}
	return s.do(ctx, ringi.SendEvent{ID: m.ID, Name: m.Type, Key: m.AggregateID, Data: m.Payload})
}

func (s starter) do(ctx context.Context, action ringi.Action) error {
	results := s.service.Do(ctx, ringi.Command{Tenant: ringi.DefaultTenant, Do: action})
	if len(results) != 1 {
		return fmt.Errorf("relay: %d answers to one command", len(results))
	}
	return verdict(results[0].Err)
}

// verdict tells what is the message's fault from what is the server's, or the
// key's with which we come.
func verdict(err error) error {
	switch ringi.ErrorCode(err) {
	case "":
		return nil
	case ringi.CodeInvalid, ringi.CodeNotFound, ringi.CodeStartKeyConflict, ringi.CodeTooLarge:
		return outbox.Refuse(err)
	case ringi.CodeUnavailable, ringi.CodeLimit:
		return outbox.Excuse(err)
	case ringi.CodeInternal:
		return outbox.Blame(err)
	}
	return err
}

// hasKey looks whether the definition finds the start's key in its input.
func (s starter) hasKey(ctx context.Context, r outbox.RunStart) (bool, error) {
	q := ringi.DefinitionQuery{Tenant: ringi.DefaultTenant, Name: r.Definition}
	for {
		page, err := s.service.List(ctx, q)
		if err != nil {
			return false, verdict(err)
		}
		for _, d := range page.Definitions { // the newest first
			if r.Version != 0 && d.Version != r.Version {
				continue
			}
			def, _ := workflow.Parse(d.Name, d.Source)
			if def == nil {
				return false, outbox.Refuse(fmt.Errorf("relay: version %d of definition %s cannot be read here: this program may be older than the server", d.Version, d.Name))
			}
			return def.StartKey != nil, nil
		}
		if page.Next == "" {
			return false, nil // the start itself will tell
		}
		q.After = page.Next
	}
}
