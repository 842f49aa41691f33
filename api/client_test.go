package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/api"
)

func ref(step string) ringi.CallRef {
	return ringi.CallRef{Step: step, Direction: ringi.Undo, Attempt: 2, Token: 7<<16 | 3}
}

// asText shows an action with what it points to, so that two can be compared.
func asText(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestEveryCommandArrivesAsItWasSent(t *testing.T) {
	svc := &service{}
	client := connect(t, newServer(t, svc, nil), "alice:admin")
	want := &ringi.PollRequest{Tenant: ringi.DefaultTenant, Worker: "w", Queue: "q", Activities: []string{"a"}, Max: 3}
	for _, action := range []ringi.Action{
		ringi.Start{Definition: "order", Version: 2, Key: "k", Input: json.RawMessage(`{"n":9007199254740993,"html":"<&>"}`), OnBehalfOf: "bob", EventID: "e"},
		ringi.BeginActivity{CallRef: ref("s"), Worker: "w"},
		ringi.CompleteActivity{CallRef: ref("s"), Worker: "w", Output: json.RawMessage(`{"n":0.10}`), Want: want},
		ringi.CompleteActivity{CallRef: ref("s"), Worker: "w"},
		ringi.FailActivity{CallRef: ref("s"), Worker: "w", Failure: ringi.Failure{Code: "c", Message: "m", Retryable: true, Applied: ringi.AppliedNo, RetryAfterMS: 1500}, Want: want},
		ringi.DecideApproval{Step: "s", Approve: true, Digest: "d", Comment: "fine"},
		ringi.DecideApproval{Step: "s", Digest: "d"},
		ringi.WithdrawDecision{Step: "s", Reason: "r"},
		ringi.SendEvent{ID: "i", Name: "n", Key: "k", Data: json.RawMessage(`[1]`), Keep: time.Hour},
		ringi.Cancel{Reason: "r"},
		ringi.Pause{Reason: "r"},
		ringi.Resume{Reason: "r"},
		ringi.Terminate{Reason: "r"},
		ringi.ResolveIncident{Incident: 7, How: ringi.ResolveDone, Reason: "r", Output: json.RawMessage(`{}`)},
		ringi.ResolveIncident{Incident: 7, How: ringi.ResolveRunOther, Reason: "r", Activity: "a", Input: json.RawMessage(`1`)},
	} {
		run := ringi.RunID("0198/ä b")
		if _, isStart := action.(ringi.Start); isStart {
			run = ""
		}
		if _, isEvent := action.(ringi.SendEvent); isEvent {
			run = ""
		}
		res := client.Do(t.Context(), ringi.Command{
			Tenant: 9, Run: run, Actor: ringi.Actor{ID: "mallory", Kind: ringi.System}, Do: action,
		})[0]
		if res.Err != nil {
			t.Errorf("%T: %v", action, res.Err)
			continue
		}
		got := svc.last(t)
		if asText(t, got.Do) != asText(t, action) || got.Run != run {
			t.Errorf("sent %s to %q, arrived %T %s at %q", asText(t, action), run, got.Do, asText(t, got.Do), got.Run)
		}
		if got.Actor.ID != "alice" || got.Actor.Kind != ringi.Person || got.Tenant != ringi.DefaultTenant {
			t.Errorf("%T arrived from %+v of tenant %d: who sends follows from the key alone", action, got.Actor, got.Tenant)
		}
	}
}

func TestWhatOnlyTheEngineMaySendIsNotSent(t *testing.T) {
	svc := &service{}
	client := connect(t, newServer(t, svc, nil), "alice:admin")
	for _, action := range []ringi.Action{ringi.FireTimer{}, ringi.ExpireLease{}, ringi.DeliverEvent{}} {
		if res := client.Do(t.Context(), ringi.Command{Run: "r", Do: action})[0]; ringi.ErrorCode(res.Err) != ringi.CodeForbidden {
			t.Errorf("%T: %v", action, res.Err)
		}
	}
	if svc.asked() != 0 {
		t.Error("it was sent")
	}
}

func TestStartingForSomebodyElseNeedsItsScope(t *testing.T) {
	svc := &service{}
	h := newServer(t, svc, nil)
	start := ringi.Command{Do: ringi.Start{Definition: "order", OnBehalfOf: "bob"}}
	if res := connect(t, h, "m-shop:start").Do(t.Context(), start)[0]; ringi.ErrorCode(res.Err) != ringi.CodeForbidden || svc.asked() != 0 {
		t.Errorf("with start only: %v", res.Err)
	}
	if res := connect(t, h, "m-shop:start,start_for").Do(t.Context(), start)[0]; res.Err != nil {
		t.Errorf("with start_for: %v", res.Err)
	}
}

func TestAStartSaysWhetherItMadeTheRun(t *testing.T) { // TC-26
	isNew := true
	svc := &service{do: func(ringi.Command) ringi.Result {
		return ringi.Result{Run: "r1", Seq: 2, Status: ringi.Running, Version: 3, Created: isNew}
	}}
	h := newServer(t, svc, nil)
	client := connect(t, h, "a:start")
	if w := ask(h, http.MethodPost, "/v1/runs", `{"definition":"o"}`); w.Code != http.StatusCreated {
		t.Errorf("created: status %d", w.Code)
	}
	res := client.Do(t.Context(), ringi.Command{Do: ringi.Start{Definition: "o"}})[0]
	if res.Err != nil || !res.Created || res.Run != "r1" || res.Seq != 2 || res.Status != ringi.Running || res.Version != 3 || res.Answer.Outcome != ringi.Accepted {
		t.Errorf("created: %+v", res)
	}
	isNew = false
	if w := ask(h, http.MethodPost, "/v1/runs", `{"definition":"o"}`); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"created":false`) {
		t.Errorf("repeated: status %d: %s", w.Code, w.Body)
	}
	if res := client.Do(t.Context(), ringi.Command{Do: ringi.Start{Definition: "o"}})[0]; res.Created || res.Answer.Outcome != ringi.Repeated {
		t.Errorf("repeated: %+v", res)
	}
}

func TestCommandsOfAWorkerTravelTogether(t *testing.T) {
	svc := &service{do: func(c ringi.Command) ringi.Result {
		res := ringi.Result{Run: c.Run, Seq: 4, Status: ringi.Running, Version: 1, Answer: ringi.Answer{Outcome: ringi.Accepted}}
		switch c.Run {
		case "late":
			res.Answer = ringi.Answer{Outcome: ringi.Stale, By: "lease 5"}
		case "gone":
			res = ringi.Result{Run: c.Run, Err: &ringi.Error{Code: ringi.CodeNotFound, Message: "no such run", Hint: "look"}}
		}
		if do, ok := c.Do.(ringi.CompleteActivity); ok && do.Want != nil {
			res.Tasks = []ringi.Task{{Run: "next", CallRef: ref("n"), Input: json.RawMessage(`{}`), Begin: true, Lease: 5 * time.Second, Heartbeat: time.Minute, Timeout: time.Hour}}
		}
		return res
	}}
	client := connect(t, newServer(t, svc, nil), "m-w:work")
	complete := func(run ringi.RunID) ringi.Command {
		return ringi.Command{Run: run, Do: ringi.CompleteActivity{CallRef: ref("s"), Worker: "w", Output: json.RawMessage(`1`)}}
	}
	last := ringi.Command{Run: "c", Do: ringi.CompleteActivity{CallRef: ref("s"), Worker: "w", Want: &ringi.PollRequest{Queue: "q", Max: 1}}}
	results := client.Do(t.Context(), complete("a"), complete("late"), complete("gone"), last,
		ringi.Command{Run: "d", Do: ringi.FailActivity{CallRef: ref("s"), Worker: "w", Failure: ringi.Failure{Code: "c"}}},
		ringi.Command{Run: "e", Do: ringi.Pause{}},
		ringi.Command{Run: "f", Do: ringi.BeginActivity{CallRef: ref("s"), Worker: "w"}},
		ringi.Command{Run: "g", Do: ringi.BeginActivity{CallRef: ref("s"), Worker: "w"}},
	)
	var sizes []int
	for _, b := range svc.batches {
		sizes = append(sizes, len(b))
	}
	if !slices.Equal(sizes, []int{4, 1, 2}) { // pause was refused: the key may only work
		t.Errorf("batches of %v", sizes)
	}
	if results[0].Run != "a" || results[0].Err != nil || results[0].Answer.Outcome != ringi.Accepted || results[0].Seq != 4 || results[0].Version != 1 {
		t.Errorf("a: %+v", results[0])
	}
	if results[1].Answer.Outcome != ringi.Stale || results[1].Answer.By != "lease 5" { // TC-16
		t.Errorf("late: %+v", results[1])
	}
	var e *ringi.Error
	if !errors.As(results[2].Err, &e) || e.Code != ringi.CodeNotFound || e.Hint != "look" {
		t.Errorf("gone: %+v", results[2])
	}
	if len(results[3].Tasks) != 1 {
		t.Fatalf("tasks that were wanted: %+v", results[3])
	}
	if task := results[3].Tasks[0]; task.Run != "next" || task.CallRef != ref("n") || !task.Begin || task.Lease != 5*time.Second || task.Heartbeat != time.Minute || task.Timeout != time.Hour {
		t.Errorf("task %+v", task)
	}
	if ringi.ErrorCode(results[5].Err) != ringi.CodeForbidden || results[6].Run != "f" || results[7].Run != "g" {
		t.Errorf("results out of order: %+v", results[5:])
	}
}

func TestManyLargeOutputsAreCutIntoRequestsThatFit(t *testing.T) {
	svc := &service{}
	client := connect(t, newServer(t, svc, nil), "m-w:work")
	large := json.RawMessage(`"` + strings.Repeat("<", 255<<10) + `"`)
	var commands []ringi.Command
	for range 7 {
		commands = append(commands, ringi.Command{Run: "r", Do: ringi.CompleteActivity{CallRef: ref("s"), Worker: "w", Output: large}})
	}
	for range 2500 {
		commands = append(commands, ringi.Command{Run: "r", Do: ringi.CompleteActivity{CallRef: ref("s"), Worker: "w"}})
	}
	for i, res := range client.Do(t.Context(), commands...) {
		if res.Err != nil {
			t.Fatalf("command %d: %v", i, res.Err)
		}
	}
	total := 0
	for _, b := range svc.batches {
		total += len(b)
	}
	if total != len(commands) || len(svc.batches) > 8 {
		t.Errorf("%d commands arrived in %d batches", total, len(svc.batches))
	}
}

func TestBeatsAndPollsArriveAsTheyWereSent(t *testing.T) {
	var polled ringi.PollRequest
	var beaten []ringi.Beat
	svc := &service{
		poll: func(p ringi.PollRequest) ([]ringi.Task, error) {
			polled = p
			return []ringi.Task{{Run: "r", Key: "k", Effect: "pure", Input: json.RawMessage(`{"n":1.50}`), Activity: "a", Queue: "q", Definition: "d", Version: 2, Tenant: 1}}, nil
		},
		heartbeat: func(beats []ringi.Beat) ([]ringi.BeatAnswer, error) {
			beaten = append(beaten, beats...)
			out := make([]ringi.BeatAnswer, len(beats))
			for i := range out {
				out[i] = ringi.BeatAnswer{Outcome: ringi.Accepted, Cancel: i == 1}
			}
			return out, nil
		},
	}
	client := connect(t, newServer(t, svc, nil), "m-w:work")
	asked := ringi.PollRequest{Tenant: ringi.DefaultTenant, Worker: "w", Queue: "q", Activities: []string{"a", "b"}, Max: 5, Wait: time.Second}
	tasks, err := client.Poll(t.Context(), asked)
	asked.Actor = ringi.Actor{ID: "m-w", Kind: ringi.Machine} // which follows from the key
	if err != nil || len(tasks) != 1 || asText(t, polled) != asText(t, asked) {
		t.Errorf("polled %+v, arrived %+v: %v", asked, polled, err)
	}
	if task := tasks[0]; string(task.Input) != `{"n":1.50}` || task.Key != "k" || task.Effect != "pure" || task.Activity != "a" || task.Definition != "d" || task.Version != 2 || task.Tenant != 1 {
		t.Errorf("task %+v", task)
	}
	beats := []ringi.Beat{{Tenant: 1, Run: "r1", CallRef: ref("s"), Worker: "w"}, {Tenant: 1, Run: "r2", CallRef: ref("s"), Worker: "w"}, {Tenant: 1, Run: "r3", CallRef: ref("s"), Worker: "v"}}
	answers, err := client.Heartbeat(t.Context(), beats...)
	if err != nil || len(answers) != 3 || !answers[1].Cancel || answers[0].Cancel || answers[2].Outcome != ringi.Accepted {
		t.Errorf("answers %+v: %v", answers, err)
	}
	if !slices.Equal(beaten, beats) {
		t.Errorf("sent %+v, arrived %+v", beats, beaten)
	}
}

func TestAPublicationIsItsSourceOrItsProblems(t *testing.T) {
	svc := &service{}
	h := newServer(t, svc, nil)
	client := connect(t, h, "a:publish")
	source := []byte("name: order # ä\n")
	svc.publish = func(ringi.Publication) (ringi.Published, error) {
		return ringi.Published{Name: "order", Version: 2, Digest: "d", Created: true, Problems: []ringi.Problem{{ID: "RG0101", Severity: "warning"}}}, nil
	}
	p, err := client.Publish(t.Context(), ringi.Publication{File: "a b.yaml", Source: source})
	if err != nil || p.Name != "order" || p.Version != 2 || p.Digest != "d" || !p.Created || len(p.Problems) != 1 {
		t.Errorf("published %+v: %v", p, err)
	}
	if got := svc.received[0]; got.File != "a b.yaml" || string(got.Source) != string(source) || got.Actor.ID != "a" || got.Tenant != ringi.DefaultTenant {
		t.Errorf("arrived %+v", got)
	}
	problem := ringi.Problem{File: "a.yaml", Line: 3, Column: 5, ID: "RG0001", Severity: "error", Message: "unknown key", Suggestion: "use steps"}
	svc.publish = func(ringi.Publication) (ringi.Published, error) {
		return ringi.Published{Problems: []ringi.Problem{problem}}, nil
	}
	p, err = client.Publish(t.Context(), ringi.Publication{Source: source})
	if err != nil || p.Version != 0 || len(p.Problems) != 1 || p.Problems[0] != problem {
		t.Errorf("with problems: %+v: %v", p, err)
	}
	if w := ask(h, http.MethodPost, "/v1/definitions", "x: y", "Content-Type", "application/yaml"); w.Code != http.StatusBadRequest {
		t.Errorf("with problems: status %d", w.Code)
	}
}

func TestEveryQueryArrivesAsItWasSent(t *testing.T) {
	svc := &service{}
	client := connect(t, newServer(t, svc, nil), "alice@finance:read")
	alice := ringi.Actor{ID: "alice", Kind: ringi.Person, Groups: []string{"finance"}}
	one := ringi.DefaultTenant
	for _, q := range []ringi.Query{
		ringi.RunQuery{Tenant: one, Status: []ringi.Status{ringi.Running, ringi.InIncident}, Definition: "o", Key: "k,&", After: "c", Limit: 7},
		ringi.RunQuery{Tenant: one},
		ringi.ApprovalQuery{Tenant: one, Run: "r", For: &alice, After: "c", Limit: 7},
		ringi.ApprovalQuery{Tenant: one},
		ringi.IncidentQuery{Tenant: one, Run: "r", After: "c", Limit: 7},
		ringi.DefinitionQuery{Tenant: one, Name: "a b/c", After: "c", Limit: 7},
		ringi.DefinitionQuery{Tenant: one},
		ringi.WorkerQuery{Tenant: one, Limit: 7},
	} {
		if _, err := client.List(t.Context(), q); err != nil {
			t.Errorf("%+v: %v", q, err)
			continue
		}
		if got := svc.queries[len(svc.queries)-1]; asText(t, got) != asText(t, q) {
			t.Errorf("sent %T %s, arrived %T %s", q, asText(t, q), got, asText(t, got))
		}
	}
	if page, err := client.List(t.Context(), ringi.DefinitionQuery{Name: "nothing"}); err != nil || len(page.Definitions) != 0 {
		t.Errorf("a definition that does not exist: %+v, %v", page, err)
	}
}

func TestEveryPageComesBackWhole(t *testing.T) {
	at := time.Date(2026, 5, 1, 12, 0, 0, 123456000, time.FixedZone("JST", 9*3600))
	want := ringi.Page{Next: "more"}
	svc := &service{list: func(q ringi.Query) (ringi.Page, error) {
		p := ringi.Page{Next: "more"}
		switch q.(type) {
		case ringi.RunQuery:
			p.Runs = want.Runs
		case ringi.ApprovalQuery:
			p.Approvals = want.Approvals
		case ringi.IncidentQuery:
			p.Incidents = want.Incidents
		case ringi.DefinitionQuery:
			p.Definitions = want.Definitions
		case ringi.WorkerQuery:
			p.Queues = want.Queues
		}
		return p, nil
	}}
	client := connect(t, newServer(t, svc, nil), "a:read")
	want.Runs = []ringi.RunSummary{{Run: "r", Definition: "o", Version: 1, Key: "k", Title: "t", Status: ringi.Waiting, WaitingFor: "approval", Requester: "q", Labels: map[string]string{"a": "b"}, StartedAt: at.UTC()}}
	want.Approvals = []ringi.ApprovalView{{Run: "r", Step: "s", OpenedAt: at.UTC(), Approval: ringi.Approval{Title: "T", Subject: json.RawMessage(`{"n":1.0}`), Digest: "d", Lanes: []ringi.Lane{{Name: "l", From: []string{"group:g"}, Quorum: 2}}, ExpiresAt: at.UTC(), Votes: []ringi.Vote{{Person: "p", Approve: true, Lanes: []int{0}, At: at.UTC()}}}}}
	want.Incidents = []ringi.IncidentView{{Run: "r", Definition: "o", Incident: ringi.Incident{ID: 3, Kind: ringi.IncidentUnknown, Step: "s", Message: "m", Since: at.UTC(), Allowed: []ringi.Resolution{ringi.ResolveRetry}}}}
	want.Definitions = []ringi.DefinitionView{{Name: "o", Version: 2, Digest: "d", PublishedAt: at.UTC(), Source: json.RawMessage(`{"name":"o"}`)}}
	want.Queues = []ringi.QueueView{{Queue: "q", Ready: 1, Leased: 2, OldestMS: 3, Lapsed: 4, Workers: []ringi.WorkerView{{Worker: "w", LastPoll: at.UTC(), LastSeen: at.UTC(), Capacity: true}}}}
	got := ringi.Page{}
	for _, q := range []ringi.Query{ringi.RunQuery{}, ringi.ApprovalQuery{}, ringi.IncidentQuery{}, ringi.DefinitionQuery{}, ringi.WorkerQuery{}} {
		p, err := client.List(t.Context(), q)
		if err != nil || p.Next != "more" {
			t.Errorf("%T: next %q: %v", q, p.Next, err)
		}
		got = ringi.Page{
			Runs: append(got.Runs, p.Runs...), Approvals: append(got.Approvals, p.Approvals...), Incidents: append(got.Incidents, p.Incidents...),
			Definitions: append(got.Definitions, p.Definitions...), Queues: append(got.Queues, p.Queues...), Next: p.Next,
		}
	}
	if asText(t, got) != asText(t, want) {
		t.Errorf("\ngot  %s\nwant %s", asText(t, got), asText(t, want))
	}
}

func TestARunAndItsHistoryComeBackWhole(t *testing.T) {
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	view := ringi.RunView{
		RunSummary: ringi.RunSummary{Run: "r", Definition: "o", Version: 1, Status: ringi.Failed, StartedAt: at, EndedAt: at.Add(time.Hour)},
		Seq:        9, Steps: []ringi.StepView{{ID: "s", Outcome: "failed", Attempts: 2, Error: &ringi.Cause{Code: "c"}}},
		Output: json.RawMessage(`{"n":12345678901234567890}`), Cause: &ringi.Cause{Code: "c", Step: "s"}, EffectsLeft: []string{"s"},
	}
	page := ringi.HistoryPage{Events: []ringi.HistoryEvent{{Seq: 1, At: at, Kind: "RunStarted", Data: json.RawMessage(`{"a":1}`)}}, Next: 1}
	var asked ringi.HistoryQuery
	client := connect(t, newServer(t, &service{
		run: func(id ringi.RunID) (ringi.RunView, error) {
			if id != "r" {
				return ringi.RunView{}, &ringi.Error{Code: ringi.CodeNotFound, Message: "no such run"}
			}
			return view, nil
		},
		history: func(q ringi.HistoryQuery) (ringi.HistoryPage, error) { asked = q; return page, nil },
	}, nil), "a:read")
	if got, err := client.Run(t.Context(), 0, "r"); err != nil || asText(t, got) != asText(t, view) {
		t.Errorf("run %s: %v", asText(t, got), err)
	}
	if _, err := client.Run(t.Context(), 0, "x"); ringi.ErrorCode(err) != ringi.CodeNotFound {
		t.Errorf("another run: %v", err)
	}
	if got, err := client.History(t.Context(), ringi.HistoryQuery{Run: "r", After: 5, Limit: 6}); err != nil || asText(t, got) != asText(t, page) {
		t.Errorf("history %s: %v", asText(t, got), err)
	}
	if asked != (ringi.HistoryQuery{Tenant: ringi.DefaultTenant, Run: "r", After: 5, Limit: 6}) {
		t.Errorf("history asked %+v", asked)
	}
}

func TestAServerThatCannotBeReachedIsUnavailableAndNamed(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	address := gone.URL
	gone.Close()
	client, err := api.NewClient(api.ClientConfig{Address: address})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	var e *ringi.Error
	if _, err := client.Run(t.Context(), 0, "r"); !errors.As(err, &e) || e.Code != ringi.CodeUnavailable || !e.Retryable() || !strings.Contains(e.Error(), address) || e.Hint == "" {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := client.Poll(ctx, ringi.PollRequest{Worker: "w"}); !errors.Is(err, context.Canceled) {
		t.Errorf("a poll that was given up: %v", err)
	}
}

func TestWhatIsNoRingiServerIsSaidSo(t *testing.T) {
	for status, want := range map[int]ringi.Code{
		http.StatusOK: ringi.CodeUnavailable, http.StatusBadGateway: ringi.CodeUnavailable, http.StatusGatewayTimeout: ringi.CodeUnavailable,
		http.StatusNotFound: ringi.CodeUnavailable, http.StatusFound: ringi.CodeUnavailable, http.StatusBadRequest: ringi.CodeUnavailable, http.StatusInternalServerError: ringi.CodeInternal,
	} {
		h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(status)
			_, _ = w.Write([]byte("<html>"))
		})
		_, err := connect(t, h, "a:read").Run(t.Context(), 0, "r")
		if ringi.ErrorCode(err) != want || !strings.Contains(err.Error(), "ringi server") {
			t.Errorf("status %d: %v", status, err)
		}
	}
}

func TestAnAddressThatIsNoneIsRefused(t *testing.T) {
	for _, address := range []string{"", "127.0.0.1:7070", "ftp://host", "http://", "http://host?x=1"} {
		if _, err := api.NewClient(api.ClientConfig{Address: address}); ringi.ErrorCode(err) != ringi.CodeInvalid {
			t.Errorf("%q: %v", address, err)
		}
	}
}
