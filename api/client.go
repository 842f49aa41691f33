package api

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
	"strconv"
	"strings"
	"time"

	"github.com/ringiflow/ringi"
)

// Limits of the client.
const (
	// clientTimeout ends a request that a server took and never answers, as
	// when it is cut off without a word. Longer than any commit takes.
	clientTimeout = 30 * time.Second
	// clientConnections are kept open: as many as a busy worker uses at once.
	clientConnections = 64
	// maxAnswer is the largest answer that is read, in bytes: 200 tasks with
	// the largest input, far above any page.
	maxAnswer = 64 << 20
)

// ClientConfig says how a server is reached.
type ClientConfig struct {
	// Address is http:// or https:// with a host; a path in front of /v1 is kept.
	// Servers of one database may be listed, separated by commas: the first is
	// asked, and for some seconds after it did not answer the next.
	Address string
	Key     string        // the bearer key; who sends a command follows from it alone
	Timeout time.Duration // for an answer, on top of a poll's wait; 0 is 30 s
	HTTP    *http.Client  // nil is a client of its own with kept connections

	// Now is the clock that a list of addresses needs; nil is time.Now.
	Now func() time.Time
}

// A Client is the ringi.Service of a server that is reached over HTTP. The
// tenant and the actor of commands, queries and publications are not sent: they
// follow from the key. It repeats nothing by itself: a request that failed is
// CodeUnavailable, and whoever sent it knows whether it may be sent again. It is
// safe for concurrent use.
type Client struct {
	places  places
	key     string
	timeout time.Duration
	http    *http.Client
}

var _ ringi.Service = (*Client)(nil)

// NewClient makes a client. It does not connect; it fails only on an address
// that can never work.
func NewClient(config ClientConfig) (*Client, error) {
	all, err := Addresses(config.Address)
	if err != nil {
		return nil, err
	}
	c := &Client{places: places{all: all, now: config.Now}, key: config.Key, timeout: config.Timeout, http: config.HTTP}
	if c.places.now == nil {
		c.places.now = time.Now
	}
	if c.timeout <= 0 {
		c.timeout = clientTimeout
	}
	if c.http == nil {
		c.http = &http.Client{
			Transport: &http.Transport{
				Proxy:               http.ProxyFromEnvironment,
				MaxIdleConnsPerHost: clientConnections,
				IdleConnTimeout:     90 * time.Second,
				TLSHandshakeTimeout: 10 * time.Second,
				ForceAttemptHTTP2:   true,
			},
			CheckRedirect: noRedirects,
		}
	}
	return c, nil
}

// noRedirects keeps the key from following a redirect to somewhere else.
func noRedirects(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Close gives idle connections back. It is idempotent, and the client may
// still be used.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	return nil
}

// Publish stores a definition version. Problems of the source are in
// Published, not an error.
func (c *Client) Publish(ctx context.Context, p ringi.Publication) (ringi.Published, error) {
	q := url.Values{}
	set(q, "file", p.File)
	var out ringi.Published
	err := c.send(ctx, request{method: http.MethodPost, path: "/v1/definitions", query: q, raw: p.Source, kind: "application/yaml"}, &out)
	var r *Refusal
	if errors.As(err, &r) && len(r.Problems) > 0 {
		return ringi.Published{Problems: r.Problems}, nil
	}
	return out, err
}

// Run reads one run.
func (c *Client) Run(ctx context.Context, _ ringi.Tenant, run ringi.RunID) (ringi.RunView, error) {
	var out ringi.RunView
	err := c.get(ctx, "/v1/runs/"+url.PathEscape(string(run)), nil, &out)
	return out, err
}

// History reads a page of a run's log.
func (c *Client) History(ctx context.Context, h ringi.HistoryQuery) (ringi.HistoryPage, error) {
	q := url.Values{}
	setInt(q, "after", h.After)
	setInt(q, "limit", int64(h.Limit))
	var out ringi.HistoryPage
	err := c.get(ctx, "/v1/runs/"+url.PathEscape(string(h.Run))+"/history", q, &out)
	return out, err
}

// List reads a page of one noun. With ApprovalQuery.For it lists what the
// holder of the key may vote on, whoever For names.
func (c *Client) List(ctx context.Context, query ringi.Query) (ringi.Page, error) {
	switch q := query.(type) {
	case ringi.RunQuery:
		v := paging(q.After, q.Limit)
		var statuses []string
		for _, s := range q.Status {
			statuses = append(statuses, string(s))
		}
		set(v, "status", strings.Join(statuses, ","))
		set(v, "definition", q.Definition)
		set(v, "key", q.Key)
		var out RunList
		err := c.get(ctx, "/v1/runs", v, &out)
		return ringi.Page{Runs: out.Runs, Next: out.Next}, err
	case ringi.ApprovalQuery:
		v := paging(q.After, q.Limit)
		set(v, "run", string(q.Run))
		if q.For != nil {
			v.Set("mine", "true")
		}
		var out ApprovalList
		err := c.get(ctx, "/v1/approvals", v, &out)
		return ringi.Page{Approvals: out.Approvals, Next: out.Next}, err
	case ringi.IncidentQuery:
		v := paging(q.After, q.Limit)
		set(v, "run", string(q.Run))
		var out IncidentList
		err := c.get(ctx, "/v1/incidents", v, &out)
		return ringi.Page{Incidents: out.Incidents, Next: out.Next}, err
	case ringi.DefinitionQuery:
		return c.listDefinitions(ctx, q)
	case ringi.WorkerQuery:
		var out QueueList
		err := c.get(ctx, "/v1/queues", paging(q.After, q.Limit), &out)
		return ringi.Page{Queues: out.Queues, Next: out.Next}, err
	}
	return ringi.Page{}, &ringi.Error{Code: ringi.CodeInvalid, Message: fmt.Sprintf("the query %T cannot be asked over HTTP", query)}
}

func (c *Client) listDefinitions(ctx context.Context, q ringi.DefinitionQuery) (ringi.Page, error) {
	path := "/v1/definitions"
	if q.Name != "" {
		path += "/" + url.PathEscape(q.Name)
	}
	var out DefinitionList
	err := c.get(ctx, path, paging(q.After, q.Limit), &out)
	if q.Name != "" && ringi.ErrorCode(err) == ringi.CodeNotFound {
		err = nil // an empty list, as every other
	}
	return ringi.Page{Definitions: out.Definitions, Next: out.Next}, err
}

// Check asks whether the server can be reached and answers durably.
func (c *Client) Check(ctx context.Context) error {
	var out Health
	return c.get(ctx, "/readyz", nil, &out)
}

// A request is one call of the API.
type request struct {
	method, path string
	query        url.Values
	body         any    // sent as JSON
	raw          []byte // sent as it is, when body is nil
	kind         string // content type of raw
	wait         time.Duration
}

func (c *Client) get(ctx context.Context, path string, query url.Values, out any) error {
	return c.send(ctx, request{method: http.MethodGet, path: path, query: query}, out)
}

func (c *Client) post(ctx context.Context, path string, body, out any) error {
	return c.send(ctx, request{method: http.MethodPost, path: path, body: body}, out)
}

// send makes one request and decodes the answer into out. A server that does not
// answer, or only that it cannot, is left for the next of the list; whether the
// request may be sent again is the caller's to know.
func (c *Client) send(ctx context.Context, r request, out any) error {
	to := c.places.here()
	err := c.sendTo(ctx, to, r, out)
	if ringi.ErrorCode(err) == ringi.CodeUnavailable && !errors.Is(err, context.Canceled) {
		c.places.failed(to)
	}
	return err
}

func (c *Client) sendTo(ctx context.Context, to string, r request, out any) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout+r.wait)
	defer cancel()
	req, err := c.encode(ctx, to, r)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return unreachable(to, err)
	}
	defer func() { _ = resp.Body.Close() }() // what matters was read, or its loss is reported below
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return unreachable(to, err)
	}
	if len(body) > maxAnswer {
		return &ringi.Error{Code: ringi.CodeTooLarge, Message: fmt.Sprintf("the answer to %s is above %d bytes", r.path, maxAnswer), Hint: "ask for fewer at a time"}
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return refused(to, resp, body)
	}
	if err := json.Unmarshal(body, out); err != nil {
		return &ringi.Error{
			Code: ringi.CodeUnavailable, Message: fmt.Sprintf("the answer of %s to %s is not that of a ringi server", to, r.path),
			Hint: "check the address", Err: err,
		}
	}
	return nil
}

func (c *Client) encode(ctx context.Context, to string, r request) (*http.Request, error) {
	body, kind := r.raw, r.kind
	if r.body != nil {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false) // payloads keep their size
		if err := enc.Encode(r.body); err != nil {
			return nil, &ringi.Error{Code: ringi.CodeInvalid, Message: "the request holds a value that is not JSON: " + err.Error(), Err: err}
		}
		body, kind = b.Bytes(), "application/json"
	}
	address := to + r.path
	if len(r.query) > 0 {
		address += "?" + r.query.Encode()
	}
	var reader io.Reader
	if r.method != http.MethodGet {
		reader = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, address, reader)
	if err != nil {
		return nil, &ringi.Error{Code: ringi.CodeInvalid, Message: "the request cannot be made: " + err.Error(), Err: err}
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	req.Header.Set("Accept", "application/json")
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	return req, nil
}

// unreachable is the error of a request that got no answer: nobody knows
// whether the server saw it.
func unreachable(address string, err error) error {
	return &ringi.Error{
		Code: ringi.CodeUnavailable, Message: "no answer from the server at " + address,
		Hint: "is it running? See --server and RINGI_SERVER", Err: err,
	}
}

// refused is the error of an answer that is not a success.
func refused(address string, resp *http.Response, body []byte) error {
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	var r Refusal
	if err == nil && kind == problemType && json.Unmarshal(body, &r) == nil && r.Code != "" {
		e := &ringi.Error{Code: r.Code, Message: r.Detail, Hint: r.Hint}
		if resp.StatusCode == http.StatusMisdirectedRequest {
			e.Code = ringi.CodeUnavailable // it was the address that was refused; nobody read the request
		}
		if len(r.Problems) > 0 {
			e.Err = &r
		}
		return e
	}
	code := codeOf(resp.StatusCode)
	switch code {
	case ringi.CodeInvalid, ringi.CodeNotFound, ringi.CodeFinal:
		code = ringi.CodeUnavailable // nobody knows what the server would have said
	}
	e := &ringi.Error{
		Code:    code,
		Message: fmt.Sprintf("%s answered %s, which is not an answer of a ringi server", address, resp.Status),
		Hint:    "check the address, and what stands in between",
	}
	return e
}

func paging(after string, limit int) url.Values {
	q := url.Values{}
	set(q, "after", after)
	setInt(q, "limit", int64(limit))
	return q
}

func set(q url.Values, name, value string) {
	if value != "" {
		q.Set(name, value)
	}
}

func setInt(q url.Values, name string, value int64) {
	if value != 0 {
		q.Set(name, strconv.FormatInt(value, 10))
	}
}
