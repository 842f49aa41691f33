package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/ringiflow/ringi"
)

// Limits of one request of a worker.
const (
	maxItems  = 1000   // calls in one request: more do not make a commit cheaper
	maxWaitMS = 20_000 // of a poll, the engine's long poll
)

// PollTasks is the body of POST /v1/tasks/poll.
type PollTasks struct {
	Worker     string   `json:"worker" minLength:"1" maxLength:"256" doc:"names the worker process"`
	Queue      string   `json:"queue,omitempty" maxLength:"256" doc:"absent is default"`
	Activities []string `json:"activities,omitempty" maxItems:"1000" doc:"only these; absent takes every activity of the queue"`
	Max        int      `json:"max,omitempty" minimum:"0" maximum:"1000" doc:"most tasks to take; 0 is 1"`
	WaitMS     int64    `json:"waitMs,omitempty" minimum:"0" maximum:"20000" doc:"how long to wait for the first task"`
}

// Tasks is the answer to a poll.
type Tasks struct {
	Tasks []TaskItem `json:"tasks" nullable:"false"`
}

// TaskItem is one attempt that was handed out, under a lease.
type TaskItem struct {
	Tenant      ringi.Tenant    `json:"tenant"`
	Run         ringi.RunID     `json:"run"`
	Step        string          `json:"step"`
	Direction   ringi.Direction `json:"direction,omitempty" doc:"absent: the step itself; undo: its compensation; probe: asking what became of it"`
	Attempt     int             `json:"attempt"`
	Token       int64           `json:"token" doc:"the fencing token: send it back with every answer"`
	Activity    string          `json:"activity"`
	Queue       string          `json:"queue"`
	Definition  string          `json:"definition"`
	Version     int             `json:"version"`
	Input       json.RawMessage `json:"input"`
	Key         string          `json:"key" doc:"the idempotency key: hand it to the outside service"`
	Effect      string          `json:"effect" doc:"pure, idempotent, probeable or at_most_once"`
	Begin       bool            `json:"begin" doc:"true: ask POST /v1/tasks/begin before the call goes out"`
	LeaseMS     int64           `json:"leaseMs" doc:"until the first heartbeat or begin is due"`
	HeartbeatMS int64           `json:"heartbeatMs" doc:"length of the lease that a heartbeat gives; send three in that time"`
	TimeoutMS   int64           `json:"timeoutMs" doc:"after which the worker ends its function"`
}

// CallItem names one attempt that a worker holds. Run, step, direction,
// attempt and token are those of its task.
type CallItem struct {
	Run       ringi.RunID     `json:"run" minLength:"1" maxLength:"64"`
	Step      string          `json:"step" minLength:"1" maxLength:"256"`
	Direction ringi.Direction `json:"direction,omitempty" maxLength:"16"`
	Attempt   int             `json:"attempt" minimum:"1"`
	Token     int64           `json:"token" minimum:"1"`
}

// CompletedItem is an attempt that had its effect.
type CompletedItem struct {
	CallItem
	Output json.RawMessage `json:"output,omitempty" doc:"any JSON value; absent is null"`
}

// FailedItem is an attempt that failed.
type FailedItem struct {
	CallItem
	Code         string        `json:"code" minLength:"1" maxLength:"256" doc:"what retry.stop_on and catch.on name"`
	Message      string        `json:"message,omitempty" doc:"for a person; cut at 4,096 bytes, and what no text can hold is replaced in it"`
	Retryable    bool          `json:"retryable,omitempty" doc:"whether another attempt may succeed"`
	Applied      ringi.Applied `json:"applied,omitempty" enum:"no,unknown" doc:"whether the call may have had its effect; absent: by the effect contract"`
	RetryAfterMS int64         `json:"retryAfterMs,omitempty" minimum:"0" doc:"the next attempt is not made before; for a service that asked to be left alone; at most a day counts"`
}

// BeginTasks is the body of POST /v1/tasks/begin, and of heartbeat.
type BeginTasks struct {
	Worker string     `json:"worker" minLength:"1" maxLength:"256"`
	Items  []CallItem `json:"items" nullable:"false" minItems:"1" maxItems:"1000"`
}

// CompleteTasks is the body of POST /v1/tasks/complete.
type CompleteTasks struct {
	Wanted
	Items []CompletedItem `json:"items" nullable:"false" minItems:"1" maxItems:"1000"`
}

// FailTasks is the body of POST /v1/tasks/fail.
type FailTasks struct {
	Wanted
	Items []FailedItem `json:"items" nullable:"false" minItems:"1" maxItems:"1000"`
}

// Wanted asks for tasks along with the answer, and saves a poll.
type Wanted struct {
	Worker     string   `json:"worker" minLength:"1" maxLength:"256"`
	Want       int      `json:"want,omitempty" minimum:"0" maximum:"1000" doc:"tasks that the answer may bring, without waiting"`
	Queue      string   `json:"queue,omitempty" maxLength:"256" doc:"with want; absent is default"`
	Activities []string `json:"activities,omitempty" maxItems:"1000" doc:"with want; absent takes every activity of the queue"`
}

// Answered is the answer to begin, complete and fail: one item per item of the
// request, in its order, and the tasks that were wanted.
type Answered struct {
	Items []AnsweredItem `json:"items" nullable:"false"`
	Tasks []TaskItem     `json:"tasks,omitempty"`
}

// AnsweredItem says what became of one item: its outcome, or the error that
// refused it.
type AnsweredItem struct {
	Outcome ringi.AnswerOutcome `json:"outcome,omitempty" doc:"accepted; repeated: the same was answered before; stale: too late to count, kept as evidence"`
	By      string              `json:"by,omitempty" doc:"with repeated and stale: what settled the attempt before"`
	Seq     int64               `json:"seq,omitempty"`
	Version int                 `json:"version,omitempty"`
	Status  ringi.Status        `json:"status,omitempty" doc:"of the run"`
	Error   *ItemError          `json:"error,omitempty" doc:"in place of the outcome"`
}

// ItemError is the refusal of one item.
type ItemError struct {
	Code      ringi.Code `json:"code"`
	Message   string     `json:"message"`
	Hint      string     `json:"hint,omitempty"`
	Retryable bool       `json:"retryable" doc:"send the item again later, unchanged"`
}

// Beats is the answer to heartbeat: one item per item of the request, in its order.
type Beats struct {
	Items []BeatItem `json:"items" nullable:"false"`
}

// BeatItem says whether a lease still stands.
type BeatItem struct {
	Outcome ringi.AnswerOutcome `json:"outcome" doc:"accepted, or stale: the attempt is no longer yours"`
	Cancel  bool                `json:"cancel,omitempty" doc:"stop if you can: the run is being undone or has ended"`
}

type (
	pollInput     struct{ Body PollTasks }
	beginInput    struct{ Body BeginTasks }
	completeInput struct{ Body CompleteTasks }
	failInput     struct{ Body FailTasks }
)

func (s *Server) taskRoutes() {
	at := func(verb, itemwise, summary string) Route {
		return Route{
			ID: verb + "Tasks", Method: http.MethodPost, Path: "/v1/tasks/" + verb, Scope: ScopeWork, Tag: "tasks", Summary: summary,
			itemwise: itemwise,
		}
	}
	const items = "items" // of which one that is wrong must not keep the others from being heard
	route(s, at("poll", "", "Take tasks, waiting for the first"), s.pollTasks)
	route(s, at("begin", items, "Ask for permission to make calls that must not repeat"), s.beginTasks)
	route(s, at("complete", items, "Report calls that had their effect, and take new tasks"), s.completeTasks)
	route(s, at("fail", items, "Report calls that failed, and take new tasks"), s.failTasks)
	route(s, at("heartbeat", "", "Extend leases"), s.heartbeat)
}

func (s *Server) pollTasks(ctx context.Context, in *pollInput) (*answer[Tasks], error) {
	b := in.Body
	tasks, err := s.config.Service.Poll(ctx, ringi.PollRequest{
		Tenant: identity(ctx).Tenant, Actor: identity(ctx).Actor, Worker: b.Worker, Queue: queueOr(b.Queue), Activities: b.Activities,
		Max: max(b.Max, 1), Wait: duration(b.WaitMS),
	})
	if err != nil {
		return nil, err
	}
	return ok(Tasks{Tasks: taskItems(tasks)}), nil
}

func (s *Server) beginTasks(ctx context.Context, in *beginInput) (*answer[Answered], error) {
	return s.answer(ctx, len(in.Body.Items), func(i int, _ *ringi.PollRequest) (ringi.RunID, ringi.Action) {
		item := in.Body.Items[i]
		return item.Run, ringi.BeginActivity{CallRef: item.ref(), Worker: in.Body.Worker}
	}, nil)
}

func (s *Server) completeTasks(ctx context.Context, in *completeInput) (*answer[Answered], error) {
	return s.answer(ctx, len(in.Body.Items), func(i int, want *ringi.PollRequest) (ringi.RunID, ringi.Action) {
		item := in.Body.Items[i]
		return item.Run, ringi.CompleteActivity{CallRef: item.ref(), Worker: in.Body.Worker, Output: item.Output, Want: want}
	}, in.Body.request(identity(ctx).Tenant))
}

func (s *Server) failTasks(ctx context.Context, in *failInput) (*answer[Answered], error) {
	return s.answer(ctx, len(in.Body.Items), func(i int, want *ringi.PollRequest) (ringi.RunID, ringi.Action) {
		item := in.Body.Items[i]
		return item.Run, ringi.FailActivity{CallRef: item.ref(), Worker: in.Body.Worker, Want: want, Failure: ringi.Failure{
			Code: item.Code, Message: item.Message, Retryable: item.Retryable, Applied: item.Applied, RetryAfterMS: item.RetryAfterMS,
		}}
	}, in.Body.request(identity(ctx).Tenant))
}

// answer sends a batch of a worker's commands at once. Refusals are answers to
// their items, also of items that the door refused; the request as a whole
// succeeds. What is wanted goes with the last command, so that it is taken once
// per request, after all others are decided.
func (s *Server) answer(ctx context.Context, items int, command func(i int, want *ringi.PollRequest) (ringi.RunID, ringi.Action), want *ringi.PollRequest) (*answer[Answered], error) {
	who, wrong := identity(ctx), wrongItems(ctx)
	var sent []int // the items that are commands
	for i := range items {
		if wrong[i] == nil {
			sent = append(sent, i)
		}
	}
	commands := make([]ringi.Command, len(sent))
	for n, i := range sent {
		var wanted *ringi.PollRequest
		if n == len(sent)-1 {
			wanted = want
		}
		commands[n] = ringi.Command{Tenant: who.Tenant, Actor: who.Actor}
		commands[n].Run, commands[n].Do = command(i, wanted)
	}
	results := []ringi.Result{}
	if len(commands) > 0 {
		results = s.config.Service.Do(ctx, commands...)
	}
	if len(results) != len(commands) {
		return nil, fmt.Errorf("api: the service gave %d results for %d commands", len(results), len(commands))
	}
	out := Answered{Items: make([]AnsweredItem, items)}
	for i, e := range wrong {
		out.Items[i] = AnsweredItem{Error: e}
	}
	for n, res := range results {
		out.Items[sent[n]] = s.answeredItem(ctx, res)
		out.Tasks = append(out.Tasks, taskItems(res.Tasks)...)
	}
	return ok(out), nil
}

func (s *Server) answeredItem(ctx context.Context, res ringi.Result) AnsweredItem {
	if res.Err == nil {
		return AnsweredItem{
			Outcome: res.Answer.Outcome, By: res.Answer.By, Seq: res.Seq, Version: res.Version, Status: res.Status,
		}
	}
	r := refusal(res.Err)
	if r.Code == ringi.CodeInternal {
		s.failed(ctx, "POST /v1/tasks", res.Err)
	}
	return AnsweredItem{Error: &ItemError{Code: r.Code, Message: r.Detail, Hint: r.Hint, Retryable: r.Retryable}}
}

func (s *Server) heartbeat(ctx context.Context, in *beginInput) (*answer[Beats], error) {
	beats := make([]ringi.Beat, len(in.Body.Items))
	for i, item := range in.Body.Items {
		beats[i] = ringi.Beat{Tenant: identity(ctx).Tenant, Run: item.Run, CallRef: item.ref(), Worker: in.Body.Worker}
	}
	answers, err := s.config.Service.Heartbeat(ctx, beats...)
	if err != nil {
		return nil, err
	}
	out := Beats{Items: make([]BeatItem, len(answers))}
	for i, a := range answers {
		out.Items[i] = BeatItem{Outcome: a.Outcome, Cancel: a.Cancel}
	}
	return ok(out), nil
}

func (c CallItem) ref() ringi.CallRef {
	return ringi.CallRef{Step: c.Step, Direction: c.Direction, Attempt: c.Attempt, Token: c.Token}
}

func callItem(run ringi.RunID, ref ringi.CallRef) CallItem {
	return CallItem{Run: run, Step: ref.Step, Direction: ref.Direction, Attempt: ref.Attempt, Token: ref.Token}
}

// request is what is Wanted as the engine takes it; nil for nothing.
func (w Wanted) request(tenant ringi.Tenant) *ringi.PollRequest {
	if w.Want == 0 {
		return nil
	}
	return &ringi.PollRequest{Tenant: tenant, Worker: w.Worker, Queue: queueOr(w.Queue), Activities: w.Activities, Max: w.Want}
}

// queueOr names the queue that a definition's steps use when none is given.
func queueOr(name string) string {
	if name == "" {
		return "default"
	}
	return name
}

func taskItems(tasks []ringi.Task) []TaskItem {
	out := make([]TaskItem, len(tasks))
	for i, t := range tasks {
		out[i] = TaskItem{
			Tenant: t.Tenant, Run: t.Run, Step: t.Step, Direction: t.Direction, Attempt: t.Attempt, Token: t.Token,
			Activity: t.Activity, Queue: t.Queue, Definition: t.Definition, Version: t.Version,
			Input: t.Input, Key: t.Key, Effect: t.Effect, Begin: t.Begin,
			LeaseMS: milliseconds(t.Lease), HeartbeatMS: milliseconds(t.Heartbeat), TimeoutMS: milliseconds(t.Timeout),
		}
	}
	return out
}

func (t TaskItem) task() ringi.Task {
	return ringi.Task{
		Tenant: t.Tenant, Run: t.Run,
		CallRef:  ringi.CallRef{Step: t.Step, Direction: t.Direction, Attempt: t.Attempt, Token: t.Token},
		Activity: t.Activity, Queue: t.Queue, Definition: t.Definition, Version: t.Version,
		Input: t.Input, Key: t.Key, Effect: t.Effect, Begin: t.Begin,
		Lease: duration(t.LeaseMS), Heartbeat: duration(t.HeartbeatMS), Timeout: duration(t.TimeoutMS),
	}
}

func tasksOf(items []TaskItem) []ringi.Task {
	out := make([]ringi.Task, len(items))
	for i, item := range items {
		out[i] = item.task()
	}
	return out
}
