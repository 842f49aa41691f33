package engine_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
	"github.com/ringiflow/ringi/workflow"
)

// W23: the trail says what was asked in the words of the API. Payloads stand in
// the log alone; a start's input is named by its digest.
func TestTheAuditTrailSaysWhatWasAsked(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		const input = `{"key":"secret"}`
		digest, err := workflow.Digest([]byte(input))
		if err != nil {
			t.Fatal(err)
		}
		run := w.do(alice, "", ringi.Start{Definition: "wait", Key: "K", Input: json.RawMessage(input)}).Run
		w.do(alice, run, ringi.Pause{Reason: "lunch"})
		w.do(alice, run, ringi.Resume{})
		w.do(alice, run, ringi.DecideApproval{Step: "w", Digest: "d", Comment: "no"})
		w.do(operator, run, ringi.Terminate{Reason: "enough"})
		records, err := w.mem.Audit(t.Context(), store.Key{Tenant: 1, Run: run}, 0)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{
			`{"definition":"wait","version":1,"key":"K","inputDigest":"` + digest + `"}`,
			`{"reason":"lunch"}`,
			`{}`,
			`{"step":"w","approve":false,"digest":"d","comment":"no"}`,
			`{"reason":"enough"}`,
		}
		if len(records) != len(want) {
			t.Fatalf("%d records, want %d", len(records), len(want))
		}
		for i, r := range records {
			if string(r.Data) != want[i] {
				t.Errorf("%s says %s, want %s", r.Kind, r.Data, want[i])
			}
		}
	})
}

// S-16: an event's id names one event. The same data written otherwise is the
// same event.
func TestAnEventIDNamesOneEvent(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		send := func(e ringi.SendEvent) ringi.Result { return w.do(operator, "", e) }
		first := ringi.SendEvent{ID: "e1", Name: "paid", Key: "k", Data: json.RawMessage(`{"amount":10,"by":"x"}`)}
		if r := send(first); r.Err != nil || !r.Created {
			t.Fatalf("first: %+v", r)
		}
		again := first
		again.Data = json.RawMessage(`{ "by": "x", "amount": 10.0 }`)
		if r := send(again); r.Err != nil || r.Created || r.Answer.Outcome != ringi.Repeated {
			t.Errorf("the same, written otherwise: %+v, want repeated", r)
		}
		for what, change := range map[string]func(*ringi.SendEvent){
			"name": func(e *ringi.SendEvent) { e.Name = "shipped" },
			"key":  func(e *ringi.SendEvent) { e.Key = "other" },
			"data": func(e *ringi.SendEvent) { e.Data = json.RawMessage(`{"amount":11,"by":"x"}`) },
			"none": func(e *ringi.SendEvent) { e.Data = nil },
		} {
			other := first
			change(&other)
			r := send(other)
			var is *ringi.Error
			if !errors.As(r.Err, &is) || is.Code != ringi.CodeInvalid || is.Hint == "" {
				t.Errorf("another %s: %+v, want invalid and a hint", what, r)
			}
		}
	})
}

// A start that finds its run is answered with where that run stands.
func TestAStartThatIsRepeatedSaysWhereTheRunStands(t *testing.T) { // W6
	bubble(t, func(t *testing.T, w *world) {
		run := w.begin("nap", "K", "null")
		w.do(alice, run, ringi.Pause{})
		want := w.view(run).Seq
		for range 2 { // of the store, and of the same node once more
			r := w.do(operator, "", ringi.Start{Definition: "nap", Key: "K", Input: json.RawMessage("null")})
			if r.Err != nil || r.Created || r.Run != run || r.Seq != want || r.Status != ringi.Paused {
				t.Errorf("%+v, want run %s at event %d, paused", r, run, want)
			}
		}
	})
}
