package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/ringiflow/ringi"
)

// Health is the answer of /healthz and /readyz.
type Health struct {
	Status string `json:"status" doc:"ok"`
}

func (s *Server) healthRoutes() {
	route(s, Route{
		ID: "healthz", Method: http.MethodGet, Path: "/healthz", Tag: "health",
		Summary: "Whether the process answers at all",
	}, func(context.Context, *struct{}) (*answer[Health], error) { return ok(Health{Status: "ok"}), nil })
	route(s, Route{
		ID: "readyz", Method: http.MethodGet, Path: "/readyz", Tag: "health",
		Summary: "Whether requests can be answered durably: 503 while they cannot",
	}, s.readyz)
}

func (s *Server) readyz(ctx context.Context, _ *struct{}) (*answer[Health], error) {
	if s.config.Ready != nil {
		if err := s.config.Ready(ctx); err != nil {
			var why *ringi.Error // it may be told to anybody
			if errors.As(err, &why) && why.Code == ringi.CodeUnavailable {
				return nil, why
			}
			return nil, &ringi.Error{
				Code: ringi.CodeUnavailable, Message: "the server cannot answer durably now",
				Hint: "it goes on by itself once its database is back", Err: err,
			}
		}
	}
	return ok(Health{Status: "ok"}), nil
}
