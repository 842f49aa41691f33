package api

import (
	"context"
	"net/http"

	"github.com/ringiflow/ringi"
)

// QueueList is a page of queues.
type QueueList struct {
	Queues []ringi.QueueView `json:"queues" nullable:"false"`
	Next   string            `json:"next,omitempty" doc:"cursor of the next page, for after; absent on the last"`
}

func (s *Server) queueRoutes() {
	route(s, Route{
		ID: "listQueues", Method: http.MethodGet, Path: "/v1/queues", Scope: ScopeRead, Tag: "queues",
		Summary: "List queues with their depth and the workers that poll them",
	}, s.listQueues)
}

func (s *Server) listQueues(ctx context.Context, in *Paging) (*answer[QueueList], error) {
	if in.After != "" {
		return nil, &ringi.Error{Code: ringi.CodeInvalid, Message: "the list of queues has one page, and no cursor", Hint: "leave after out"}
	}
	page, err := s.config.Service.List(ctx, ringi.WorkerQuery{Tenant: identity(ctx).Tenant, After: in.After, Limit: in.Limit})
	if err != nil {
		return nil, err
	}
	return ok(QueueList{Queues: listed(page.Queues), Next: page.Next}), nil
}
