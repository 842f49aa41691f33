package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/ringiflow/ringi"
)

// MaxBody is the largest body of a request, in bytes: room for a definition,
// or for four payloads of the largest size.
const MaxBody = 1 << 20

// Config says what a Server stands before. Only Service is needed.
type Config struct {
	Service ringi.Service

	// Who tells from its key who sent a request. An *ringi.Error is answered
	// as it is. Nil answers every request as unauthenticated.
	Who func(*http.Request) (Identity, error)

	// Ready fails while nothing can be answered durably: /readyz is then 503.
	// Nil is always ready.
	Ready func(context.Context) error

	// PublicURL is the address under which others than this machine reach the
	// server, see Guard.
	PublicURL string

	// Version is the program's, for the OpenAPI document; "" is "dev".
	Version string

	// Failed sees every fault of ours, with the route it happened on. It may be
	// called concurrently. Nil drops them.
	Failed func(ctx context.Context, route string, err error)
}

// A Server is the HTTP handler of a Service. It is safe for concurrent use and
// holds nothing that must be closed.
type Server struct {
	config Config
	mux    *http.ServeMux
	api    huma.API
	routes []Route
	doors  map[string]door // by the id of the operation
	guard  http.Handler
}

// A Route is one entry of the API.
type Route struct {
	ID      string // of the operation
	Method  string
	Path    string // a pattern of http.ServeMux
	Scope   string // the one that a key needs; "" is open to everybody
	Summary string
	Tag     string // the noun
	YAML    bool   // takes YAML bodies too

	itemwise string // the list of the body whose items are refused by themselves
	creates  bool   // answers with 201 when it made something, and else with 200
}

// New makes a server. It fails only on a configuration that cannot work.
func New(config Config) (*Server, error) {
	if config.Service == nil {
		return nil, errors.New("api: Config.Service is missing: give it an engine or a client")
	}
	if config.Who == nil {
		config.Who = errNobody
	}
	if config.Version == "" {
		config.Version = "dev"
	}
	s := &Server{config: config, mux: http.NewServeMux()}
	guarded, err := Guard(config.PublicURL, http.HandlerFunc(s.serve))
	if err != nil {
		return nil, err
	}
	s.guard = guarded
	s.api = humago.New(s.mux, humaConfig(config.Version))
	s.api.UseMiddleware(ownStatuses, s.authorise, s.admit)
	s.definitionRoutes()
	s.runRoutes()
	s.approvalRoutes()
	s.incidentRoutes()
	s.eventRoutes()
	s.taskRoutes()
	s.queueRoutes()
	s.healthRoutes()
	s.makeDoors()
	return s, s.serveOpenAPI()
}

// Routes lists every route of the OpenAPI document, in the order of
// registration.
func (s *Server) Routes() []Route { return slices.Clone(s.routes) }

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.guard.ServeHTTP(w, r) }

// serve is behind the guard.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	defer s.recovered(w, r)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	_, pattern := s.mux.Handler(r)
	if pattern == "" {
		s.unrouted(w, r)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead && !understands(r, s.takesYAML(pattern)) {
		refuse(http.StatusUnsupportedMediaType, fmt.Sprintf("the content type %q is not taken here", r.Header.Get("Content-Type")),
			"send application/json, or application/yaml to publish").write(w)
		return
	}
	s.mux.ServeHTTP(w, r)
}

func (s *Server) takesYAML(pattern string) bool {
	return slices.ContainsFunc(s.routes, func(r Route) bool { return r.YAML && r.Method+" "+r.Path == pattern })
}

// unrouted answers for a path or method that does not exist, in the form of a
// Refusal where the mux would answer with text.
func (s *Server) unrouted(w http.ResponseWriter, r *http.Request) {
	plain := discard{}
	s.mux.ServeHTTP(plain, r)
	if allow := http.Header(plain).Get("Allow"); allow != "" {
		w.Header().Set("Allow", allow)
		refuse(http.StatusMethodNotAllowed, fmt.Sprintf("%s is not a method of %s", r.Method, r.URL.Path), "use "+allow).write(w)
		return
	}
	refuse(http.StatusNotFound, fmt.Sprintf("there is nothing at %s", r.URL.Path), "the routes are in /openapi.json").write(w)
}

// discard keeps the headers of an answer and drops the rest.
type discard http.Header

// Header returns the headers.
func (d discard) Header() http.Header { return http.Header(d) }

// Write drops b.
func (d discard) Write(b []byte) (int, error) { return len(b), nil }

// WriteHeader drops the status.
func (d discard) WriteHeader(int) {}

// recovered answers 500 for a handler that panicked, and shows it to the
// operator; one broken request must not take the others with it.
func (s *Server) recovered(w http.ResponseWriter, r *http.Request) {
	p := recover()
	if p == nil {
		return
	}
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(p) //nolint:forbidigo // the way that net/http documents to close a connection without an answer
	}
	err := fmt.Errorf("api: panic: %v\n%s", p, debug.Stack())
	s.failed(r.Context(), r.Method+" "+r.URL.Path, err)
	refusal(err).write(w)
}

// route registers a handler for a route. Its errors become Refusals.
func route[I, O any](s *Server, r Route, handle func(context.Context, *I) (*O, error)) {
	op := huma.Operation{
		OperationID: r.ID, Method: r.Method, Path: r.Path, Summary: r.Summary, Tags: []string{r.Tag},
		MaxBodyBytes:     MaxBody + 1, // huma refuses a body that reaches its limit
		SkipValidateBody: true,        // admit does it
		Metadata:         map[string]any{"scope": r.Scope},
		Responses:        map[string]*huma.Response{"default": refusalResponse()},
	}
	if !r.YAML {
		// admit has read the body. The deadline that huma would set, five seconds,
		// stays on the connection and ends a long poll, and all requests behind it.
		op.BodyReadTimeout = -1
	}
	if r.Scope != "" {
		op.Security = []map[string][]string{{"key": {r.Scope}}}
	}
	s.routes = append(s.routes, r)
	huma.Register(s.api, op, func(ctx context.Context, in *I) (*O, error) {
		out, err := handle(ctx, in)
		if err != nil {
			return nil, s.answered(ctx, r.Method+" "+r.Path, err)
		}
		return out, nil
	})
	if r.creates {
		responses := operation(s.api.OpenAPI().Paths[r.Path], r.Method).Responses
		made := *responses["200"]
		made.Description = http.StatusText(http.StatusCreated)
		responses["201"] = &made
	}
}

// statusContext replaces statuses of huma's own by ours.
type statusContext struct{ requestContext }

// requestContext is huma's context under another name: embedded under its own
// it would hide its method Context.
type requestContext huma.Context

// SetStatus sends the status.
func (c statusContext) SetStatus(code int) { c.requestContext.SetStatus(ourStatus(code)) }

// Unwrap returns the context inside, for the adapter.
func (c statusContext) Unwrap() huma.Context { return c.requestContext }

func ownStatuses(ctx huma.Context, next func(huma.Context)) { next(statusContext{ctx}) }

// one sends one command in the name of the caller.
func (s *Server) one(ctx context.Context, run ringi.RunID, do ringi.Action) (ringi.Result, error) {
	who := identity(ctx)
	results := s.config.Service.Do(ctx, ringi.Command{Tenant: who.Tenant, Run: run, Actor: who.Actor, Do: do})
	if len(results) != 1 {
		return ringi.Result{}, fmt.Errorf("api: the service gave %d results for one command", len(results))
	}
	return results[0], results[0].Err
}

// An answer is the output of handlers that answer with a JSON object.
type answer[T any] struct {
	Status int
	Body   T
}

func ok[T any](body T) *answer[T] { return &answer[T]{Status: http.StatusOK, Body: body} }

func created[T any](body T, isNew bool) *answer[T] {
	a := ok(body)
	if isNew {
		a.Status = http.StatusCreated
	}
	return a
}

// listed is the list itself, or an empty one: a list is never null.
func listed[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// reasoned refuses a destructive command without a reason.
func reasoned(reason string) error {
	if strings.TrimSpace(reason) != "" {
		return nil
	}
	return &ringi.Error{Code: ringi.CodeInvalid, Message: "the reason is missing", Hint: "say in \"reason\" why this is done; it goes into the audit trail"}
}
