package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/engine/replay"
	"github.com/ringiflow/ringi/store"
	"github.com/ringiflow/ringi/workflow"
)

func TestTenPeopleVoteAtOnce(t *testing.T) { // W20, W21, H-26
	bubble(t, func(t *testing.T, w *world) {
		run := w.begin("vote", "", "null")
		page, err := w.eng.List(t.Context(), ringi.ApprovalQuery{For: &alice})
		if err != nil || len(page.Approvals) != 1 {
			t.Fatalf("approvals %+v, %v", page.Approvals, err)
		}
		digest := page.Approvals[0].Digest
		var all sync.WaitGroup
		results := make([]ringi.Result, 10)
		for i := range results {
			all.Go(func() {
				results[i] = w.do(person(fmt.Sprint("p", i)), run, ringi.DecideApproval{Step: "v", Approve: true, Digest: digest})
			})
		}
		all.Wait()
		accepted, late := 0, 0
		for _, r := range results {
			switch {
			case r.Err == nil && r.Answer.Outcome == ringi.Accepted:
				accepted++
			case ringi.ErrorCode(r.Err) == ringi.CodeAlreadyDecided:
				late++
			default:
				t.Errorf("vote: %+v", r)
			}
		}
		if accepted != 3 || late != 7 {
			t.Errorf("%d votes counted and %d came too late, want the quorum of 3 and 7", accepted, late)
		}
		w.wantStatus(run, ringi.Completed)
		audit, err := w.mem.Audit(t.Context(), store.Key{Tenant: 1, Run: run}, 0)
		if err != nil || len(audit) != 10 {
			t.Fatalf("%d audit records, %v: want all ten votes, the refused ones too", len(audit), err)
		}
		for _, a := range audit {
			if a.Kind != "decide_approval" || !strings.HasPrefix(a.Actor, "p") || len(a.Head) == 0 || a.At.IsZero() {
				t.Errorf("audit record %+v names no voter or no chain head", a)
			}
		}
		w.clean()
	})
}

func TestWhatOperatorsDoIsOnRecord(t *testing.T) { // W23
	bubble(t, func(t *testing.T, w *world) {
		run := w.begin("nap", "", "null")
		w.do(operator, run, ringi.Cancel{Reason: "a mistake"})
		w.do(operator, run, ringi.Pause{Reason: "too late"})
		w.do(alice, "00000000-0000-7000-8000-000000000000", ringi.Cancel{Reason: "no such run"})
		all, err := w.mem.Audit(t.Context(), store.Key{Tenant: 1}, 0)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, a := range all {
			if a.Kind == "publish" {
				continue
			}
			got = append(got, fmt.Sprintf("%s %s %s %s head=%v", a.Actor, a.Kind, a.Answer, a.Data, len(a.Head) > 0))
		}
		want := []string{
			`op cancel accepted {"reason":"a mistake"} head=true`,
			`op pause final {"reason":"too late"} head=true`,
			`alice cancel not_found {"reason":"no such run"} head=false`,
		}
		if !slices.Equal(got, want) {
			t.Errorf("records\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}

func TestEventsBeforeAtAndAfterTheirWait(t *testing.T) { // TC-46, TC-47, TC-50
	send := func(w *world, id, key string) ringi.Result {
		return w.do(operator, "", ringi.SendEvent{ID: id, Name: "paid", Key: key, Data: json.RawMessage(`{"id":"` + id + `"}`)})
	}
	start := func(w *world, key string) ringi.RunID { return w.begin("wait", "", `{"key":"`+key+`"}`) }
	bubble(t, func(t *testing.T, w *world) {
		send(w, "e1", "before")
		before := start(w, "before")
		after := start(w, "after")
		send(w, "e2", "after")
		var all sync.WaitGroup
		var same [8]ringi.RunID
		all.Go(func() { send(w, "e3", "same") })
		for i := range same {
			all.Go(func() { same[i] = start(w, "same") })
		}
		all.Wait()
		if r := send(w, "e3", "same"); r.Err != nil || r.Answer.Outcome != ringi.Repeated {
			t.Errorf("the same event again: %+v, want repeated", r)
		}
		other := start(w, "other")
		<-time.After(1500 * time.Millisecond)
		for _, run := range append(same[:], before, after) {
			w.wantStatus(run, ringi.Completed)
			if n := count(w.kinds(run), "EventReceived"); n != 1 {
				t.Errorf("run %s received %d events, want 1", run, n)
			}
		}
		w.wantStatus(other, ringi.Waiting)
		w.clean()
	})
}

func TestAnEventThatExpiredIsNotMatched(t *testing.T) { // TC-49
	bubble(t, func(t *testing.T, w *world) {
		w.do(operator, "", ringi.SendEvent{ID: "e", Name: "paid", Key: "k", Keep: time.Minute})
		<-time.After(2 * time.Minute)
		run := w.begin("wait", "", `{"key":"k"}`)
		<-time.After(5 * time.Second)
		w.wantStatus(run, ringi.Waiting)
	})
}

func TestAnEventIsDeliveredAlthoughEveryWakeUpWasLost(t *testing.T) { // TC-52
	bubble(t, func(t *testing.T, w *world) {
		run := w.begin("wait", "", `{"key":"k"}`)
		// Another node took the event and died before it looked for waits.
		now := time.Now()
		if _, err := w.mem.Send(t.Context(), 1, ringi.SentEvent{ID: "e", Name: "paid", Key: "k", SentAt: now}, now.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		<-time.After(1100 * time.Millisecond)
		w.wantStatus(run, ringi.Completed)
	})
}

func TestATimerFiresOnceAfterAnOutage(t *testing.T) { // TC-01, TC-04, W17
	bubble(t, func(t *testing.T, w *world) {
		run := w.begin("nap", "", "null")
		w.crash()
		<-time.After(3 * time.Hour)
		w.restart()
		<-time.After(500 * time.Millisecond)
		w.wantStatus(run, ringi.Completed)
		if n := count(w.kinds(run), "TimerFired"); n != 1 {
			t.Errorf("fired %d times, want 1", n)
		}
		w.clean()
	})
}

func TestTwoNodesFireATimerOnce(t *testing.T) { // TC-08, W17
	bubble(t, func(t *testing.T, w *world) {
		other := &world{t: t, mem: w.mem, tap: &tap{Store: w.mem}, conf: w.conf}
		other.conf.Store = other.tap
		other.start()
		defer other.eng.Close()
		var runs []ringi.RunID
		for range 20 {
			runs = append(runs, w.begin("nap", "", "null"))
		}
		<-time.After(time.Hour + time.Second)
		for _, run := range runs {
			w.wantStatus(run, ringi.Completed)
			if n := count(w.kinds(run), "TimerFired"); n != 1 {
				t.Errorf("fired %d times, want 1", n)
			}
		}
	})
}

func TestTheRowOfADroppedFiringIsDeleted(t *testing.T) { // TC-05, TC-37
	bubble(t, func(t *testing.T, w *world) {
		run := w.begin("nap", "", "null")
		w.do(operator, run, ringi.Cancel{Reason: "x"})
		// A leftover, as an older version may have left it.
		ghost := store.Write{Key: store.Key{Tenant: 1, Run: run}}
		loaded, err := w.mem.Load(t.Context(), ghost.Key)
		if err != nil {
			t.Fatal(err)
		}
		ghost.First = int64(len(w.kinds(run))) + 1
		ghost.Last, ghost.Prev = ghost.First-1, loaded[0].Head
		ghost.Timers = []store.TimerChange{{ID: "step:w", Row: &ringi.TimerRow{ID: "step:w", Generation: 1, FireAt: time.Now()}}}
		if _, err := w.mem.Commit(t.Context(), ghost); err != nil {
			t.Fatal(err)
		}
		if r, err := replay.Run(t.Context(), w.mem, replay.Query{Run: run}); err != nil || len(r.Mismatches) != 1 || r.Mismatches[0].What != "timer" {
			t.Fatalf("replay %+v, %v: want the leftover timer", r, err)
		}
		<-time.After(2 * time.Second)
		w.clean()
	})
}

func TestADefinitionAboveAQuotaIsRefused(t *testing.T) { // W3
	bubble(t, func(t *testing.T, w *world) {
		var b strings.Builder
		b.WriteString("ringi: v1\nname: long\nsteps:\n")
		for i := range 21 {
			fmt.Fprintf(&b, "  - { id: s%d, set: { x%d: 1 } }\n", i, i)
		}
		p, err := w.eng.Publish(t.Context(), ringi.Publication{Source: []byte(b.String())})
		if err != nil || p.Version != 0 || len(p.Problems) != 1 || p.Problems[0].ID != "RG0032" || p.Problems[0].Line != 24 {
			t.Errorf("21 steps: %+v, %v, want the problem of the 21st", p, err)
		}
	})
}

func TestPublishingAgainReturnsTheVersionThatExists(t *testing.T) { // W2
	bubble(t, func(t *testing.T, w *world) {
		run := w.begin("one", "", "null")
		p, err := w.eng.Publish(t.Context(), ringi.Publication{Source: []byte(oneStep)})
		if err != nil || p.Version != 1 || p.Created {
			t.Errorf("same source: %+v, %v, want version 1", p, err)
		}
		p, err = w.eng.Publish(t.Context(), ringi.Publication{Source: []byte(strings.Replace(oneStep, "work.a", "work.z", 1))})
		if err != nil || p.Version != 2 || !p.Created {
			t.Fatalf("other source: %+v, %v, want version 2", p, err)
		}
		if r := w.do(operator, "", ringi.Start{Definition: "one"}); r.Version != 2 {
			t.Errorf("a start without a version began %+v, want the latest", r)
		}
		if v := w.view(run); v.Version != 1 {
			t.Errorf("the run that was running is of version %d, want 1", v.Version)
		}
		p, err = w.eng.Publish(t.Context(), ringi.Publication{File: "x.yaml", Source: []byte("ringi: v1\nname: x\nstps: []\n")})
		if err != nil || len(p.Problems) == 0 || p.Version != 0 || p.Problems[0].Line != 3 {
			t.Errorf("a broken source: %+v, %v, want its problems", p, err)
		}
	})
}

func TestTheDoorRefusesWhatCannotBeKept(t *testing.T) { // TC-79
	bubble(t, func(t *testing.T, w *world) {
		run := w.begin("wait", "", `{"key":"k"}`)
		w.tap.set(func() { w.tap.commits = nil })
		long := strings.Repeat("x", 257)
		for name, c := range map[string]struct {
			cmd  ringi.Command
			want ringi.Code
		}{
			"long key":         {ringi.Command{Do: ringi.Start{Definition: "wait", Key: long, Input: json.RawMessage(`{"key":"k"}`)}}, ringi.CodeInvalid},
			"NUL in key":       {ringi.Command{Do: ringi.Start{Definition: "wait", Key: "a\x00b", Input: json.RawMessage(`{"key":"k"}`)}}, ringi.CodeInvalid},
			"no UTF-8":         {ringi.Command{Run: run, Do: ringi.Cancel{Reason: "\xff"}}, ringi.CodeInvalid},
			"no JSON":          {ringi.Command{Do: ringi.Start{Definition: "wait", Input: json.RawMessage(`{`)}}, ringi.CodeInvalid},
			"too many digits":  {ringi.Command{Do: ringi.Start{Definition: "one", Input: json.RawMessage(strings.Repeat("9", 35))}}, ringi.CodeInvalid},
			"breaks schema":    {ringi.Command{Do: ringi.Start{Definition: "wait", Input: json.RawMessage(`{"key":7}`)}}, ringi.CodeInvalid},
			"too large":        {ringi.Command{Do: ringi.Start{Definition: "one", Input: json.RawMessage(`"` + strings.Repeat("x", ringi.MaxPayload) + `"`)}}, ringi.CodeTooLarge},
			"no definition":    {ringi.Command{Do: ringi.Start{Definition: "nobody"}}, ringi.CodeNotFound},
			"no version":       {ringi.Command{Do: ringi.Start{Definition: "one", Version: 9}}, ringi.CodeNotFound},
			"no run id":        {ringi.Command{Run: "nonsense", Do: ringi.Pause{}}, ringi.CodeNotFound},
			"engine's command": {ringi.Command{Run: run, Do: ringi.FireTimer{Timer: "step:w", Generation: 1}}, ringi.CodeInvalid},
			"repair":           {ringi.Command{Do: ringi.Start{Definition: "one", Repair: &ringi.Repair{}}}, ringi.CodeInvalid},
			"no command":       {ringi.Command{Run: run}, ringi.CodeInvalid},
			"event name":       {ringi.Command{Do: ringi.SendEvent{Key: "k"}}, ringi.CodeInvalid},
		} {
			if r := w.eng.Do(t.Context(), c.cmd)[0]; ringi.ErrorCode(r.Err) != c.want {
				t.Errorf("%s: %+v, want %s", name, r, c.want)
			}
		}
		if len(w.tap.commits) != 0 {
			t.Errorf("%d commits for what the door refused, want none", len(w.tap.commits))
		}
		unknown := ringi.Command{Run: "00000000-0000-7000-8000-000000000000", Do: ringi.Pause{}}
		if r := w.eng.Do(t.Context(), unknown)[0]; ringi.ErrorCode(r.Err) != ringi.CodeNotFound {
			t.Errorf("a run that does not exist: %+v, want not_found", r)
		}
	})
}

func TestAPanicInTheRulesHurtsOneRunOnly(t *testing.T) { // TC-38
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.eng.Close()
		bomb := &bomb{}
		w.conf.Evaluator = bomb
		w.restart()
		defer w.eng.Close()
		bad, good := w.begin("three", "bad", "null"), w.begin("three", "good", "null")
		tasks := w.poll("w", 2, time.Second)
		if len(tasks) != 2 {
			t.Fatalf("%d tasks, want 2", len(tasks))
		}
		bomb.armed = true
		for _, task := range tasks {
			bomb.on = string(bad)
			r := w.complete(task, `1`)
			if want := task.Run == bad; (ringi.ErrorCode(r.Err) == ringi.CodeInternal) != want {
				t.Errorf("run bad=%v: %+v", want, r)
			}
		}
		if v := w.view(good); v.Seq != 4 {
			t.Errorf("the good run stands at %d, want 4", v.Seq)
		}
		if r := w.do(operator, bad, ringi.Pause{}); ringi.ErrorCode(r.Err) != ringi.CodeInternal {
			t.Errorf("a command to the quarantined run: %+v, want internal", r)
		}
		w.clean()
	})
}

// A bomb is an evaluator that panics for one run.
type bomb struct {
	workflow.CEL
	armed bool
	on    string
}

func (b *bomb) Value(v *workflow.Value, env *workflow.Env) (json.RawMessage, error) {
	if b.armed && env.Run.ID == b.on {
		panic("impossible state")
	}
	return b.CEL.Value(v, env)
}

func TestAnUnreadableRunIsShownAsSuch(t *testing.T) { // TC-80
	bubble(t, func(t *testing.T, w *world) {
		run := w.begin("nap", "", "null")
		w.crash()
		w.restartOn(&tap{Store: unreadable{Store: w.mem, run: run}})
		if v := w.view(run); len(v.Incidents) != 1 || v.Incidents[0].Kind != ringi.IncidentCorrupt || v.Status != ringi.Waiting {
			t.Errorf("view %+v, want the list row with incident corrupt", v)
		}
		if r := w.do(operator, run, ringi.Pause{}); ringi.ErrorCode(r.Err) != ringi.CodeInternal {
			t.Errorf("a command to it: %+v, want internal", r)
		}
	})
}

// unreadable is a store in which one run's rows are broken.
type unreadable struct {
	store.Store
	run ringi.RunID
}

func (u unreadable) Load(ctx context.Context, keys ...store.Key) ([]store.Loaded, error) {
	loaded, err := u.Store.Load(ctx, keys...)
	for i := range loaded {
		if loaded[i].Key.Run == u.run {
			loaded[i] = store.Loaded{Key: loaded[i].Key, Err: errors.New("bad page")}
		}
	}
	return loaded, err
}
