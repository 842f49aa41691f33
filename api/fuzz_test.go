package api_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/api"
)

// FuzzRequest sends anything to every route: it is answered, never as a fault
// of ours, and what is no success is a Refusal.
func FuzzRequest(f *testing.F) {
	svc := &service{do: func(c ringi.Command) ringi.Result { return ringi.Result{Run: c.Run} }}
	h, err := api.New(api.Config{Service: svc, Who: byName, Failed: nil})
	if err != nil {
		f.Fatal(err)
	}
	for i, r := range h.Routes() {
		f.Add(uint8(i), "r", "?limit=7", bodies[r.ID])
	}
	f.Add(uint8(3), "../..", "?after=%zz", `{"a":`+strings.Repeat("[", 20000))
	f.Fuzz(func(t *testing.T, route uint8, id, query, body string) {
		r := h.Routes()[int(route)%len(h.Routes())]
		target := "/" // a path that no request line can carry is not sent
		if p := strings.NewReplacer("{run}", id, "{step}", id, "{incident}", id, "{name}", id).Replace(r.Path) + query; requestable(p) {
			target = p
		}
		w := ask(h, r.Method, target, body)
		switch {
		case w.Code >= http.StatusInternalServerError:
			t.Errorf("%s %s %q: status %d: %s", r.Method, target, body, w.Code, w.Body)
		case w.Code >= http.StatusBadRequest && w.Header().Get("Content-Type") != "application/problem+json":
			t.Errorf("%s %s %q: status %d is no Refusal: %s", r.Method, target, body, w.Code, w.Body)
		}
	})
}

// requestable reports whether httptest can make a request line of a path.
func requestable(path string) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	httptest.NewRequest(http.MethodGet, path, nil)
	return true
}
