package conformance_test

import (
	"fmt"
	"testing"

	"github.com/ringiflow/ringi"
)

// faults are the scenarios in which something breaks or ends.
func faults() []scenario {
	return []scenario{
		{"lost-poll", "what a lost poll answer held is handed out again", lostPoll},
		{"lost-complete", "a report whose answer got lost is repeated", lostComplete},
		{"lost-fail", "a failure whose answer got lost counts once", lostFail},
		{"between", "a report is kept while something in between refuses it", between},
		{"killed", "what a killed worker had is done by another", killed},
		{"killed-once", "what must not repeat is not repeated after a kill", killedOnce},
		{"restart", "a task outlives a restart of the server", restart},
		{"drain", "a worker that is asked to stop finishes what runs and takes no more", drain},
		{"key", "a wrong key is tried again until an operator has mended it", wrongKey},
	}
}

// W16: the hand-over lapses, without using up an attempt.
func lostPoll(w *world) {
	w.proxy.loses("poll", 1)
	w.worker()
	run := w.starts(holding, "null")
	w.ledger.release("g")
	w.once(w.becomes(run, ringi.Completed), "a", "g")
}

func lostComplete(w *world) {
	w.proxy.loses("complete", 2)
	w.worker()
	run := w.starts(holding, "null")
	w.ledger.release("g")
	w.once(w.becomes(run, ringi.Completed), "a", "g")
	w.until(func() string {
		told := w.proxy.exchanges("complete", string(run))
		if len(told) < 3 {
			return fmt.Sprintf("it was reported %d times", len(told))
		}
		for _, e := range told {
			if e.status != 200 {
				return fmt.Sprintf("%+v", e)
			}
		}
		return ""
	})
}

func lostFail(w *world) {
	w.proxy.loses("fail", 1)
	w.worker()
	view := w.becomes(w.starts("  - { id: a, activity: fail, with: { code: busy, message: wait, retryable: true, until: 2 }, effect: idempotent }", "null"), ringi.Completed)
	if a := w.step(view, "a"); a.Attempts != 2 {
		w.Errorf("%s", told(view))
	}
}

// What is not the server's word about a report does not settle it.
func between(w *world) {
	w.proxy.refuses("complete",
		exchange{status: 502, answer: "bad gateway"}, exchange{status: 400, answer: "what?"}, exchange{status: 404},
		exchange{status: 421, answer: `{"type":"about:blank","title":"Misdirected Request","status":421,"code":"invalid","detail":"another host","retryable":false}`})
	w.worker()
	run := w.starts(holding, "null")
	w.ledger.release("g")
	w.once(w.becomes(run, ringi.Completed), "a", "g")
}

// W4, TC-14: the lease ends, and the attempt after it has the same key.
func killed(w *world) {
	w.lease = "1s"
	first := w.worker("CONCURRENCY=1")
	run := w.starts(holding, "null")
	w.begun("g", 1)
	w.until(func() string { // a hand-over that was not confirmed would not use up an attempt
		return lackOf(len(w.proxy.exchanges("heartbeat", string(run))) > 0, "no heartbeat has come")
	})
	first.kill()
	w.worker("CONCURRENCY=1")
	w.begun("g", 2)
	w.ledger.release("g")
	w.becomes(run, ringi.Completed)
	effects := w.ledger.effects("g")
	if effects[0].Key != effects[1].Key || effects[0].Attempt != 1 || effects[1].Attempt != 2 {
		w.Errorf("%+v", effects)
	}
}

func killedOnce(w *world) {
	w.lease = "1s"
	first := w.worker()
	run := w.starts("  - { id: a, activity: hold, with: { gate: g }, effect: at_most_once, irreversible: true }", "null")
	w.begun("g", 1)
	first.kill()
	w.worker()
	w.becomes(run, ringi.InIncident)
	if got := w.ledger.effects("g"); len(got) != 1 {
		w.Errorf("%+v", got)
	}
}

// TC-17: nobody else gets the task, also when the report finds no server.
func restart(w *world) {
	w.worker()
	run := w.starts(holding, "null")
	w.begun("g", 1)
	w.down()
	w.ledger.release("g")
	w.up()
	w.once(w.becomes(run, ringi.Completed), "a", "g")
}

func drain(w *world) {
	p := w.worker()
	first := w.starts(holding, "null")
	w.begun("g", 1)
	w.until(func() string { // it has room for more and waits for it
		return lackOf(w.proxy.polling() > 0, "the worker does not poll")
	})
	p.stop()
	w.until(func() string { return lackOf(w.proxy.polling() == 0, "the worker still polls") })
	second := w.starts(holding, "null")
	w.ledger.release("g")
	w.until(func() string { return lackOf(p.ended(), "the worker runs") })
	if code := p.ProcessState.ExitCode(); code != 0 {
		w.Errorf("it exits with %d: %s", code, p.out)
	}
	w.once(w.becomes(first, ringi.Completed), "a", "g")
	w.worker()
	w.becomes(second, ringi.Completed)
}

func lackOf(holds bool, lack string) string {
	if holds {
		return ""
	}
	return lack
}

// A worker does not end for a key that an operator may still add, and says so.
func wrongKey(w *world) {
	w.locked.Store(true)
	p := w.worker()
	w.until(func() string {
		return lackOf(len(w.proxy.exchanges("poll", "")) >= 3 && p.out.String() != "", "the worker says nothing, or asks no more")
	})
	w.locked.Store(false)
	w.becomes(w.starts("  - { id: a, activity: echo, with: { n: 1 }, effect: pure }", "null"), ringi.Completed)
}

// Workers of all languages share a queue, some are killed, and every step is done
// in the end, once per attempt.
func TestAllLanguagesShareAQueue(t *testing.T) {
	t.Parallel()
	const runs = 12
	all := languages(t)
	w := newWorld(t, all[0], "shared")
	var workers []*process
	for _, l := range all {
		workers = append(workers, w.workerOf(l, "CONCURRENCY=1"))
	}
	var started []ringi.RunID
	for range runs {
		started = append(started, w.starts(`  - { id: a, activity: hold, with: { gate: g }, effect: idempotent }
  - { id: b, activity: echo, with: { n: 0.10 }, effect: pure }
  - { id: c, activity: fail, with: { code: busy, message: wait, retryable: true, until: 2 }, effect: idempotent }`, "null"))
	}
	w.begun("g", len(all)) // each has one, and no room for another
	took := map[string]int{}
	for _, e := range w.ledger.effects("g") {
		took[e.By]++
	}
	for _, l := range all {
		if took[l.name] != 1 {
			t.Errorf("%s took %d of the first %d", l.name, took[l.name], len(all))
		}
	}
	for _, p := range workers { // in the middle of their tasks
		p.kill()
	}
	for _, l := range all {
		w.workerOf(l)
	}
	w.ledger.release("g")
	for _, run := range started {
		view := w.becomes(run, ringi.Completed)
		if c := w.step(view, "c"); string(c.Output) != `{"attempt":2}` {
			t.Errorf("%s", told(view))
		}
	}
	counts := map[string]int{}
	for _, e := range w.ledger.effects("g") {
		counts[e.Key]++
	}
	again := 0
	for _, n := range counts {
		again += n - 1
	}
	if len(counts) != runs || again != len(all) {
		t.Errorf("%d steps and %d repetitions, want %d and one per killed worker: %v", len(counts), again, runs, counts)
	}
}
