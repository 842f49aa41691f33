package httpstep

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/ringiflow/ringi"
)

// A request is the input of a task: what the step's expressions made, once.
type request struct {
	Method  string                     `json:"method"`
	URL     string                     `json:"url"`
	Headers map[string]json.RawMessage `json:"headers"` // each a text, a number, true or false
	Query   map[string]json.RawMessage `json:"query"`   // each as a header, null for none, or a list of such
	Body    json.RawMessage            `json:"body"`    // absent or null: none
	Expect  []int                      `json:"expect"`  // nil: any 2xx
}

// readRequest decodes an input. Its errors and those of what follows say what of
// the request cannot be sent.
func readRequest(raw json.RawMessage) (r request, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return r, fmt.Errorf("the request cannot be read: %w", err)
	}
	return r, nil
}

// build makes the request of net/http.
func (r request) build(ctx context.Context, task ringi.Task, agent string) (*http.Request, error) {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
	default:
		return nil, fmt.Errorf("there is no method %q for http steps", r.Method)
	}
	u, err := r.target()
	if err != nil {
		return nil, err
	}
	header, err := r.header()
	if err != nil {
		return nil, err
	}
	body, err := r.content(header)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, u.String(), body)
	if err != nil {
		return nil, fmt.Errorf("the request cannot be made: %w", err)
	}
	req.Header = header
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", agent)
	}
	if req.Header.Get("Accept") == "" {
		req.Header.Set("Accept", "application/json, */*;q=0.5")
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		if wrong := wrongValue(task.Key); wrong != "" {
			return nil, fmt.Errorf("the key of the step cannot be sent as Idempotency-Key: it %s", wrong)
		}
		req.Header.Set("Idempotency-Key", task.Key)
	}
	return req, nil
}

// target is the url with the query. What an input put into it must not lead
// anywhere but where the definition says: no user, no way up, no second host
// behind a backslash.
func (r request) target() (*url.URL, error) {
	if strings.ContainsFunc(r.URL, func(c rune) bool { return c <= ' ' || c == 0x7f || c == '\\' }) {
		return nil, errors.New("the url holds a blank, a control character or a backslash: use url_escape for what comes from an input")
	}
	u, err := url.Parse(r.URL)
	switch {
	case err != nil:
		return nil, errors.New("the url cannot be read: write https://host/path")
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, fmt.Errorf("the url has the scheme %q: use https or http", u.Scheme)
	case u.Hostname() == "":
		return nil, errors.New("the url has no host")
	case u.User != nil:
		return nil, errors.New("the url holds a user or a password: use a header")
	case u.Fragment != "":
		return nil, errors.New("the url has a fragment, which is never sent: use url_escape for what comes from an input")
	case climbs(u.Path) || climbs(u.EscapedPath()):
		return nil, errors.New("the path of the url holds . or .. as a segment: use url_escape, and refuse such inputs in the schema")
	}
	query, err := r.query()
	if err != nil {
		return nil, err
	}
	if query != "" && u.RawQuery != "" {
		query = u.RawQuery + "&" + query
	}
	if query != "" {
		u.RawQuery = query
	}
	if n := len(u.String()); n > maxURL {
		return nil, fmt.Errorf("the url with its query has %d bytes, at most %d are sent", n, maxURL)
	}
	return u, nil
}

// climbs reports whether a server may take the path for another one.
func climbs(path string) bool {
	return slices.ContainsFunc(strings.Split(path, "/"), func(segment string) bool { return segment == "." || segment == ".." })
}

func (r request) query() (string, error) {
	values := url.Values{}
	for name, raw := range r.Query {
		if err := addTexts(values, name, raw); err != nil {
			return "", fmt.Errorf("query: %w", err)
		}
	}
	return values.Encode(), nil
}

func (r request) header() (http.Header, error) {
	header := http.Header{}
	for name, raw := range r.Headers {
		if !isToken(name) {
			return nil, fmt.Errorf("%q is not the name of a header", name)
		}
		text, ok := scalar(raw)
		if !ok {
			return nil, fmt.Errorf("the header %s must be a text or a number", name)
		}
		if wrong := wrongValue(text); wrong != "" {
			return nil, fmt.Errorf("the header %s cannot be sent: it %s", name, wrong)
		}
		header.Set(name, text)
	}
	return header, nil
}

// isToken reports whether a text can be the name of a header.
func isToken(name string) bool {
	const marks = "!#$%&'*+-.^_`|~"
	return name != "" && !strings.ContainsFunc(name, func(c rune) bool {
		return (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && !strings.ContainsRune(marks, c)
	})
}

// wrongValue says what keeps a text from being the value of a header, or "".
func wrongValue(text string) string {
	switch {
	case len(text) > maxRequestHeader:
		return fmt.Sprintf("has %d bytes, at most %d are sent", len(text), maxRequestHeader)
	case strings.ContainsFunc(text, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }):
		return "holds a control character or a line break"
	}
	return ""
}

// content is the body, and sets its type where the step does not.
func (r request) content(header http.Header) (io.Reader, error) {
	if len(r.Body) == 0 || string(r.Body) == "null" {
		return http.NoBody, nil
	}
	kind, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	var text string
	switch {
	case header.Get("Content-Type") == "":
		header.Set("Content-Type", "application/json")
	case err != nil:
		return nil, fmt.Errorf("the Content-Type %q cannot be read", header.Get("Content-Type"))
	case isJSON(kind):
	case json.Unmarshal(r.Body, &text) == nil:
		return strings.NewReader(text), nil
	case kind == "application/x-www-form-urlencoded":
		return r.form()
	default:
		return nil, fmt.Errorf("a body of type %s must be a text", kind)
	}
	return bytes.NewReader(r.Body), nil
}

func (r request) form() (io.Reader, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(r.Body, &fields); err != nil {
		return nil, errors.New("the body of a form must be an object or a text")
	}
	values := url.Values{}
	for name, raw := range fields {
		if err := addTexts(values, name, raw); err != nil {
			return nil, fmt.Errorf("body: %w", err)
		}
	}
	return strings.NewReader(values.Encode()), nil
}

// addTexts adds a scalar, or each of a list, under a name; null adds none.
func addTexts(values url.Values, name string, raw json.RawMessage) error {
	list := []json.RawMessage{raw}
	if len(raw) > 0 && raw[0] == '[' {
		if err := json.Unmarshal(raw, &list); err != nil {
			return fmt.Errorf("%s cannot be read: %w", name, err)
		}
	}
	for _, item := range list {
		if string(item) == "null" {
			continue
		}
		text, ok := scalar(item)
		if !ok {
			return fmt.Errorf("%s must be a text, a number, true or false, or a list of such", name)
		}
		values.Add(name, text)
	}
	return nil
}

// scalar is the text of a JSON text, number or truth value, as it is written.
func scalar(raw json.RawMessage) (text string, ok bool) {
	if len(raw) == 0 || raw[0] == '{' || raw[0] == '[' || string(raw) == "null" {
		return "", false
	}
	if raw[0] != '"' {
		return string(raw), true
	}
	return text, json.Unmarshal(raw, &text) == nil
}

func isJSON(mediaType string) bool {
	return mediaType == "application/json" || strings.HasSuffix(mediaType, "+json")
}
