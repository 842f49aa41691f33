package api

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/ringiflow/ringi"
)

// Resolve is the body of a person's answer to an incident. Which answers are
// open stands in the incident's allowed.
type Resolve struct {
	How      ringi.Resolution `json:"how" enum:"retry,done,not_done,skip_undo,run_other,undo_rest" doc:"one of the incident's allowed"`
	Reason   string           `json:"reason,omitempty" maxLength:"4096" doc:"why, or the evidence; kept in the audit trail"`
	Output   json.RawMessage  `json:"output,omitempty" doc:"with done: what the step answered"`
	Activity string           `json:"activity,omitempty" maxLength:"256" doc:"with run_other: what to run in place of the undo"`
	Input    json.RawMessage  `json:"input,omitempty" doc:"with run_other: its input"`
}

// IncidentList is a page of open incidents.
type IncidentList struct {
	Incidents []ringi.IncidentView `json:"incidents" nullable:"false"`
	Next      string               `json:"next,omitempty" doc:"cursor of the next page, for after; absent on the last"`
}

type (
	incidentsInput struct {
		Paging
		Run ringi.RunID `query:"run" doc:"only of this run"`
	}
	resolveInput struct {
		RunPath
		Incident int64 `path:"incident" minimum:"1" doc:"id of the incident within its run"`
		Body     Resolve
	}
)

func (s *Server) incidentRoutes() {
	route(s, Route{
		ID: "listIncidents", Method: http.MethodGet, Path: "/v1/incidents", Scope: ScopeRead, Tag: "incidents",
		Summary: "List open incidents, oldest first",
	}, s.listIncidents)
	route(s, Route{
		ID: "resolveIncident", Method: http.MethodPost, Path: "/v1/runs/{run}/incidents/{incident}/resolve", Scope: ScopeOperate, Tag: "incidents",
		Summary: "Answer an incident",
	}, s.resolveIncident)
}

func (s *Server) listIncidents(ctx context.Context, in *incidentsInput) (*answer[IncidentList], error) {
	page, err := s.config.Service.List(ctx, ringi.IncidentQuery{
		Tenant: identity(ctx).Tenant, Run: in.Run, After: in.After, Limit: in.Limit,
	})
	if err != nil {
		return nil, err
	}
	return ok(IncidentList{Incidents: listed(page.Incidents), Next: page.Next}), nil
}

func (s *Server) resolveIncident(ctx context.Context, in *resolveInput) (*answer[Done], error) {
	b := in.Body
	if err := reasoned(b.Reason); err != nil {
		return nil, err
	}
	res, err := s.one(ctx, in.Run, ringi.ResolveIncident{
		Incident: in.Incident, How: b.How, Reason: b.Reason, Output: b.Output, Activity: b.Activity, Input: b.Input,
	})
	if err != nil {
		return nil, err
	}
	return ok(done(res)), nil
}
