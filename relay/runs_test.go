package relay_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/engine"
	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/relay"
	"github.com/ringiflow/ringi/store"
)

const (
	plainProcess = `
ringi: v1
name: plain
steps: [ { id: paid, wait: { event: order.paid, key: "${ input.order }" } } ]
`
	keyedProcess = `
ringi: v1
name: keyed
input: { type: object, required: [order], properties: { order: { type: string } } }
start: { key: "${ input.order }" }
steps: [ { id: paid, wait: { event: order.paid, key: "${ input.order }" } } ]
`
)

// startEngine is ringi in this process, with the two processes.
func startEngine(t *testing.T) *engine.Engine {
	t.Helper()
	db := store.NewMemory(store.MemoryConfig{})
	eng, err := engine.New(engine.Config{Store: db, Records: db, Catalog: db, Events: db})
	if err != nil {
		t.Fatal(err)
	}
	eng.Start()
	t.Cleanup(func() {
		if err := eng.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, source := range []string{plainProcess, keyedProcess} {
		got, err := eng.Publish(t.Context(), ringi.Publication{Tenant: ringi.DefaultTenant, Actor: ringi.Actor{ID: "test", Kind: ringi.Machine}, Source: []byte(source)})
		if err != nil || got.Version != 1 {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	return eng
}

func start(t *testing.T, n int, s outbox.RunStart) outbox.Message {
	t.Helper()
	m, err := outbox.StartRun(s)
	if err != nil {
		t.Fatal(err)
	}
	at := time.UnixMilli(int64(1_700_000_000_000 + n))
	m.ID, m.CreatedAt = outbox.NewID(at), at
	return m
}

// runs are the start keys of all runs and how many completed.
func runs(t *testing.T, eng *engine.Engine) (keys map[string]int, completed int) {
	t.Helper()
	page, err := eng.List(t.Context(), ringi.RunQuery{Tenant: ringi.DefaultTenant})
	if err != nil {
		t.Fatal(err)
	}
	keys = map[string]int{}
	for _, r := range page.Runs {
		keys[r.Definition+" "+r.Key]++
		if r.Status == ringi.Completed {
			completed++
		}
	}
	return keys, completed
}

func TestAMessageStartsOneRunHoweverOftenItComes(t *testing.T) { // O10
	eng := startEngine(t)
	sink := relay.Runs(eng)
	input := json.RawMessage(`{"order":"A"}`)
	msgs := []outbox.Message{
		start(t, 1, outbox.RunStart{Definition: "plain", Input: input}),
		start(t, 2, outbox.RunStart{Definition: "keyed", Input: input}),
		start(t, 3, outbox.RunStart{Definition: "keyed", Input: input}), // the same order
		start(t, 4, outbox.RunStart{Definition: "keyed", Version: 1, Key: "K", Input: input}),
	}
	for range 2 {
		for i, err := range sink.Publish(t.Context(), msgs) {
			if err != nil {
				t.Errorf("message %d: %v", i, err)
			}
		}
	}
	keys, _ := runs(t, eng)
	if len(keys) != 3 || keys["plain "+msgs[0].ID] != 1 || keys["keyed A"] != 1 || keys["keyed K"] != 1 {
		t.Errorf("the runs are %v", keys)
	}
}

func TestEveryOtherMessageIsAnEvent(t *testing.T) { // O10
	eng := startEngine(t)
	sink := relay.Runs(eng)
	paid := order(9, "A")
	paid.Type, paid.Payload = "order.paid", []byte(`{"amount":12}`)
	for _, msgs := range [][]outbox.Message{{start(t, 1, outbox.RunStart{Definition: "keyed", Input: json.RawMessage(`{"order":"A"}`)})}, {paid}, {paid}} {
		if err := sink.Publish(t.Context(), msgs)[0]; err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the end of the run", func() bool {
		_, completed := runs(t, eng)
		return completed == 1
	})
}

func TestWhatRingiCanNeverTakeIsRefused(t *testing.T) { // O-17
	eng := startEngine(t)
	sink := relay.Runs(eng)
	text := order(1, "A")
	text.ContentType, text.Payload = "text/plain", []byte("no JSON")
	changed := start(t, 4, outbox.RunStart{Definition: "keyed", Key: "K", Input: json.RawMessage(`{"order":"other"}`)})
	if err := sink.Publish(t.Context(), []outbox.Message{start(t, 3, outbox.RunStart{Definition: "keyed", Key: "K", Input: json.RawMessage(`{"order":"A"}`)})})[0]; err != nil {
		t.Fatal(err)
	}
	for what, m := range map[string]outbox.Message{
		"no JSON":   text,
		"nosuch":    start(t, 2, outbox.RunStart{Definition: "nosuch"}),
		"other":     changed,
		"version 7": start(t, 5, outbox.RunStart{Definition: "plain", Version: 7}),
		"keyed":     start(t, 6, outbox.RunStart{Definition: "keyed", Input: json.RawMessage(`{}`)}),
	} {
		if err := sink.Publish(t.Context(), []outbox.Message{m})[0]; !outbox.Refused(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := eng.Close(); err != nil {
		t.Fatal(err)
	}
	if err := sink.Publish(t.Context(), []outbox.Message{order(8, "A")})[0]; err == nil || outbox.Refused(err) {
		t.Errorf("without an engine: %v", err)
	}
}
