package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/api"
)

// bodies are requests that each route with a body accepts.
var bodies = map[string]string{
	"startRun":          `{"definition":"order"}`,
	"cancelRun":         `{"reason":"test"}`,
	"pauseRun":          `{}`,
	"resumeRun":         `{}`,
	"terminateRun":      `{"reason":"test"}`,
	"decideApproval":    `{"approve":true,"digest":"d"}`,
	"withdrawDecision":  `{}`,
	"resolveIncident":   `{"how":"retry","reason":"test"}`,
	"sendEvent":         `{"name":"paid"}`,
	"publishDefinition": `{"name":"order"}`,
	"pollTasks":         `{"worker":"w"}`,
	"beginTasks":        `{"worker":"w","items":[{"run":"r","step":"s","attempt":1,"token":1}]}`,
	"completeTasks":     `{"worker":"w","items":[{"run":"r","step":"s","attempt":1,"token":1}]}`,
	"failTasks":         `{"worker":"w","items":[{"run":"r","step":"s","attempt":1,"token":1,"code":"c"}]}`,
	"heartbeatTasks":    `{"worker":"w","items":[{"run":"r","step":"s","attempt":1,"token":1}]}`,
}

// path fills the parameters of a route's pattern.
func path(r api.Route) string {
	return strings.NewReplacer("{run}", "r", "{step}", "s", "{incident}", "1", "{name}", "order").Replace(r.Path)
}

func definitionsExist(ringi.Query) (ringi.Page, error) {
	return ringi.Page{Definitions: []ringi.DefinitionView{{Name: "order", Version: 1}}}, nil
}

func TestEveryRouteNeedsItsScopeAndNoOther(t *testing.T) {
	svc := &service{list: definitionsExist}
	h := newServer(t, svc, nil)
	for _, r := range h.Routes() {
		for _, scope := range append(api.Scopes(), "", "nobody") {
			key, want := "Bearer a:"+scope, http.StatusForbidden
			if scope == "nobody" {
				key, want = "", http.StatusUnauthorized
			}
			if r.Scope == "" || scope == r.Scope || scope == api.ScopeAdmin {
				want = http.StatusOK
			}
			before := svc.asked()
			w := ask(h, r.Method, path(r), bodies[r.ID], "Authorization", key)
			if w.Code != want {
				t.Errorf("%s with scope %q: status %d, want %d: %s", r.ID, scope, w.Code, want, w.Body)
			}
			if want != http.StatusOK && svc.asked() != before {
				t.Errorf("%s with scope %q was refused, yet the service was asked", r.ID, scope)
			}
		}
	}
}

func TestEveryScopeIsOneThatExists(t *testing.T) {
	for _, r := range newServer(t, &service{}, nil).Routes() {
		open := strings.HasPrefix(r.Path, "/healthz") || strings.HasPrefix(r.Path, "/readyz")
		if open != (r.Scope == "") || !open && !slices.Contains(api.Scopes(), r.Scope) {
			t.Errorf("%s %s has the scope %q", r.Method, r.Path, r.Scope)
		}
	}
}

func TestOpenAPINamesEveryRouteAndNoOther(t *testing.T) {
	h := newServer(t, &service{}, nil)
	var doc struct {
		OpenAPI string
		Paths   map[string]map[string]struct {
			OperationID string
			Security    []map[string][]string
			Responses   map[string]json.RawMessage
		}
		Components struct {
			Schemas map[string]json.RawMessage
		}
	}
	w := ask(h, http.MethodGet, "/openapi.json", "")
	if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(doc.OpenAPI, "3.1") {
		t.Errorf("OpenAPI version %q", doc.OpenAPI)
	}
	var documented, registered []string
	for p, methods := range doc.Paths {
		for m, op := range methods {
			scope := ""
			if len(op.Security) == 1 && len(op.Security[0]["key"]) == 1 {
				scope = op.Security[0]["key"][0]
			}
			documented = append(documented, fmt.Sprintf("%s %s %s %s", strings.ToUpper(m), p, op.OperationID, scope))
			if _, ok := op.Responses["default"]; !ok {
				t.Errorf("%s does not document its refusals", op.OperationID)
			}
			_, makes := op.Responses["201"]
			if want := op.OperationID == "startRun" || op.OperationID == "publishDefinition"; makes != want {
				t.Errorf("%s documents 201: %v", op.OperationID, makes)
			}
		}
	}
	for _, r := range h.Routes() {
		registered = append(registered, fmt.Sprintf("%s %s %s %s", r.Method, r.Path, r.ID, r.Scope))
	}
	slices.Sort(documented)
	slices.Sort(registered)
	if !slices.Equal(documented, registered) {
		t.Errorf("documented\n%s\nregistered\n%s", strings.Join(documented, "\n"), strings.Join(registered, "\n"))
	}
	if _, ok := doc.Components.Schemas["Refusal"]; !ok {
		t.Errorf("no schema of a Refusal among %v", slices.Sorted(maps.Keys(doc.Components.Schemas)))
	}
	for _, ref := range refs(w.Body.String()) {
		if _, ok := doc.Components.Schemas[ref]; !ok {
			t.Errorf("the document refers to the schema %s, which it does not hold", ref)
		}
	}
}

// refs are the names of the schemas that a document refers to.
func refs(doc string) []string {
	var names []string
	for _, part := range strings.Split(doc, `"#/components/schemas/`)[1:] {
		name, _, _ := strings.Cut(part, `"`)
		names = append(names, name)
	}
	return names
}

func TestOpenAPIIsServedAsYAMLToo(t *testing.T) {
	w := ask(newServer(t, &service{}, nil), http.MethodGet, "/openapi.yaml", "", "Authorization", "")
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "openapi: 3.1") {
		t.Errorf("status %d: %.80s", w.Code, w.Body)
	}
}

func TestTheSchemaOfARefusalIsWhatIsSent(t *testing.T) {
	h := newServer(t, &service{}, nil)
	var doc struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]json.RawMessage
				Required   []string
			}
		}
	}
	if err := json.Unmarshal(ask(h, http.MethodGet, "/openapi.json", "").Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	whole, err := json.Marshal(api.Refusal{Hint: "h", Errors: []api.FieldError{{}}, Problems: []ringi.Problem{{}}})
	if err != nil {
		t.Fatal(err)
	}
	var sent map[string]json.RawMessage
	if err := json.Unmarshal(whole, &sent); err != nil {
		t.Fatal(err)
	}
	schema := doc.Components.Schemas["Refusal"]
	if got, want := slices.Sorted(maps.Keys(schema.Properties)), slices.Sorted(maps.Keys(sent)); !slices.Equal(got, want) {
		t.Errorf("the schema has %v, a refusal %v", got, want)
	}
	for _, name := range []string{"hint", "errors", "problems"} {
		if slices.Contains(schema.Required, name) {
			t.Errorf("%s is required, but not always sent", name)
		}
	}
}

func TestEveryCodeHasItsStatus(t *testing.T) {
	want := map[ringi.Code]int{
		ringi.CodeInvalid: 400, ringi.CodeUnauthenticated: 401, ringi.CodeForbidden: 403, ringi.CodeNotFound: 404,
		ringi.CodeStartKeyConflict: 409, ringi.CodeAlreadyDecided: 409, ringi.CodeVersionChanged: 409, ringi.CodePastPivot: 409,
		ringi.CodeStaleLease: 409, ringi.CodeFinal: 409, ringi.CodeTooLarge: 413, ringi.CodeLimit: 429,
		ringi.CodeUnavailable: 503, ringi.CodeInternal: 500,
	}
	svc := &service{}
	h := newServer(t, svc, nil)
	client := connect(t, h, "a:admin")
	for _, code := range api.Codes() {
		svc.do = func(ringi.Command) ringi.Result {
			return ringi.Result{Err: &ringi.Error{Code: code, Message: "what happened", Hint: "what to do", Err: errors.New("secret")}}
		}
		w := ask(h, http.MethodPost, "/v1/runs/r/pause", `{}`)
		if w.Code != want[code] {
			t.Errorf("%s: status %d, want %d", code, w.Code, want[code])
		}
		var r api.Refusal
		if err := json.Unmarshal(w.Body.Bytes(), &r); err != nil {
			t.Fatalf("%s: %v: %s", code, err, w.Body)
		}
		retryable := code == ringi.CodeUnavailable || code == ringi.CodeLimit
		if r.Code != code || r.Detail != "what happened" || r.Hint != "what to do" || r.Status != want[code] || r.Retryable != retryable || r.Type != "about:blank" {
			t.Errorf("%s: refused with %+v", code, r)
		}
		if got := w.Header().Get("Content-Type"); got != "application/problem+json" {
			t.Errorf("%s: content type %q", code, got)
		}
		if got := w.Header().Get("Retry-After") != ""; got != retryable {
			t.Errorf("%s: Retry-After is there: %v", code, got)
		}
		if strings.Contains(w.Body.String(), "secret") {
			t.Errorf("%s shows its cause: %s", code, w.Body)
		}
		res := client.Do(t.Context(), ringi.Command{Run: "r", Do: ringi.Pause{}})[0]
		var e *ringi.Error
		if !errors.As(res.Err, &e) || e.Code != code || e.Message != "what happened" || e.Hint != "what to do" || e.Retryable() != retryable {
			t.Errorf("%s: the client has %+v", code, res.Err)
		}
	}
}

func TestAFaultOfOursIsShownToTheOperatorOnly(t *testing.T) {
	for _, fault := range []func(ringi.Command) ringi.Result{
		func(ringi.Command) ringi.Result { return ringi.Result{Err: errors.New("disk is on fire")} },
		func(ringi.Command) ringi.Result { panic("disk is on fire") },
	} {
		var seen []string
		h := newServer(t, &service{do: fault}, func(c *api.Config) {
			c.Failed = func(_ context.Context, route string, err error) { seen = append(seen, route+" "+err.Error()) }
		})
		w := ask(h, http.MethodPost, "/v1/runs/r/pause", `{}`)
		if w.Code != http.StatusInternalServerError || strings.Contains(w.Body.String(), "fire") || !strings.Contains(w.Body.String(), `"internal"`) {
			t.Errorf("status %d: %s", w.Code, w.Body)
		}
		if len(seen) != 1 || !strings.Contains(seen[0], "fire") || !strings.HasPrefix(seen[0], "POST /v1/runs/") {
			t.Errorf("the operator saw %q", seen)
		}
	}
}

func TestACallerThatWentAwayIsNoFaultOfOurs(t *testing.T) {
	gone, leave := context.WithCancel(t.Context())
	leave()
	wrapped := &ringi.Error{Code: ringi.CodeInternal, Message: "a fault", Err: fmt.Errorf("read: %w", context.Canceled)}
	svc := &service{
		do:   func(ringi.Command) ringi.Result { return ringi.Result{Err: wrapped} },
		poll: func(ringi.PollRequest) ([]ringi.Task, error) { return nil, wrapped },
		list: func(ringi.Query) (ringi.Page, error) { return ringi.Page{}, wrapped },
	}
	seen := 0
	h := newServer(t, svc, func(c *api.Config) { c.Failed = func(context.Context, string, error) { seen++ } })
	requests := func(ctx context.Context) {
		for _, r := range h.Routes() {
			if body := bodies[r.ID]; r.Scope == api.ScopeWork || r.ID == "listRuns" {
				q := httptest.NewRequestWithContext(ctx, r.Method, r.Path, strings.NewReader(body))
				q.Host = "127.0.0.1"
				q.Header.Set("Authorization", "Bearer a:admin")
				q.Header.Set("Content-Type", "application/json")
				h.ServeHTTP(httptest.NewRecorder(), q)
			}
		}
	}
	if requests(gone); seen != 0 {
		t.Errorf("the operator saw %d faults of callers that went away", seen)
	}
	if requests(t.Context()); seen == 0 {
		t.Error("the operator does not see what is cancelled for callers that wait")
	}
}

func TestWhatIsSentWronglyIsRefusedWithThePlace(t *testing.T) {
	svc := &service{}
	h := newServer(t, svc, nil)
	for _, c := range []struct {
		name, method, path, body string
		status                   int
		says                     string
	}{
		{"an unknown field", "POST", "/v1/runs", `{"definition":"o","inptu":1}`, 400, "inptu"},
		{"an unknown field beside the items", "POST", "/v1/tasks/complete", `{"worker":"w","wnat":1,"items":[{"run":"r","step":"s","attempt":1,"token":1}]}`, 400, "wnat"},
		{"an unknown status", "GET", "/v1/runs?status=foo", ``, 400, "status"},
		{"a cursor of a list that has none", "GET", "/v1/queues?after=foo", ``, 400, "cursor"},
		{"a wrong type", "POST", "/v1/runs", `{"definition":7}`, 400, "body.definition"},
		{"a missing field", "POST", "/v1/runs", `{}`, 400, "definition"},
		{"no body", "POST", "/v1/runs", ``, 400, "body"},
		{"broken JSON", "POST", "/v1/runs", `{"definition":`, 400, ""},
		{"an unknown parameter", "GET", "/v1/runs?statsu=running", ``, 400, "statsu"},
		{"a wrong parameter", "GET", "/v1/runs?limit=many", ``, 400, "limit"},
		{"an unknown resolution", "POST", "/v1/runs/r/incidents/1/resolve", `{"how":"withdrawn","reason":"x"}`, 400, "how"},
		{"a token that is no number", "POST", "/v1/tasks/heartbeat", `{"worker":"w","items":[{"run":"r","step":"s","attempt":1,"token":"1"}]}`, 400, "body.items[0].token"},
		{"a number that is not whole", "POST", "/v1/tasks/poll", `{"worker":"w","max":1.0}`, 400, "body.max 1.0 is not a whole number"},
		{"a number out of range", "POST", "/v1/tasks/poll", `{"worker":"w","max":1e400}`, 400, "body.max 1e400 is not a whole number"},
		{"nothing there", "GET", "/v2/runs", ``, 404, "/v2/runs"},
		{"another method", "PUT", "/v1/runs", `{}`, 405, "PUT"},
	} {
		w := ask(h, c.method, c.path, c.body)
		var r api.Refusal
		if err := json.Unmarshal(w.Body.Bytes(), &r); err != nil || w.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: not a refusal: %v: %s", c.name, err, w.Body)
		}
		if w.Code != c.status || r.Status != c.status || !strings.Contains(r.Detail, c.says) {
			t.Errorf("%s: status %d, detail %q, want %d and %q", c.name, w.Code, r.Detail, c.status, c.says)
		}
	}
	if svc.asked() != 0 {
		t.Errorf("%d of them reached the service", svc.asked())
	}
}

func TestDestructiveCommandsNeedAReason(t *testing.T) {
	svc := &service{}
	h := newServer(t, svc, nil)
	for path, body := range map[string]string{
		"/v1/runs/r/cancel":              `{}`,
		"/v1/runs/r/terminate":           `{"reason":"  "}`,
		"/v1/runs/r/incidents/1/resolve": `{"how":"retry"}`,
	} {
		if w := ask(h, http.MethodPost, path, body); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "reason") {
			t.Errorf("%s: status %d: %s", path, w.Code, w.Body)
		}
	}
	if svc.asked() != 0 {
		t.Error("a command without a reason reached the service")
	}
}

func TestABodyAboveTheLimitIsRefused(t *testing.T) { // TC-79
	svc := &service{}
	h := newServer(t, svc, nil)
	exactly := func(n int) string {
		frame := `{"definition":"o","input":""}`
		return `{"definition":"o","input":"` + strings.Repeat("x", n-len(frame)) + `"}`
	}
	if w := ask(h, http.MethodPost, "/v1/runs", exactly(api.MaxBody+1)); w.Code != http.StatusRequestEntityTooLarge || !strings.Contains(w.Body.String(), `"too_large"`) {
		t.Errorf("one byte too many: status %d: %s", w.Code, w.Body)
	}
	if svc.asked() != 0 {
		t.Error("a body that is too large reached the service")
	}
	if w := ask(h, http.MethodPost, "/v1/runs", exactly(api.MaxBody)); w.Code != http.StatusOK {
		t.Errorf("exactly the limit: status %d: %.200s", w.Code, w.Body)
	}
}

func TestAClientThatSendsFarTooMuchHearsTheRefusal(t *testing.T) {
	srv := httptest.NewServer(newServer(t, &service{}, nil))
	defer srv.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+"/v1/tasks/complete", strings.NewReader(`{"worker":"w","items":[{"output":"`+strings.Repeat("x", 20<<20)+`"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer a:work")
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close() // only the status counts
	if resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("status %d", resp.StatusCode)
	}
}

func TestReadyzFollowsTheDatabaseAndHealthzDoesNot(t *testing.T) {
	down := errors.New("disk full")
	h := newServer(t, &service{}, func(c *api.Config) { c.Ready = func(context.Context) error { return down } })
	if w := ask(h, http.MethodGet, "/readyz", "", "Authorization", ""); w.Code != http.StatusServiceUnavailable || strings.Contains(w.Body.String(), "disk full") {
		t.Errorf("readyz while the disk is full: status %d: %s", w.Code, w.Body)
	}
	if w := ask(h, http.MethodGet, "/healthz", "", "Authorization", ""); w.Code != http.StatusOK {
		t.Errorf("healthz while the disk is full: status %d", w.Code)
	}
	client := connect(t, h, "")
	if err := client.Check(t.Context()); ringi.ErrorCode(err) != ringi.CodeUnavailable {
		t.Errorf("the client's check while the disk is full: %v", err)
	}
	down = nil
	if err := client.Check(t.Context()); err != nil {
		t.Errorf("the client's check after: %v", err)
	}
	if w := ask(h, http.MethodGet, "/readyz", "", "Authorization", ""); w.Code != http.StatusOK {
		t.Errorf("readyz after: status %d", w.Code)
	}
}

func TestAServerThatCannotWorkIsNotMade(t *testing.T) {
	for name, config := range map[string]api.Config{
		"no service":        {},
		"an address only":   {Service: &service{}, PublicURL: "ringi.example.com"},
		"an address's path": {Service: &service{}, PublicURL: "https://example.com/ringi"},
	} {
		if _, err := api.New(config); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestAServerWithoutKeysAnswersNobody(t *testing.T) {
	h := newServer(t, &service{}, func(c *api.Config) { c.Who = nil })
	if w := ask(h, http.MethodGet, "/v1/runs", ""); w.Code != http.StatusUnauthorized || w.Header().Get("WWW-Authenticate") != "Bearer" {
		t.Errorf("status %d", w.Code)
	}
}
