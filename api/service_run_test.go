package api_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ringiflow/ringi"
)

const (
	chain = `
ringi: v1
name: chain
input: { type: object, required: [n], properties: { n: { type: number } } }
steps:
  - { id: a, activity: work.a, with: { n: "${ input.n }" }, effect: pure, retry: { attempts: 3, backoff: { initial: 1ms, factor: 1, max: 1ms } } }
  - { id: b, activity: work.b, effect: idempotent, retry: { attempts: 3, stop_on: [refused] } }
output: { got: "${ steps.a.output }" }
`
	mail = `
ringi: v1
name: mail
steps:
  - { id: send, activity: mail.send, effect: at_most_once, accepted: "a test", output: { type: object, required: [id] } }
`
	sleepy = `
ringi: v1
name: sleepy
steps:
  - { id: nap, wait: { for: 30d } }
`
)

func TestServicePublishesVersionsOnce(t *testing.T) { // W2
	onBoth(t, func(t *testing.T, w *world) {
		first := w.publish(chain)
		if !first.Created || first.Name != "chain" || first.Version != 1 || first.Digest == "" {
			t.Errorf("first %+v", first)
		}
		if again := w.publish(chain + "# a comment\n"); again.Created || again.Version != 1 || again.Digest != first.Digest {
			t.Errorf("again %+v", again)
		}
		if second := w.publish(strings.Replace(chain, "attempts: 3", "attempts: 4", 1)); !second.Created || second.Version != 2 {
			t.Errorf("second %+v", second)
		}
		p, err := w.as(op).Publish(t.Context(), ringi.Publication{File: "bad.yaml", Source: []byte("ringi: v1\nname: bad\nstesp: []\n"), Actor: op})
		if err != nil || p.Version != 0 || len(p.Problems) == 0 {
			t.Fatalf("bad %+v, %v", p, err)
		}
		if at := p.Problems[0]; at.File != "bad.yaml" || at.Line == 0 || at.ID == "" || at.Suggestion == "" {
			t.Errorf("problem %+v", at)
		}
		all := w.list(op, ringi.DefinitionQuery{Name: "chain"}).Definitions
		if len(all) != 2 || all[0].Version != 2 || len(all[0].Source) == 0 || all[0].PublishedAt.IsZero() {
			t.Errorf("versions %+v", all)
		}
		if none := w.list(op, ringi.DefinitionQuery{Name: "none"}).Definitions; len(none) != 0 {
			t.Errorf("versions of nothing %+v", none)
		}
	})
}

func TestServiceStartsOneRunPerKey(t *testing.T) { // TC-26
	onBoth(t, func(t *testing.T, w *world) {
		w.publish(chain)
		svc := w.as(op)
		runs := make([]ringi.Result, 16)
		var all sync.WaitGroup
		for i := range runs {
			all.Go(func() {
				runs[i] = svc.Do(t.Context(), ringi.Command{Actor: op, Do: ringi.Start{Definition: "chain", Key: "k", Input: json.RawMessage(`{"n":1.0}`)}})[0]
			})
		}
		all.Wait()
		made := 0
		for _, res := range runs {
			if res.Err != nil || res.Run != runs[0].Run || res.Version != 1 {
				t.Errorf("start %+v", res)
			}
			if res.Created {
				made++
			}
		}
		if made != 1 {
			t.Errorf("%d of 16 starts made a run", made)
		}
		other := w.do(op, "", ringi.Start{Definition: "chain", Key: "k", Input: json.RawMessage(`{"n":2}`)})
		w.wantCode("the key with other input", other.Err, ringi.CodeStartKeyConflict)
		w.wantCode("no such definition", w.do(op, "", ringi.Start{Definition: "none"}).Err, ringi.CodeNotFound)
		w.wantCode("input that breaks the schema", w.do(op, "", ringi.Start{Definition: "chain", Input: json.RawMessage(`{}`)}).Err, ringi.CodeInvalid)
		if n := len(w.list(op, ringi.RunQuery{}).Runs); n != 1 {
			t.Errorf("%d runs", n)
		}
	})
}

func TestServiceRunsAProcessToItsEnd(t *testing.T) { // W1, W9
	onBoth(t, func(t *testing.T, w *world) {
		w.publish(chain)
		run := w.start("chain", "k", `{"n":9007199254740993}`)
		task := w.task()
		if task.Run != run || task.Step != "a" || task.Activity != "work.a" || string(task.Input) != `{"n":9007199254740993}` || task.Attempt != 1 ||
			task.Key == "" || task.Effect != "pure" || task.Begin || task.Lease <= 0 || task.Heartbeat <= 0 || task.Timeout <= 0 || task.Version != 1 || task.Definition != "chain" {
			t.Errorf("task %+v", task)
		}
		do := complete(task, `{"html":"<&>","x":0.10}`)
		do.Want = &ringi.PollRequest{Worker: "w", Queue: "default", Max: 2}
		res := w.must(hand, run, do)
		if len(res.Tasks) != 1 || res.Tasks[0].Step != "b" || res.Run != run || res.Seq == 0 {
			t.Fatalf("result %+v", res)
		}
		w.must(hand, run, complete(res.Tasks[0], ``))
		v := w.becomes(run, ringi.Completed)
		var output struct {
			Got struct {
				HTML string
				X    json.Number
			}
		}
		if err := json.Unmarshal(v.Output, &output); err != nil || output.Got.HTML != "<&>" || strings.TrimRight(output.Got.X.String(), "0") != "0.1" {
			t.Errorf("output %s: %v", v.Output, err)
		}
		if v.Key != "k" || v.Requester != op.ID || v.EndedAt.IsZero() || v.StartedAt.IsZero() || len(v.Steps) != 2 || v.Steps[0].Outcome != "succeeded" {
			t.Errorf("view %+v", v)
		}
		var kinds []string
		for after := int64(0); ; {
			page, err := w.as(op).History(t.Context(), ringi.HistoryQuery{Run: run, After: after, Limit: 2})
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range page.Events {
				kinds = append(kinds, e.Kind)
			}
			if after = page.Next; after == 0 {
				break
			}
		}
		want := []string{"RunStarted", "ActivityScheduled", "ActivitySucceeded", "ActivityScheduled", "ActivitySucceeded", "RunEnded"}
		if !slices.Equal(kinds, want) {
			t.Errorf("history %v", kinds)
		}
		_, err := w.as(op).Run(t.Context(), 0, "0198c5a8-0000-7000-8000-000000000000")
		w.wantCode("another run", err, ringi.CodeNotFound)
		_, err = w.as(op).History(t.Context(), ringi.HistoryQuery{Run: "0198c5a8-0000-7000-8000-000000000000"})
		w.wantCode("another run's history", err, ringi.CodeNotFound)
	})
}

func TestServiceListsRunsInPages(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		w.publish(sleepy)
		var want []ringi.RunID
		for i := range 7 {
			want = append(want, w.start("sleepy", fmt.Sprint("k", i), ``))
		}
		slices.Sort(want)
		slices.Reverse(want) // the newest first; ids are drawn in order of time
		var got []ringi.RunID
		for after, pages := "", 0; ; pages++ {
			p := w.list(op, ringi.RunQuery{After: after, Limit: 3})
			for _, r := range p.Runs {
				got = append(got, r.Run)
			}
			if after = p.Next; after == "" || pages > 3 {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		w.must(op, want[0], ringi.Cancel{Reason: "test"})
		for _, c := range []struct {
			q    ringi.RunQuery
			want int
		}{
			{ringi.RunQuery{Status: []ringi.Status{ringi.Waiting}}, 6},
			{ringi.RunQuery{Status: []ringi.Status{ringi.Waiting, ringi.Cancelled}}, 7},
			{ringi.RunQuery{Key: "k3"}, 1},
			{ringi.RunQuery{Definition: "none"}, 0},
		} {
			if n := len(w.list(op, c.q).Runs); n != c.want {
				t.Errorf("%+v: %d runs, want %d", c.q, n, c.want)
			}
		}
		_, err := w.as(op).List(t.Context(), ringi.RunQuery{After: "not a cursor"})
		w.wantCode("a cursor that is none", err, ringi.CodeInvalid)
	})
}

func TestServiceSteersRuns(t *testing.T) { // W23, W24, TC-62, TC-64
	onBoth(t, func(t *testing.T, w *world) {
		w.publish(sleepy)
		run := w.start("sleepy", "", ``)
		w.must(op, run, ringi.Pause{Reason: "lunch"})
		if v := w.view(run); v.Status != ringi.Paused {
			t.Errorf("paused: %s", v.Status)
		}
		w.must(op, run, ringi.Resume{Reason: "done"})
		if v := w.view(run); v.Status != ringi.Waiting || v.WaitingFor == "" {
			t.Errorf("resumed: %s for %q", v.Status, v.WaitingFor)
		}
		if res := w.must(op, run, ringi.Cancel{Reason: "not needed"}); res.Status != ringi.Cancelled {
			t.Errorf("cancelled: %+v", res)
		}
		again := w.do(op, run, ringi.Cancel{Reason: "not needed"})
		if again.Err == nil && again.Answer.Outcome != ringi.Repeated {
			t.Errorf("cancelled again: %+v", again)
		}
		w.wantCode("pause of a run that has ended", w.do(op, run, ringi.Pause{}).Err, ringi.CodeFinal)
		other := w.start("sleepy", "", ``)
		w.must(op, other, ringi.Terminate{Reason: "broken"})
		if v := w.view(other); v.Status != ringi.Terminated {
			t.Errorf("terminated: %+v", v)
		}
		w.wantCode("cancel of no run", w.do(op, "0198c5a8-0000-7000-8000-000000000000", ringi.Cancel{Reason: "x"}).Err, ringi.CodeNotFound)
	})
}
