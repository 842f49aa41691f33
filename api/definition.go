package api

import (
	"bytes"
	"context"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/ringiflow/ringi"
)

// DefinitionList is a page of definition versions.
type DefinitionList struct {
	Definitions []ringi.DefinitionView `json:"definitions" nullable:"false"`
	Next        string                 `json:"next,omitempty" doc:"cursor of the next page, for after; absent on the last"`
}

type (
	publishInput struct {
		File    string `query:"file" maxLength:"1024" doc:"name of the source, for the positions in problems"`
		RawBody []byte `contentType:"application/yaml" doc:"the definition in YAML or JSON, at most 1 MiB"`
	}
	definitionPath struct {
		Paging
		Name string `path:"name" maxLength:"256" doc:"name of the definition"`
	}
)

func (s *Server) definitionRoutes() {
	route(s, Route{
		ID: "publishDefinition", Method: http.MethodPost, Path: "/v1/definitions", Scope: ScopePublish, Tag: "definitions", YAML: true, creates: true,
		Summary: "Publish a definition: 201, or 200 when this version exists",
	}, s.publish)
	route(s, Route{
		ID: "listDefinitions", Method: http.MethodGet, Path: "/v1/definitions", Scope: ScopeRead, Tag: "definitions",
		Summary: "List definition versions by name, newest first",
	}, s.listDefinitions)
	route(s, Route{
		ID: "getDefinition", Method: http.MethodGet, Path: "/v1/definitions/{name}", Scope: ScopeRead, Tag: "definitions",
		Summary: "Read the versions of one definition with their sources, newest first",
	}, s.getDefinition)
	publish := s.api.OpenAPI().Paths["/v1/definitions"].Post
	publish.RequestBody.Required = true
	publish.RequestBody.Content["application/json"] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeObject}}
}

func (s *Server) publish(ctx context.Context, in *publishInput) (*answer[ringi.Published], error) {
	who := identity(ctx)
	p, err := s.config.Service.Publish(ctx, ringi.Publication{
		Tenant: who.Tenant, Actor: who.Actor, File: in.File, Source: bytes.Clone(in.RawBody), // huma uses the buffer again
	})
	if err != nil {
		return nil, err
	}
	p.Problems = listed(p.Problems)
	if p.Version == 0 {
		what := "a problem"
		if len(p.Problems) > 1 {
			what = fmt.Sprintf("%d problems", len(p.Problems))
		}
		r := refuse(http.StatusBadRequest, "the definition was not published: it has "+what,
			"mend what problems names; ringi check finds the same without a server")
		r.Problems = p.Problems
		return nil, r
	}
	return created(p, p.Created), nil
}

func (s *Server) listDefinitions(ctx context.Context, in *Paging) (*answer[DefinitionList], error) {
	return s.definitions(ctx, ringi.DefinitionQuery{After: in.After, Limit: in.Limit})
}

func (s *Server) getDefinition(ctx context.Context, in *definitionPath) (*answer[DefinitionList], error) {
	out, err := s.definitions(ctx, ringi.DefinitionQuery{Name: in.Name, After: in.After, Limit: in.Limit})
	if err == nil && len(out.Body.Definitions) == 0 && in.After == "" {
		return nil, &ringi.Error{Code: ringi.CodeNotFound, Message: fmt.Sprintf("there is no definition %q", in.Name), Hint: "publish it first"}
	}
	return out, err
}

func (s *Server) definitions(ctx context.Context, q ringi.DefinitionQuery) (*answer[DefinitionList], error) {
	q.Tenant = identity(ctx).Tenant
	page, err := s.config.Service.List(ctx, q)
	if err != nil {
		return nil, err
	}
	return ok(DefinitionList{Definitions: listed(page.Definitions), Next: page.Next}), nil
}
