package conformance_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/ringiflow/ringi"
)

// A scenario is a sentence about every worker, and its proof.
type scenario struct {
	name string // also of its queue
	says string
	play func(*world)
}

// W3, W16: a worker in any language keeps the promises of the protocol.
func TestEveryLanguageKeepsTheProtocol(t *testing.T) {
	for _, l := range languages(t) {
		t.Run(l.name, func(t *testing.T) {
			for _, s := range append(outcomes(), faults()...) {
				t.Run(s.says, func(t *testing.T) {
					t.Parallel()
					s.play(newWorld(t, l, s.name))
				})
			}
		})
	}
}

// outcomes are the scenarios in which nothing breaks.
func outcomes() []scenario {
	return []scenario{
		{"success", "a success is the output of its step", success},
		{"retried", "a retryable failure is tried again", retried},
		{"asked", "a service that asks to be left alone is", asked},
		{"definite", "a definite failure is not tried again and leaves no effect", definite},
		{"unknown", "a failure that may have been applied is unknown", unknown},
		{"crash", "an error that nobody thought of is retryable and perhaps applied", crash},
		{"probe", "a probe tells what became of an unknown call", probe},
		{"exact", "numbers and text come back as they were", exact},
		{"big", "a big payload goes there and back", big200},
		{"large", "an output above the limit is applied and needs a person", tooLarge},
		{"huge", "an output above what a request holds is reported as that", huge},
		{"long", "heartbeats keep a long task", long},
		{"aside", "a queue that is full holds up none of the others", aside},
		{"cancel", "a function is told that its run is being undone", cancel},
		{"timeout", "a function is told that its time is up", timeout},
		{"begin", "permission comes before an effect that must not repeat", begin},
	}
}

func success(w *world) {
	w.worker()
	view := w.becomes(w.starts("  - { id: a, activity: echo, with: { n: 1 }, effect: pure }", "null"), ringi.Completed)
	if a := w.step(view, "a"); string(a.Output) != `{"n":1}` || a.Attempts != 1 {
		w.Errorf("%+v", a)
	}
}

func retried(w *world) {
	w.worker()
	view := w.becomes(w.starts("  - { id: a, activity: fail, with: { code: busy, message: wait, retryable: true, until: 3 }, effect: idempotent }", "null"), ringi.Completed)
	if a := w.step(view, "a"); string(a.Output) != `{"attempt":3}` || a.Attempts != 3 {
		w.Errorf("%+v", a)
	}
}

// What a service asked for arrives, whatever the call was for.
func asked(w *world) {
	w.worker()
	for _, steps := range []string{
		"  - { id: a, activity: fail, with: HOW, effect: idempotent }",
		"  - { id: a, activity: echo, effect: idempotent, compensate: { activity: fail, with: HOW, retry: { backoff: { initial: 50ms } } } }\n  - { fail: { code: no } }",
		"  - { id: a, activity: fail, with: { code: lost, message: hm, retryable: true, applied: unknown, until: 2 }, effect: probeable, probe: { activity: fail, with: HOW }, on_unknown: assume_applied, irreversible: true }",
	} {
		run := w.starts(strings.ReplaceAll(steps, "HOW", "{ code: busy, message: wait, retryable: true, retryAfterMs: 1500, until: 2 }"), "null")
		w.until(func() string {
			for _, e := range w.proxy.exchanges("fail", string(run)) {
				if strings.Contains(e.body, `"retryAfterMs":1500`) {
					return ""
				}
			}
			return "nobody was asked to wait: " + told(w.view(run))
		})
	}
}

func definite(w *world) {
	w.worker()
	view := w.becomes(w.starts("  - { id: a, activity: fail, with: { code: card_declined, message: 'the bank said no', retryable: false, applied: 'no' }, effect: probeable, probe: { activity: find, with: { key: '${ step.key }' } }, irreversible: true }", "null"), ringi.Failed)
	a := w.step(view, "a")
	if a.Attempts != 1 || a.Error == nil || a.Error.Code != "card_declined" || a.Error.Message != "the bank said no" || len(view.EffectsLeft) != 0 {
		w.Errorf("%s", told(view))
	}
}

func unknown(w *world) {
	w.worker()
	view := w.becomes(w.starts("  - { id: a, activity: fail, with: { code: no_answer, message: hm, retryable: true, applied: unknown }, effect: at_most_once, irreversible: true }", "null"), ringi.InIncident)
	if a := w.step(view, "a"); a.Attempts != 1 {
		w.Errorf("%s", told(view))
	}
}

func crash(w *world) {
	w.worker()
	view := w.becomes(w.starts("  - { id: a, activity: crash, effect: pure, retry: { attempts: 2 } }", "null"), ringi.Failed)
	if a := w.step(view, "a"); a.Attempts != 2 || !strings.Contains(a.Error.Message, "nobody thought of it") {
		w.Errorf("%s", told(view))
	}
	w.becomes(w.starts("  - { id: a, activity: crash, effect: at_most_once, irreversible: true }", "null"), ringi.InIncident)
}

// A call whose answer is unknown is asked for by a probe, which the same worker answers.
func probe(w *world) {
	w.worker()
	steps := "  - { id: a, activity: %s, with: %s, effect: probeable, probe: { activity: find, with: { key: '${ step.key }' } }, irreversible: true }"
	view := w.becomes(w.starts(fmt.Sprintf(steps, "fail", "{ code: no_answer, message: hm, retryable: true, applied: unknown, until: 2 }"), "null"), ringi.Completed)
	if a := w.step(view, "a"); a.Attempts != 2 { // the ledger knows nothing of it, so it is made again
		w.Errorf("%s", told(view))
	}
}

// exactInput is what no float and no careless text survives.
const exactInput = `{"big":9007199254740993,"cents":0.10,"tiny":0.30000000000000000000000000000001,"negative":-12345678901234567890.5,"list":[1,2.50,[]],
	"text":"é日本🦊 \"\\ \u2028\u0001","9007199254740993":"0.10","ключ":{"nothing":null,"yes":true}}`

func exact(w *world) {
	w.worker()
	view := w.becomes(w.starts("  - { id: a, activity: echo, with: '${ input }', effect: pure }", exactInput), ringi.Completed)
	if got, want := canonical(w.T, w.step(view, "a").Output), canonical(w.T, json.RawMessage(exactInput)); got != want {
		w.Errorf("it came back as\n%s, want\n%s", got, want)
	}
}

// canonical is a text that two values of JSON share only if all their numbers are
// the same, to the last digit.
func canonical(t *testing.T, text json.RawMessage) string {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	var rational func(v any) any
	rational = func(v any) any {
		switch v := v.(type) {
		case json.Number:
			r, ok := new(big.Rat).SetString(v.String())
			if !ok {
				t.Fatalf("%s is no number", v)
			}
			return "number " + r.String()
		case []any:
			for i := range v {
				v[i] = rational(v[i])
			}
		case map[string]any:
			for name := range v {
				v[name] = rational(v[name])
			}
		}
		return v
	}
	out, err := json.Marshal(rational(value))
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func big200(w *world) {
	w.worker()
	text := strings.Repeat("大きい", 200<<10/9)
	view := w.becomes(w.starts("  - { id: a, activity: echo, with: { text: '${ input }' }, effect: pure }", `"`+text+`"`), ringi.Completed)
	var got struct{ Text string }
	if err := json.Unmarshal(w.step(view, "a").Output, &got); err != nil || got.Text != text {
		w.Errorf("%d bytes came back of %d, %v", len(got.Text), len(text), err)
	}
}

func tooLarge(w *world) {
	w.worker()
	w.becomes(w.starts(fmt.Sprintf("  - { id: a, activity: grow, with: { bytes: %d }, effect: at_most_once, irreversible: true }", 300<<10), "null"), ringi.InIncident)
}

func huge(w *world) {
	w.worker()
	view := w.becomes(w.starts(fmt.Sprintf("  - { id: a, activity: grow, with: { bytes: %d }, effect: idempotent }", 2<<20), "null"), ringi.Failed)
	if a := w.step(view, "a"); a.Attempts != 1 || a.Error.Code != "output_too_large" {
		w.Errorf("%s", told(view))
	}
}

// Queues have slots of their own: one that is full holds up none of the others.
func aside(w *world) {
	w.worker("CONCURRENCY=1")
	w.starts(holding, "null")
	w.begun("g", 1) // and there is no room for another
	for range 3 {
		view := w.becomes(w.starts("  - { id: a, activity: echo, queue: "+w.queue+"-aside, with: { n: 1 }, effect: pure }", "null"), ringi.Completed)
		if a := w.step(view, "a"); a.Attempts != 1 {
			w.Errorf("%s", told(view))
		}
	}
	w.ledger.release("g")
}

const holding = "  - { id: a, activity: hold, with: { gate: g }, effect: idempotent }"

// A lease is kept for as long as the call takes, here for longer than the first.
func long(w *world) {
	w.worker()
	run := w.starts(holding, "null")
	w.begun("g", 1)
	w.until(func() string {
		if got := len(w.proxy.exchanges("heartbeat", string(run))); got < 5 { // one after 1.5 s, then one a second
			return fmt.Sprintf("%d heartbeats", got)
		}
		return ""
	})
	w.ledger.release("g")
	w.once(w.becomes(run, ringi.Completed), "a", "g")
}

// TC-71 and the undo of what is under way.
func cancel(w *world) {
	w.worker()
	run := w.starts(holding, "null")
	w.begun("g", 1)
	w.do(run, ringi.Cancel{Reason: "ordered twice"})
	w.becomes(run, ringi.Cancelled)
	w.endsWith("g", "cancelled")
}

func timeout(w *world) {
	w.worker()
	run := w.starts("  - { id: a, activity: hold, with: { gate: g }, effect: idempotent, timeouts: { attempt: 5s }, retry: { attempts: 1 } }", "null")
	view := w.becomes(run, ringi.Failed)
	w.endsWith("g", "timed_out")
	if a := w.step(view, "a"); a.Error == nil || a.Error.Code != "timed_out" {
		w.Errorf("%s", told(view))
	}
}

// endsWith waits until the function at a gate was told to end, for a reason.
func (w *world) endsWith(gate, reason string) {
	w.Helper()
	reason = cmp.Or(w.language.told, reason)
	w.until(func() string {
		if got := w.ledger.endings(gate); len(got) != 1 || got[0].Reason != reason {
			return fmt.Sprintf("told to end: %+v, want once, for %s", got, reason)
		}
		return ""
	})
}

// The lost answer is asked for again; the call is made once, and after it.
func begin(w *world) {
	for _, effect := range []string{"at_most_once", "probeable, probe: { activity: find, with: { key: '${ step.key }' } }"} {
		gate, _, _ := strings.Cut(effect, ",")
		w.proxy.loses("begin", 1)
		p := w.worker()
		run := w.starts("  - { id: a, activity: hold, with: { gate: "+gate+" }, effect: "+effect+", irreversible: true }", "null")
		w.begun(gate, 1)
		asked := w.proxy.exchanges("begin", string(run))
		if len(asked) != 2 || !asked[0].lost || asked[1].lost {
			w.Errorf("%s: asked for permission: %+v", gate, asked)
		}
		w.ledger.release(gate)
		w.once(w.becomes(run, ringi.Completed), "a", gate)
		p.kill()
	}
}
