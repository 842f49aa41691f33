package api

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/ringiflow/ringi"
)

// StartRun is the body of POST /v1/runs.
type StartRun struct {
	Definition string          `json:"definition" minLength:"1" maxLength:"256" doc:"name of a published definition"`
	Version    int             `json:"version,omitempty" minimum:"0" doc:"0 is the latest"`
	Key        string          `json:"key,omitempty" maxLength:"256" doc:"one key, one run: repeats get the run that exists"`
	Input      json.RawMessage `json:"input,omitempty" doc:"any JSON value; absent is null"`
	OnBehalfOf string          `json:"onBehalfOf,omitempty" maxLength:"256" doc:"the requester; needs the scope start_for"`
	EventID    string          `json:"eventId,omitempty" maxLength:"256" doc:"the event that started the run, which it will then not consume"`
}

// Started is the answer to a start.
type Started struct {
	Run     ringi.RunID  `json:"run"`
	Created bool         `json:"created" doc:"false: the key had its run already"`
	Version int          `json:"version"`
	Status  ringi.Status `json:"status"`
	Seq     int64        `json:"seq,omitempty" doc:"the run's last event; absent for a run that existed"`
}

// Reason is the body of cancel and terminate.
type Reason struct {
	Reason string `json:"reason,omitempty" maxLength:"4096" doc:"why; kept in the audit trail"`
}

// Done is the answer to a command that was not refused.
type Done struct {
	Run     ringi.RunID         `json:"run"`
	Seq     int64               `json:"seq" doc:"the run's last event when the command was decided"`
	Version int                 `json:"version" doc:"of the definition that the run is pinned to"`
	Status  ringi.Status        `json:"status"`
	Outcome ringi.AnswerOutcome `json:"outcome" doc:"accepted; repeated: the same was done before; stale: too late to count"`
	By      string              `json:"by,omitempty" doc:"who or what settled it before"`
}

// RunList is a page of runs.
type RunList struct {
	Runs []ringi.RunSummary `json:"runs" nullable:"false"`
	Next string             `json:"next,omitempty" doc:"cursor of the next page, for after; absent on the last"`
}

// RunPath names the run of a route.
type RunPath struct {
	Run ringi.RunID `path:"run" maxLength:"64" doc:"id of the run"`
}

// Paging are the parameters of every list.
type Paging struct {
	After string `query:"after" doc:"cursor: next of the page before"`
	Limit int    `query:"limit" minimum:"0" maximum:"500" doc:"0 is 50"`
}

type (
	startInput struct{ Body StartRun }
	runsInput  struct {
		Paging
		Status     []ringi.Status `query:"status" enum:"running,waiting,paused,compensating,incident,completed,failed,compensated,cancelled,terminated" doc:"only these, separated by commas"`
		Definition string         `query:"definition" doc:"only of this definition"`
		Key        string         `query:"key" doc:"only with this start key"`
	}
	historyInput struct {
		RunPath
		After int64 `query:"after" minimum:"0" doc:"only events above this sequence"`
		Limit int   `query:"limit" minimum:"0" maximum:"1000" doc:"0 is 200"`
	}
	reasonInput struct {
		RunPath
		Body Reason
	}
)

func (s *Server) runRoutes() {
	run := Route{Tag: "runs"}
	at := func(id, method, path, scope, summary string) Route {
		run.ID, run.Method, run.Path, run.Scope, run.Summary = id, method, path, scope, summary
		return run
	}
	start := at("startRun", http.MethodPost, "/v1/runs", ScopeStart, "Start a run: 201, or 200 when its key had a run")
	start.creates = true
	route(s, start, s.startRun)
	route(s, at("listRuns", http.MethodGet, "/v1/runs", ScopeRead, "List runs, newest first"), s.listRuns)
	route(s, at("getRun", http.MethodGet, "/v1/runs/{run}", ScopeRead, "Read a run"), s.getRun)
	route(s, at("getHistory", http.MethodGet, "/v1/runs/{run}/history", ScopeRead, "Read a run's log"), s.getHistory)
	route(s, at("cancelRun", http.MethodPost, "/v1/runs/{run}/cancel", ScopeOperate, "End a run after undoing what it did"),
		s.steer(true, func(reason string) ringi.Action { return ringi.Cancel{Reason: reason} }))
	route(s, at("pauseRun", http.MethodPost, "/v1/runs/{run}/pause", ScopeOperate, "Hold a run"),
		s.steer(false, func(reason string) ringi.Action { return ringi.Pause{Reason: reason} }))
	route(s, at("resumeRun", http.MethodPost, "/v1/runs/{run}/resume", ScopeOperate, "Let a paused run go on"),
		s.steer(false, func(reason string) ringi.Action { return ringi.Resume{Reason: reason} }))
	route(s, at("terminateRun", http.MethodPost, "/v1/runs/{run}/terminate", ScopeOperate, "End a run at once and undo nothing"),
		s.steer(true, func(reason string) ringi.Action { return ringi.Terminate{Reason: reason} }))
}

func (s *Server) startRun(ctx context.Context, in *startInput) (*answer[Started], error) {
	b := in.Body
	if who := identity(ctx); b.OnBehalfOf != "" && !who.May(ScopeStartFor) {
		return nil, lacks(who, ScopeStartFor)
	}
	res, err := s.one(ctx, "", ringi.Start{
		Definition: b.Definition, Version: b.Version, Key: b.Key, Input: b.Input, OnBehalfOf: b.OnBehalfOf, EventID: b.EventID,
	})
	if err != nil {
		return nil, err
	}
	return created(Started{Run: res.Run, Created: res.Created, Version: res.Version, Status: res.Status, Seq: res.Seq}, res.Created), nil
}

func (s *Server) listRuns(ctx context.Context, in *runsInput) (*answer[RunList], error) {
	page, err := s.config.Service.List(ctx, ringi.RunQuery{
		Tenant: identity(ctx).Tenant, Status: in.Status, Definition: in.Definition, Key: in.Key, After: in.After, Limit: in.Limit,
	})
	if err != nil {
		return nil, err
	}
	for i := range page.Runs {
		inUTC(&page.Runs[i])
	}
	return ok(RunList{Runs: listed(page.Runs), Next: page.Next}), nil
}

func (s *Server) getRun(ctx context.Context, in *RunPath) (*answer[ringi.RunView], error) {
	view, err := s.config.Service.Run(ctx, identity(ctx).Tenant, in.Run)
	if err != nil {
		return nil, err
	}
	inUTC(&view.RunSummary)
	view.Steps, view.EffectsLeft = listed(view.Steps), listed(view.EffectsLeft)
	return ok(view), nil
}

func (s *Server) getHistory(ctx context.Context, in *historyInput) (*answer[ringi.HistoryPage], error) {
	page, err := s.config.Service.History(ctx, ringi.HistoryQuery{
		Tenant: identity(ctx).Tenant, Run: in.Run, After: in.After, Limit: in.Limit,
	})
	if err != nil {
		return nil, err
	}
	page.Events = listed(page.Events)
	return ok(page), nil
}

// steer makes the handler of a command that takes only a reason.
func (s *Server) steer(needsReason bool, do func(reason string) ringi.Action) func(context.Context, *reasonInput) (*answer[Done], error) {
	return func(ctx context.Context, in *reasonInput) (*answer[Done], error) {
		if needsReason {
			if err := reasoned(in.Body.Reason); err != nil {
				return nil, err
			}
		}
		res, err := s.one(ctx, in.Run, do(in.Body.Reason))
		if err != nil {
			return nil, err
		}
		return ok(done(res)), nil
	}
}

func done(res ringi.Result) Done {
	return Done{
		Run: res.Run, Seq: res.Seq, Version: res.Version, Status: res.Status, Outcome: res.Answer.Outcome, By: res.Answer.By,
	}
}

func (d Done) result() ringi.Result {
	return ringi.Result{
		Run: d.Run, Seq: d.Seq, Version: d.Version, Status: d.Status, Answer: ringi.Answer{Outcome: d.Outcome, By: d.By},
	}
}

// inUTC makes the times of a run those of the wire.
func inUTC(r *ringi.RunSummary) {
	r.StartedAt = r.StartedAt.UTC()
	if !r.EndedAt.IsZero() {
		r.EndedAt = r.EndedAt.UTC()
	}
}

// milliseconds is a duration as the wire has it.
func milliseconds(d time.Duration) int64 { return d.Milliseconds() }

// duration is the inverse of milliseconds.
func duration(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }
