package api

import (
	"context"
	"net/http"

	"github.com/ringiflow/ringi"
)

// Decision is the body of a vote. Only people may vote, each once.
type Decision struct {
	Approve bool   `json:"approve" doc:"false rejects"`
	Digest  string `json:"digest" minLength:"1" maxLength:"128" doc:"digest of the subject that the voter saw: a vote on another one is refused as version_changed"`
	Comment string `json:"comment,omitempty" maxLength:"4096"`
}

// ApprovalList is a page of open approvals.
type ApprovalList struct {
	Approvals []ringi.ApprovalView `json:"approvals" nullable:"false"`
	Next      string               `json:"next,omitempty" doc:"cursor of the next page, for after; absent on the last"`
}

// ApprovalPath names the approval of a route.
type ApprovalPath struct {
	Run  ringi.RunID `path:"run" maxLength:"64" doc:"id of the run"`
	Step string      `path:"step" maxLength:"256" doc:"id of the step"`
}

type (
	approvalsInput struct {
		Paging
		Run  ringi.RunID `query:"run" doc:"only of this run"`
		Mine bool        `query:"mine" doc:"only those that the caller may vote on now"`
	}
	decideInput struct {
		ApprovalPath
		Body Decision
	}
	withdrawInput struct {
		ApprovalPath
		Body Reason
	}
)

func (s *Server) approvalRoutes() {
	route(s, Route{
		ID: "listApprovals", Method: http.MethodGet, Path: "/v1/approvals", Scope: ScopeRead, Tag: "approvals",
		Summary: "List open approvals, oldest first",
	}, s.listApprovals)
	route(s, Route{
		ID: "decideApproval", Method: http.MethodPost, Path: "/v1/runs/{run}/approvals/{step}/decide", Scope: ScopeDecide, Tag: "approvals",
		Summary: "Vote on an approval",
	}, s.decideApproval)
	route(s, Route{
		ID: "withdrawDecision", Method: http.MethodPost, Path: "/v1/runs/{run}/approvals/{step}/withdraw", Scope: ScopeDecide, Tag: "approvals",
		Summary: "Take the caller's own vote back while the approval is open",
	}, s.withdrawDecision)
}

func (s *Server) listApprovals(ctx context.Context, in *approvalsInput) (*answer[ApprovalList], error) {
	who := identity(ctx)
	q := ringi.ApprovalQuery{Tenant: who.Tenant, Run: in.Run, After: in.After, Limit: in.Limit}
	if in.Mine {
		q.For = &who.Actor
	}
	page, err := s.config.Service.List(ctx, q)
	if err != nil {
		return nil, err
	}
	return ok(ApprovalList{Approvals: listed(page.Approvals), Next: page.Next}), nil
}

func (s *Server) decideApproval(ctx context.Context, in *decideInput) (*answer[Done], error) {
	res, err := s.one(ctx, in.Run, ringi.DecideApproval{
		Step: in.Step, Approve: in.Body.Approve, Digest: in.Body.Digest, Comment: in.Body.Comment,
	})
	if err != nil {
		return nil, err
	}
	return ok(done(res)), nil
}

func (s *Server) withdrawDecision(ctx context.Context, in *withdrawInput) (*answer[Done], error) {
	res, err := s.one(ctx, in.Run, ringi.WithdrawDecision{Step: in.Step, Reason: in.Body.Reason})
	if err != nil {
		return nil, err
	}
	return ok(done(res)), nil
}
