package api_test

import (
	"net/http"
	"testing"

	"github.com/ringiflow/ringi/api"
)

func TestWebPagesOfOtherSitesCanDoNothing(t *testing.T) { // H-14
	svc := &service{}
	h := newServer(t, svc, func(c *api.Config) { c.PublicURL = "https://ringi.example.com" })
	for _, c := range []struct {
		name    string
		method  string
		want    int
		headers []string
	}{
		{"a program", "POST", 200, nil},
		{"the public address", "POST", 200, []string{"Host", "ringi.example.com"}},
		{"the public address with its port", "POST", 200, []string{"Host", "Ringi.example.com:443"}},
		{"localhost", "POST", 200, []string{"Host", "localhost:7070"}},
		{"the loopback of IPv6", "POST", 200, []string{"Host", "[::1]:7070"}},
		{"a foreign Host", "POST", 421, []string{"Host", "evil.example.com"}},
		{"a foreign Host that begins like loopback", "POST", 421, []string{"Host", "127.0.0.1.evil.example.com"}},
		{"the public address at another port", "POST", 421, []string{"Host", "ringi.example.com:8443"}},
		{"no Host", "POST", 421, []string{"Host", ""}},
		{"an address of the local net", "GET", 421, []string{"Host", "192.168.0.7:7070"}},
		{"a foreign Origin", "POST", 403, []string{"Origin", "https://evil.example.com"}},
		{"a foreign Origin that reads", "GET", 403, []string{"Origin", "https://evil.example.com"}},
		{"an opaque Origin", "POST", 403, []string{"Origin", "null"}},
		{"a page of another port of this machine", "POST", 403, []string{"Origin", "http://127.0.0.1:3000"}},
		{"our own page", "POST", 200, []string{"Origin", "http://127.0.0.1:7070"}},
		{"our own public page", "POST", 200, []string{"Host", "ringi.example.com", "Origin", "https://ringi.example.com"}},
		{"our own page without TLS", "POST", 403, []string{"Host", "ringi.example.com", "Origin", "http://ringi.example.com"}},
		{"a browser that says cross-site", "POST", 403, []string{"Sec-Fetch-Site", "cross-site"}},
		{"a browser that says same-site", "POST", 403, []string{"Sec-Fetch-Site", "same-site"}},
		{"a browser that says same-origin", "POST", 200, []string{"Sec-Fetch-Site", "same-origin"}},
		{"an image of another site", "GET", 403, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"}},
		{"a link that is followed", "GET", 200, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"}},
		{"a form that navigates", "POST", 403, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"}},
		{"a form's post", "POST", 415, []string{"Content-Type", "application/x-www-form-urlencoded"}},
		{"plain text", "POST", 415, []string{"Content-Type", "text/plain"}},
		{"no content type", "POST", 415, []string{"Content-Type", ""}},
		{"YAML where JSON belongs", "POST", 415, []string{"Content-Type", "application/yaml"}},
		{"JSON with its charset", "POST", 200, []string{"Content-Type", "application/json; charset=utf-8"}},
	} {
		before := svc.asked()
		body := `{"name":"paid"}`
		path := "/v1/events"
		if c.method == http.MethodGet {
			path, body = "/v1/runs", ""
		}
		w := ask(h, c.method, path, body, c.headers...)
		if w.Code != c.want {
			t.Errorf("%s: status %d, want %d: %s", c.name, w.Code, c.want, w.Body)
		}
		if reached := svc.asked() != before; reached != (c.want == http.StatusOK) {
			t.Errorf("%s: reached the service: %v", c.name, reached)
		}
		if w.Header().Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: pages may read the answer", c.name)
		}
	}
}

func TestDefinitionsArePublishedAsYAMLOrJSONOnly(t *testing.T) {
	h := newServer(t, &service{}, nil)
	for kind, want := range map[string]int{
		"application/json": 200, "application/yaml": 200, "text/yaml": 200, "application/x-yaml": 200,
		"text/plain": 415, "multipart/form-data; boundary=x": 415, "application/xml": 415,
	} {
		if w := ask(h, http.MethodPost, "/v1/definitions", "name: order\n", "Content-Type", kind); w.Code != want {
			t.Errorf("%s: status %d, want %d: %s", kind, w.Code, want, w.Body)
		}
	}
}

func TestNoGetChangesAnything(t *testing.T) { // H-1
	svc := &service{list: definitionsExist}
	h := newServer(t, svc, nil)
	for _, r := range h.Routes() {
		ask(h, http.MethodGet, path(r), "")
	}
	if len(svc.batches)+len(svc.received) != 0 {
		t.Errorf("%d commands and %d publications came from reading", len(svc.batches), len(svc.received))
	}
}
