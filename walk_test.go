package ringi_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/workflow"
)

// definitions collects every definition that the scripts show.
func definitions(t testing.TB) []*workflow.Definition {
	t.Helper()
	files, err := filepath.Glob("testdata/scripts/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	var defs []*workflow.Definition
	seen := map[string]bool{}
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?s)\ndefine\n(.*?)\n----`).FindAllSubmatch(raw, -1) {
			def, problems := workflow.Parse(f, m[1])
			if def == nil {
				t.Fatal(problems)
			}
			if !seen[def.Digest] {
				seen[def.Digest] = true
				defs = append(defs, def)
			}
		}
	}
	return defs
}

// A run that anybody may send anything to, at any time, never gets stuck
// without saying what it waits for, and its log always adds up to its state.
func TestRandomCommandsKeepTheRules(t *testing.T) { // W5 W8 W12
	defs := definitions(t)
	rapid.Check(t, func(t *rapid.T) {
		w := newWalk(t, rapid.SampledFrom(defs).Draw(t, "definition"))
		w.stroll(60)
		w.settle()
	})
}

// A walk is one run under random commands.
type walk struct {
	t     *rapid.T
	def   *workflow.Definition
	state *ringi.State
	now   time.Time
	log   []ringi.Event
	turns []recordedTurn
}

// newWalk begins a run.
func newWalk(t *rapid.T, def *workflow.Definition) *walk {
	w := &walk{t: t, def: def, now: epoch, state: &ringi.State{Tenant: ringi.DefaultTenant, Run: "run"}}
	w.do(ringi.Start{Definition: def.Name, Version: 1, Input: []byte(`{"n": 12, "m": {}, "amount": 5, "text": "<b> & \u2028 ü"}`)})
	return w
}

// stroll sends so many commands at most.
func (w *walk) stroll(most int) {
	for range rapid.IntRange(1, most).Draw(w.t, "commands") {
		w.now = w.now.Add(time.Duration(rapid.IntRange(0, 7200).Draw(w.t, "seconds")) * time.Second)
		w.do(w.action())
	}
}

func (w *walk) do(a ringi.Action) {
	cmd := ringi.Command{Tenant: ringi.DefaultTenant, Run: "run", At: w.now, Actor: ringi.Actor{ID: "alice", Kind: ringi.Person, Groups: []string{"finance", "bosses"}}, Do: a}
	switch a.(type) {
	case ringi.Start:
		cmd.Actor.ID = "carol"
	case ringi.BeginActivity, ringi.CompleteActivity, ringi.FailActivity:
		cmd.Actor.Kind = ringi.System // any worker, the engine's own too
	}
	d, err := ringi.Decide(w.def, w.state, cmd, workflow.CEL{})
	if err != nil {
		if ringi.ErrorCode(err) == ringi.CodeInternal {
			w.t.Fatalf("%T: %v", a, err)
		}
		return
	}
	was := w.state
	for i, e := range d.Events {
		if e.Seq != was.Seq+int64(i)+1 {
			w.t.Fatalf("event %d follows %d", e.Seq, was.Seq)
		}
	}
	if was.End != nil && len(d.Events) > 0 {
		w.t.Fatalf("%T wrote %d events into a closed log", a, len(d.Events))
	}
	w.state = ringi.Fold(was, d.Events...)
	w.log = append(w.log, w.stored(d.Events)...)
	w.turns = append(w.turns, turned(w.t, ringi.ActionName(a), []byte(mustJSON(cmd)), d))
	w.check(a)
}

// stored is what a store gives back of events: their bytes, read again.
func (w *walk) stored(events []ringi.Event) []ringi.Event {
	if len(events) == 0 {
		return nil
	}
	raw, err := ringi.EncodeEvents(events)
	if err != nil {
		w.t.Fatal(err)
	}
	back, err := ringi.DecodeEvents(events[0].Seq, raw)
	if err != nil {
		w.t.Fatal(err)
	}
	return back
}

func (w *walk) check(a ringi.Action) {
	whole := ringi.Fold(&ringi.State{Tenant: ringi.DefaultTenant, Run: "run"}, w.log...)
	if got, want := mustJSON(whole), mustJSON(w.state); got != want {
		w.t.Fatalf("the log adds up to another state after %T:\n%s\n%s", a, got, want)
	}
	r := ringi.Standing(w.state)
	if w.state.End == nil && w.state.Paused == nil && len(r.Tasks)+len(r.Timers)+len(r.Waits)+len(r.Approvals)+len(r.Incidents) == 0 {
		w.t.Fatalf("the run is stuck after %T: %s\n%s", a, mustJSON(w.state), w.story())
	}
	if w.state.End == nil && len(w.state.Incidents) == 0 && w.state.Paused == nil && onlyDeadline(r) {
		w.t.Fatalf("only the deadline is left after %T: %s\n%s", a, mustJSON(w.state), w.story())
	}
	lanes := map[int]bool{}
	for _, k := range r.Tasks {
		if lanes[k.Lane] {
			w.t.Fatalf("two tasks in lane %d after %T\n%s", k.Lane, a, w.story())
		}
		lanes[k.Lane] = true
	}
	w.checkEnd()
}

func onlyDeadline(r ringi.Rows) bool {
	return len(r.Tasks)+len(r.Waits)+len(r.Approvals)+len(r.Incidents) == 0 && len(r.Timers) == 1 && r.Timers[0].ID == "deadline"
}

// checkEnd holds a run that was undone to its word: in the end each effect is
// undone, or named as left.
func (w *walk) checkEnd() {
	end := w.state.End
	if end == nil || end.Status == ringi.Completed {
		return
	}
	for _, st := range w.state.Steps {
		if st.Outcome != ringi.Succeeded || st.Effect == "" || st.Effect == "pure" {
			continue
		}
		undone := slices.ContainsFunc(w.state.Undos, func(u *ringi.UndoEntry) bool { return u.Step == st.ID && u.Outcome == ringi.Undone })
		if !undone && !slices.Contains(end.EffectsLeft, st.ID) {
			w.t.Fatalf("%s had an effect that is neither undone nor named\n%s", st.ID, w.story())
		}
	}
}

func (w *walk) story() string {
	out := ""
	for _, e := range w.log {
		out += fmt.Sprintf("%d %s %s\n", e.Seq, ringi.KindOf(e.Fact), mustJSON(e.Fact))
	}
	return out
}

// action draws what somebody sends next: mostly about what stands open.
func (w *walk) action() ringi.Action {
	r := ringi.Standing(w.state)
	choices := everyAction("a")
	for _, k := range r.Tasks {
		choices = append(choices, w.answers(k)...)
	}
	for _, k := range r.Timers {
		choices = append(choices, ringi.FireTimer{Timer: k.ID, Generation: k.Generation})
	}
	for _, k := range r.Waits {
		choices = append(choices, ringi.DeliverEvent{Step: k.Step, Event: ringi.SentEvent{ID: "e", Name: k.Event, Key: k.Key, SentAt: w.now}})
	}
	for _, k := range r.Approvals {
		choices = append(choices, ringi.DecideApproval{Step: k.Step, Approve: rapid.Bool().Draw(w.t, "approve"), Digest: k.Approval.Digest}, ringi.WithdrawDecision{Step: k.Step, Reason: "drawn"})
	}
	for _, k := range r.Incidents {
		how := rapid.SampledFrom(k.Allowed).Draw(w.t, "how")
		choices = append(choices, ringi.ResolveIncident{Incident: k.ID, How: how, Reason: "drawn", Activity: "other", Output: []byte(`{"id": "x", "x": 1}`)})
	}
	return rapid.SampledFrom(choices).Draw(w.t, "action")
}

func (w *walk) answers(k ringi.TaskRow) []ringi.Action {
	ref := ringi.CallRef{Step: k.Step, Direction: k.Direction, Attempt: k.Attempt, Token: k.Token(rapid.IntRange(1, 2).Draw(w.t, "hand-out"))}
	output := rapid.SampledFrom([]string{`{"id": "<x>", "x": 1}`, `{"applied": "yes", "output": {"id": "x"}}`, `{"applied": "no"}`, `{"id": 5}`, `null`}).Draw(w.t, "output")
	out := []ringi.Action{
		ringi.BeginActivity{CallRef: ref, Worker: "w"},
		ringi.CompleteActivity{CallRef: ref, Worker: "w", Output: []byte(output)},
		ringi.FailActivity{CallRef: ref, Worker: "w", Failure: ringi.Failure{Code: "no", Retryable: rapid.Bool().Draw(w.t, "retryable"), Applied: rapid.SampledFrom([]ringi.Applied{"", "no", "unknown"}).Draw(w.t, "applied")}},
		ringi.ExpireLease{CallRef: ref, Why: rapid.SampledFrom([]ringi.Expiry{ringi.ExpiryLease, ringi.ExpiryAttempt, ringi.ExpiryQueue, ringi.ExpiryTotal}).Draw(w.t, "why")},
	}
	return append(out, out[1], out[1])
}

// settle answers everything well from here on: the run must come to its end.
func (w *walk) settle() {
	for range 400 {
		if w.state.End != nil {
			return
		}
		w.now = w.now.Add(100 * time.Hour)
		w.do(w.good())
	}
	w.t.Fatalf("the run does not end although everything is answered: %s\n%s", mustJSON(ringi.Standing(w.state)), w.story())
}

func (w *walk) good() ringi.Action {
	r := ringi.Standing(w.state)
	switch {
	case w.state.Paused != nil:
		return ringi.Resume{}
	case len(r.Incidents) > 0:
		i := r.Incidents[len(r.Incidents)-1]
		how := ringi.ResolveDone
		if slices.Contains(i.Allowed, ringi.ResolveNotDone) {
			how = ringi.ResolveNotDone
		}
		return ringi.ResolveIncident{Incident: i.ID, How: how, Reason: "settled", Output: []byte(`{"id": "x", "x": 1}`)}
	case len(r.Tasks) > 0:
		k := r.Tasks[0]
		return ringi.CompleteActivity{CallRef: ringi.CallRef{Step: k.Step, Direction: k.Direction, Attempt: k.Attempt, Token: max(k.Begun, k.Token(1))}, Output: []byte(`{"id": "x", "x": 1, "applied": "no"}`)}
	case len(r.Timers) > 0:
		return ringi.FireTimer{Timer: r.Timers[0].ID, Generation: r.Timers[0].Generation}
	}
	return ringi.Cancel{Reason: "settled"}
}
