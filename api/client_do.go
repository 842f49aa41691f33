package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"unicode/utf8"

	"github.com/ringiflow/ringi"
)

// Do sends commands in their order and returns one result for each. Begins,
// completions and failures that follow each other go in one request, others
// one by one.
func (c *Client) Do(ctx context.Context, commands ...ringi.Command) []ringi.Result {
	results := make([]ringi.Result, len(commands))
	for done := 0; done < len(commands); {
		if err := fit(commands[done].Do); err != nil {
			results[done] = ringi.Result{Run: commands[done].Run, Err: err}
			done++
			continue
		}
		n := batchOf(commands[done:])
		if n == 0 {
			results[done] = c.one(ctx, commands[done])
			done++
			continue
		}
		c.batch(ctx, commands[done:done+n], results[done:done+n])
		done += n
	}
	return results
}

// one sends a command that has a route of its own.
func (c *Client) one(ctx context.Context, cmd ringi.Command) ringi.Result {
	run := "/v1/runs/" + url.PathEscape(string(cmd.Run))
	switch do := cmd.Do.(type) {
	case ringi.Start:
		return c.start(ctx, do)
	case ringi.SendEvent:
		return c.sendEvent(ctx, do)
	case ringi.Cancel:
		return c.steer(ctx, run+"/cancel", Reason{Reason: do.Reason})
	case ringi.Pause:
		return c.steer(ctx, run+"/pause", Reason{Reason: do.Reason})
	case ringi.Resume:
		return c.steer(ctx, run+"/resume", Reason{Reason: do.Reason})
	case ringi.Terminate:
		return c.steer(ctx, run+"/terminate", Reason{Reason: do.Reason})
	case ringi.DecideApproval:
		return c.steer(ctx, run+"/approvals/"+url.PathEscape(do.Step)+"/decide",
			Decision{Approve: do.Approve, Digest: do.Digest, Comment: do.Comment})
	case ringi.WithdrawDecision:
		return c.steer(ctx, run+"/approvals/"+url.PathEscape(do.Step)+"/withdraw", Reason{Reason: do.Reason})
	case ringi.ResolveIncident:
		return c.steer(ctx, run+"/incidents/"+strconv.FormatInt(do.Incident, 10)+"/resolve",
			Resolve{How: do.How, Reason: do.Reason, Output: do.Output, Activity: do.Activity, Input: do.Input})
	}
	return ringi.Result{Run: cmd.Run, Err: &ringi.Error{
		Code: ringi.CodeForbidden, Message: fmt.Sprintf("only the engine itself may send %T", cmd.Do),
	}}
}

func (c *Client) start(ctx context.Context, do ringi.Start) ringi.Result {
	var out Started
	err := c.post(ctx, "/v1/runs", StartRun{
		Definition: do.Definition, Version: do.Version, Key: do.Key, Input: do.Input, OnBehalfOf: do.OnBehalfOf, EventID: do.EventID,
	}, &out)
	if err != nil {
		return ringi.Result{Err: err}
	}
	outcome := ringi.Accepted
	if !out.Created {
		outcome = ringi.Repeated
	}
	return ringi.Result{
		Run: out.Run, Seq: out.Seq, Status: out.Status, Version: out.Version, Created: out.Created,
		Answer: ringi.Answer{Outcome: outcome},
	}
}

func (c *Client) sendEvent(ctx context.Context, do ringi.SendEvent) ringi.Result {
	var out Sent
	err := c.post(ctx, "/v1/events", NewEvent{ID: do.ID, Name: do.Name, Key: do.Key, Data: do.Data, KeepMS: milliseconds(do.Keep)}, &out)
	if err != nil {
		return ringi.Result{Err: err}
	}
	return ringi.Result{ID: out.ID, Answer: ringi.Answer{Outcome: out.Outcome, By: out.By}}
}

// steer sends a command that is answered with Done.
func (c *Client) steer(ctx context.Context, path string, body any) ringi.Result {
	var out Done
	if err := c.post(ctx, path, body, &out); err != nil {
		return ringi.Result{Err: err}
	}
	return out.result()
}

// fit refuses a command that no request can carry, before it spoils the batch.
func fit(do ringi.Action) error {
	if c, ok := do.(ringi.CompleteActivity); ok && len(c.Output) > 0 && !(json.Valid(c.Output) && utf8.Valid(c.Output)) {
		return &ringi.Error{Code: ringi.CodeInvalid, Message: "the output is not JSON in UTF-8", Hint: "encode it with a JSON encoder"}
	}
	return sendable(textsOf(do))
}

// sendable refuses text that JSON cannot carry: encoding would replace what is
// wrong in it, so that the server could not tell two names apart.
func sendable(texts []string) error {
	for _, text := range texts {
		if !clean(text) {
			return &ringi.Error{
				Code: ringi.CodeInvalid, Message: fmt.Sprintf("the text %s is not UTF-8, or holds a NUL", strconv.QuoteToASCII(shortened(text))),
				Hint: "encode it as UTF-8",
			}
		}
	}
	return nil
}

// textsOf are the texts of a command that are sent in a body. What stands in the
// path or query arrives as it is, and payloads are sent as they are.
func textsOf(do ringi.Action) []string {
	switch do := do.(type) {
	case ringi.Start:
		return []string{do.Definition, do.Key, do.OnBehalfOf, do.EventID}
	case ringi.SendEvent:
		return []string{do.ID, do.Name, do.Key}
	case ringi.Cancel:
		return []string{do.Reason}
	case ringi.Pause:
		return []string{do.Reason}
	case ringi.Resume:
		return []string{do.Reason}
	case ringi.Terminate:
		return []string{do.Reason}
	case ringi.DecideApproval:
		return []string{do.Digest, do.Comment}
	case ringi.WithdrawDecision:
		return []string{do.Reason}
	case ringi.ResolveIncident:
		return []string{string(do.How), do.Reason, do.Activity}
	case ringi.BeginActivity:
		return append(textsOfCall(do.CallRef), do.Worker)
	case ringi.CompleteActivity:
		return append(textsOfCall(do.CallRef), do.Worker)
	case ringi.FailActivity: // the message is for people: the server replaces what is wrong in it
		return append(textsOfCall(do.CallRef), do.Worker, do.Failure.Code, string(do.Failure.Applied))
	}
	return nil
}

func textsOfCall(ref ringi.CallRef) []string { return []string{ref.Step, string(ref.Direction)} }
