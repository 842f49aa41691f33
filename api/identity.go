package api

import (
	"context"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/ringiflow/ringi"
)

// The scopes that a key can have. Each route names exactly one of them.
const (
	ScopeRead     = "read"      // see runs, approvals, incidents, definitions, queues
	ScopeStart    = "start"     // start runs and send events
	ScopeStartFor = "start_for" // start runs in the name of somebody else
	ScopeWork     = "work"      // take tasks and answer for them
	ScopeDecide   = "decide"    // vote on approvals
	ScopeOperate  = "operate"   // cancel, pause, resume, terminate, resolve incidents
	ScopePublish  = "publish"   // publish definitions
	ScopeAdmin    = "admin"     // everything
)

// Scopes lists every scope.
func Scopes() []string {
	return []string{ScopeRead, ScopeStart, ScopeStartFor, ScopeWork, ScopeDecide, ScopeOperate, ScopePublish, ScopeAdmin}
}

// An Identity is who a request comes from, and what they may ask for.
type Identity struct {
	Actor  ringi.Actor
	Tenant ringi.Tenant
	Scopes []string
}

// May reports whether the identity has the scope; admin has all of them.
func (i Identity) May(scope string) bool {
	return slices.Contains(i.Scopes, scope) || slices.Contains(i.Scopes, ScopeAdmin)
}

type identityKey struct{}

// identity returns who the request of this context comes from.
func identity(ctx context.Context) Identity {
	who, _ := ctx.Value(identityKey{}).(Identity)
	return who
}

// scopeOf is the scope that an operation was registered with; "" for the
// routes that are open to everybody.
func scopeOf(op *huma.Operation) string {
	scope, _ := op.Metadata["scope"].(string)
	return scope
}

// authorise lets a request through whose key has the scope of its route. It is
// a huma middleware, so that it knows the route and runs before the body is read.
func (s *Server) authorise(ctx huma.Context, next func(huma.Context)) {
	scope := scopeOf(ctx.Operation())
	if scope == "" {
		next(ctx)
		return
	}
	r, w := humago.Unwrap(ctx)
	who, err := s.config.Who(r)
	if err != nil {
		refused := refusal(err)
		if refused.Code == ringi.CodeInternal {
			s.failed(r.Context(), r.Method+" "+r.URL.Path, err)
		}
		refused.write(w)
		return
	}
	if !who.May(scope) {
		refusal(lacks(who, scope)).write(w)
		return
	}
	next(huma.WithValue(ctx, identityKey{}, who))
}

func lacks(who Identity, scope string) *ringi.Error {
	return &ringi.Error{
		Code:    ringi.CodeForbidden,
		Message: "the key of " + who.Actor.ID + " does not have the scope " + scope,
		Hint:    "use a key with --scope " + scope,
	}
}

// bearer is the way in which a key is presented, for the OpenAPI document.
func bearer() *huma.SecurityScheme {
	return &huma.SecurityScheme{
		Type: "http", Scheme: "bearer",
		Description: "A key of the server's key file. The actor, its groups and its scopes come from the key alone; admin holds every scope.",
	}
}

// errNobody is the answer to a server that was made without Who.
func errNobody(*http.Request) (Identity, error) {
	return Identity{}, &ringi.Error{
		Code:    ringi.CodeUnauthenticated,
		Message: "this server knows no keys",
		Hint:    "start it with a key file",
	}
}
