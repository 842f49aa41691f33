package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
)

// What a message that starts a run looks like. Its aggregate is the definition;
// it is unordered, since runs of one definition wait for nothing.
const (
	RunAggregate = "ringi.definition"
	RunStartType = "ringi.run.start"
)

// RunStart asks for a run.
type RunStart struct {
	// Definition names what is run; Version 0 is the latest.
	Definition string `json:"definition"`
	Version    int    `json:"version,omitempty"`

	// Key is the start key. Empty leaves it to the definition's start.key, and if
	// there is none, to the id of the message: a repeat starts nothing either way.
	Key string `json:"key,omitempty"`

	// Input is JSON; nil is null.
	Input json.RawMessage `json:"input,omitempty"`

	// Tenant owns the run and the message.
	Tenant int64 `json:"-"`

	// ID is the id of the message, which the sink of run starts fills in.
	ID string `json:"-"`
}

// StartRun returns the message that starts a run when it is delivered to ringi.
// Written in the transaction of a business change, change and start commit
// together. Who adds it to a unit of work gets its id and time there.
func StartRun(start RunStart) (Message, error) {
	if start.Definition == "" {
		return Message{}, errors.New("outbox: start a run: no definition; name the one to run")
	}
	if start.Input != nil && !json.Valid(start.Input) {
		return Message{}, fmt.Errorf("outbox: start a run of %s: the input is not JSON; encode it", clip(start.Definition))
	}
	payload, err := json.Marshal(start)
	if err != nil {
		return Message{}, fmt.Errorf("outbox: start a run of %s: %w", clip(start.Definition), err)
	}
	return Message{
		Tenant: start.Tenant, AggregateType: RunAggregate, AggregateID: start.Definition, Type: RunStartType,
		Payload: payload, ContentType: "application/json", Unordered: true,
	}, nil
}

// runsParallel is how many requests of one call are under way at once: enough for
// their commits to share a batch, too few to crowd out other clients.
const runsParallel = 16

// Runs is the sink that starts runs from messages of StartRun. Start is how: an
// engine in this process, or a client of its API. It returns an error made by
// Refuse when the run can never start as asked, and any other when the engine
// cannot be reached. Start is called again for a repeat, with the same ID and
// Key, and must then do nothing.
//
// The key of a start is the one it names, else the definition's start.key, else
// the id of the message. HasKey tells whether a definition has a start.key; nil
// means that none has.
//
// Send, if set, takes every other message as an event that runs may wait for,
// with errors as Start has them and the id to know a repeat by. Nil refuses such
// messages.
//
// Messages of one key are sent one after the other, of different keys several at
// once.
type Runs struct {
	Start  func(ctx context.Context, start RunStart) error
	HasKey func(ctx context.Context, start RunStart) (bool, error)
	Send   func(ctx context.Context, m *Message) error
}

var _ Sink = (*Runs)(nil)

// Publish implements Sink.
func (s *Runs) Publish(ctx context.Context, msgs []Message) []error {
	results := make([]error, len(msgs))
	var chains [][]int
	at := map[Key]int{}
	for i := range msgs {
		chain, known := at[msgs[i].Key()]
		if msgs[i].Seq == 0 || !known {
			chain = len(chains)
			chains = append(chains, nil)
			if msgs[i].Seq > 0 {
				at[msgs[i].Key()] = chain
			}
		}
		chains[chain] = append(chains[chain], i)
	}
	slots := make(chan struct{}, runsParallel)
	var running sync.WaitGroup
	for _, chain := range chains {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			s.follow(ctx, msgs, chain, results)
		})
	}
	running.Wait()
	return results
}

// follow sends messages of one key until one fails.
func (s *Runs) follow(ctx context.Context, msgs []Message, chain []int, results []error) {
	for n, i := range chain {
		if results[i] = s.send(ctx, &msgs[i]); results[i] != nil {
			for _, later := range chain[n+1:] {
				results[later] = ErrHeld
			}
			return
		}
	}
}

func (s *Runs) send(ctx context.Context, m *Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	switch {
	case m.Type == RunStartType:
		return s.start(ctx, m)
	case s.Send != nil:
		return s.Send(ctx, m)
	}
	return Refuse(fmt.Errorf("outbox: message %s: type %q starts no run; route only %s to this destination", m.ID, clip(m.Type), RunStartType))
}

func (s *Runs) start(ctx context.Context, m *Message) error {
	var start RunStart
	if err := json.Unmarshal(m.Payload, &start); err != nil {
		return Refuse(fmt.Errorf("outbox: message %s: not what StartRun writes: %w", m.ID, err))
	}
	start.Tenant, start.ID = m.Tenant, m.ID
	if start.Key == "" {
		has := false
		if s.HasKey != nil {
			var err error
			if has, err = s.HasKey(ctx, start); err != nil {
				return err
			}
		}
		if !has {
			start.Key = m.ID
		}
	}
	return s.Start(ctx, start)
}
