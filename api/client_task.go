package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/ringiflow/ringi"
)

// batchBytes is how much of payloads goes into one request: what is left of
// MaxBody is room for names, tokens and punctuation.
const batchBytes = MaxBody * 3 / 4

// itemBytes is what an item takes besides its payload, at most: two names of
// 256 bytes, a message, an id and numbers.
const itemBytes = 600

// A verb is a batched route of workers.
type verb string

const (
	verbNone     verb = ""
	verbBegin    verb = "begin"
	verbComplete verb = "complete"
	verbFail     verb = "fail"
)

// sortOf tells which batch a command belongs to: the route, the worker, what it
// wants, and its size.
func sortOf(do ringi.Action) (v verb, worker string, want *ringi.PollRequest, size int) {
	switch do := do.(type) {
	case ringi.BeginActivity:
		return verbBegin, do.Worker, nil, 0
	case ringi.CompleteActivity:
		return verbComplete, do.Worker, do.Want, len(do.Output)
	case ringi.FailActivity:
		return verbFail, do.Worker, do.Want, len(do.Failure.Code) + len(do.Failure.Message)
	}
	return verbNone, "", nil, 0
}

// batchOf counts the commands at the front that may go in one request: of one
// verb and worker, with room in the body. A command that wants tasks ends its
// batch. 0 says that the first is not one of a worker's.
func batchOf(commands []ringi.Command) int {
	first, worker, _, _ := sortOf(commands[0].Do)
	if first == verbNone {
		return 0
	}
	bytes := 0
	for i, cmd := range commands {
		v, w, want, size := sortOf(cmd.Do)
		if i > 0 && fit(cmd.Do) != nil { // refused by itself
			return i
		}
		bytes += size + itemBytes
		if v != first || w != worker || i > 0 && bytes > batchBytes || i == maxItems {
			return i
		}
		if want != nil {
			return i + 1
		}
	}
	return len(commands)
}

// batch sends commands that batchOf put together.
func (c *Client) batch(ctx context.Context, commands []ringi.Command, results []ringi.Result) {
	v, worker, want, _ := sortOf(commands[len(commands)-1].Do)
	var body any
	switch v {
	case verbBegin:
		b := BeginTasks{Worker: worker}
		for _, cmd := range commands {
			if do, is := cmd.Do.(ringi.BeginActivity); is {
				b.Items = append(b.Items, callItem(cmd.Run, do.CallRef))
			}
		}
		body = b
	case verbComplete:
		b := CompleteTasks{Wanted: wants(worker, want)}
		for _, cmd := range commands {
			if do, is := cmd.Do.(ringi.CompleteActivity); is {
				b.Items = append(b.Items, CompletedItem{CallItem: callItem(cmd.Run, do.CallRef), Output: do.Output})
			}
		}
		body = b
	case verbFail:
		b := FailTasks{Wanted: wants(worker, want)}
		for _, cmd := range commands {
			if do, is := cmd.Do.(ringi.FailActivity); is {
				f := do.Failure
				b.Items = append(b.Items, FailedItem{
					CallItem: callItem(cmd.Run, do.CallRef), Code: f.Code, Message: f.Message, Retryable: f.Retryable, Applied: f.Applied, RetryAfterMS: f.RetryAfterMS,
				})
			}
		}
		body = b
	}
	var out Answered
	err := c.post(ctx, "/v1/tasks/"+string(v), body, &out)
	if err == nil && len(out.Items) != len(commands) {
		err = c.miscounted(len(out.Items), len(commands))
	}
	for i, cmd := range commands {
		if err != nil {
			results[i] = ringi.Result{Run: cmd.Run, Err: err}
			continue
		}
		results[i] = out.Items[i].result(cmd.Run)
	}
	if err == nil {
		results[len(results)-1].Tasks = tasksOf(out.Tasks)
	}
}

func wants(worker string, want *ringi.PollRequest) Wanted {
	w := Wanted{Worker: worker}
	if want != nil {
		w.Want, w.Queue, w.Activities = want.Max, want.Queue, want.Activities
	}
	return w
}

func (a AnsweredItem) result(run ringi.RunID) ringi.Result {
	res := ringi.Result{
		Run: run, Seq: a.Seq, Version: a.Version, Status: a.Status, Answer: ringi.Answer{Outcome: a.Outcome, By: a.By},
	}
	if a.Error != nil {
		res.Err = &ringi.Error{Code: a.Error.Code, Message: a.Error.Message, Hint: a.Error.Hint}
	}
	return res
}

func (c *Client) miscounted(got, want int) error {
	return &ringi.Error{
		Code:    ringi.CodeUnavailable,
		Message: fmt.Sprintf("%s gave %d answers to %d items", c.places.here(), got, want),
		Hint:    "server and client do not fit together: are they of one version?",
	}
}

// Poll takes tasks, waiting up to p.Wait for the first.
func (c *Client) Poll(ctx context.Context, p ringi.PollRequest) ([]ringi.Task, error) {
	body := PollTasks{
		Worker: p.Worker, Queue: p.Queue, Activities: p.Activities,
		Max: min(p.Max, maxItems), WaitMS: min(milliseconds(p.Wait), maxWaitMS),
	}
	if err := sendable(append(slices.Clone(p.Activities), p.Worker, p.Queue)); err != nil {
		return nil, err
	}
	var out Tasks
	err := c.send(ctx, request{method: http.MethodPost, path: "/v1/tasks/poll", body: body, wait: p.Wait}, &out)
	return tasksOf(out.Tasks), err
}

// Heartbeat extends leases, one answer per beat in their order. Beats of
// several workers go in one request per worker.
func (c *Client) Heartbeat(ctx context.Context, beats ...ringi.Beat) ([]ringi.BeatAnswer, error) {
	answers := make([]ringi.BeatAnswer, 0, len(beats))
	for len(beats) > 0 {
		n := 1
		for n < len(beats) && n < maxItems && beats[n].Worker == beats[0].Worker {
			n++
		}
		body := BeginTasks{Worker: beats[0].Worker}
		for _, b := range beats[:n] {
			if err := sendable(append(textsOfCall(b.CallRef), b.Worker)); err != nil {
				return nil, err
			}
			body.Items = append(body.Items, callItem(b.Run, b.CallRef))
		}
		var out Beats
		if err := c.post(ctx, "/v1/tasks/heartbeat", body, &out); err != nil {
			return nil, err
		}
		if len(out.Items) != n {
			return nil, c.miscounted(len(out.Items), n)
		}
		for _, item := range out.Items {
			answers = append(answers, ringi.BeatAnswer{Outcome: item.Outcome, Cancel: item.Cancel})
		}
		beats = beats[n:]
	}
	return answers, nil
}
