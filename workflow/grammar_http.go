package workflow

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/ringiflow/ringi/workflow/grammar"
)

// What http steps become: calls like those of activities, which the engine's
// own workers take from a queue of their own. No definition may use names that
// begin with ReservedPrefix itself.
const (
	// HTTPActivity is the activity of every http call.
	HTTPActivity = "ringi.http"
	// HTTPQueue is the queue of every http call.
	HTTPQueue = "ringi.http"
	// ReservedPrefix begins the names of queues and activities that belong to the engine.
	ReservedPrefix = "ringi."
)

// The methods whose meaning the language knows.
const (
	methodGet    = "GET"
	methodHead   = "HEAD"
	methodPut    = "PUT"
	methodDelete = "DELETE"
)

// engineHeaders are the headers that follow from the connection, the body or
// the key, in lower case.
func engineHeaders() []string {
	return []string{
		"host", "content-length", "transfer-encoding", "connection", "keep-alive", "upgrade", "te", "trailer", "expect",
		"proxy-authorization", "proxy-connection", "idempotency-key",
	}
}

// methodEffect is the effect of a method by its definition in RFC 9110, or ""
// where the method alone does not tell.
func methodEffect(method string) Effect {
	switch method {
	case methodGet, methodHead:
		return Pure
	case methodPut, methodDelete:
		return Idempotent
	}
	return ""
}

// A request is an http call whose parts wait to be compiled.
type request struct {
	parts requestParts
	to    **Value
}

// A requestPart is a member of the object that a worker gets: a value, or a
// mapping of such.
type requestPart struct {
	key   string
	node  *node // for its type; nil for what is fixed
	value *Value
	inner requestParts // in place of the value
}

type requestParts []*requestPart

// part makes room for a part that is compiled later.
func (r *requestParts) part(key string, n *node) **Value {
	part := &requestPart{key: key, node: n}
	*r = append(*r, part)
	return &part.value
}

// fixed adds a part that is known.
func (r *requestParts) fixed(key string, v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		panic("workflow: a text or number that is not JSON: " + err.Error()) //nolint:forbidigo // encoding/json writes them all
	}
	*r.part(key, nil) = constValue(raw)
}

// object puts the parts together once all are compiled; it is nil when one
// could not be.
func (r requestParts) object(types map[*node]*typ) (*Value, *typ) {
	keys, values, typs := make([]string, len(r)), make([]*Value, len(r)), make([]*typ, len(r))
	for i, part := range r {
		keys[i], values[i], typs[i] = part.key, part.value, types[part.node]
		if part.inner != nil {
			values[i], typs[i] = part.inner.object(types)
		}
		if values[i] == nil {
			return nil, anyTyp()
		}
	}
	return objectValue(keys, values, typs)
}

// compose puts the requests of a step together, behind the compiling of their parts.
func (p *parser) compose(s *Step) {
	for _, r := range p.requests[s] {
		*r.to, _ = r.parts.object(p.types)
	}
}

// request reads an http call and returns its method, "" where that is wrong.
func (p *parser) request(n *node, form *grammar.Mapping, s *Step, at place, to **Value) string {
	f := p.open(n, form)
	if f.at == nil {
		return ""
	}
	r := &request{to: to}
	f.must("method")
	method := f.word("method", "")
	r.parts.fixed("method", method)
	if u := f.must("url"); u != nil && p.expect(u, textNode, "the url") {
		p.checkURL(u)
		p.textSlot(u, s, at, r.parts.part("url", u))
	}
	r.parts = append(r.parts, p.requestMap(f, "headers", grammar.MaxHeaders, func(k, v *node, to **Value) {
		p.checkHeader(k, v)
		p.textSlot(v, s, at, to)
	})...)
	r.parts = append(r.parts, p.requestMap(f, "query", grammar.MaxQuery, func(k, v *node, to **Value) {
		p.name(k, "the parameter")
		p.valueSlot(v, s, at, to)
	})...)
	if b := f.get("body"); b != nil {
		p.valueSlot(b, s, at, r.parts.part("body", b))
	}
	f.forbidden()
	if e := f.get("expect"); e != nil {
		r.parts.fixed("expect", p.expected(e))
	}
	p.requests[s] = append(p.requests[s], r)
	return method
}

// requestMap reads a mapping of names to values.
func (p *parser) requestMap(f fields, key string, most int, each func(k, v *node, to **Value)) requestParts {
	n := f.get(key)
	if n == nil || !p.expect(n, mapNode, key) {
		return nil
	}
	if len(n.keys) == 0 {
		p.report(n.position, ruleEmpty, key+" is empty", "add an entry, or remove the key")
		return nil
	}
	if len(n.keys) > most {
		p.report(n.keys[most].position, ruleTooMany, fmt.Sprintf("%s has at most %d entries", key, most), "send the rest in the body")
		return nil
	}
	part := &requestPart{key: key}
	for i, k := range n.keys {
		each(k, n.items[i], part.inner.part(k.text, n.items[i]))
	}
	return requestParts{part}
}

// expected reads the statuses of an answer that is no failure.
func (p *parser) expected(n *node) []int {
	statuses := []int{}
	items := p.list(n, "expect")
	if len(items) > grammar.MaxExpected {
		p.report(items[grammar.MaxExpected].position, ruleTooMany, fmt.Sprintf("expect has at most %d entries", grammar.MaxExpected), "leave expect out to take every 2xx")
		return statuses
	}
	for _, item := range items {
		status := p.count(item, "a status", 200, 599, 0)
		if slices.Contains(statuses, status) && status != 0 {
			p.report(item.position, ruleNoEffect, fmt.Sprintf("%d has no effect: it stands above already", status), "remove it")
		}
		statuses = append(statuses, status)
	}
	return statuses
}

// checkURL looks at what of a url is fixed.
func (p *parser) checkURL(n *node) {
	fixed, _, open := strings.Cut(n.text, "${")
	problem := ""
	lower := strings.ToLower(fixed)
	switch {
	case open && fixed == "":
		return // nobody knows yet
	case open && (strings.HasPrefix("https://", lower) || strings.HasPrefix("http://", lower)):
	case !strings.HasPrefix(lower, "https://") && !strings.HasPrefix(lower, "http://"):
		problem = "does not begin with https:// or http://"
	case strings.ContainsFunc(fixed, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '\\' }):
		problem = "holds a blank, a control character or a backslash"
	case strings.Contains(n.text, "#"):
		problem = "has a fragment, which is never sent"
	}
	_, rest, _ := strings.Cut(fixed, "//")
	host, _, _ := strings.Cut(rest, "/")
	host, _, _ = strings.Cut(host, "?")
	if problem == "" && strings.Contains(host, "@") {
		problem = "holds a user or a password, which everybody who may read the definition would see"
	}
	if problem == "" && !open {
		if u, err := url.Parse(n.text); err != nil || u.Hostname() == "" {
			problem = "has no host, or cannot be read"
		}
	}
	if problem != "" {
		p.report(n.position, ruleURL, "the url "+problem, `write it as "https://api.example.com/orders/${ input.order_id }"; what comes behind ? is better put into query`)
	}
}

// checkHeader looks at the name of a header, and at a value that is fixed.
func (p *parser) checkHeader(k, v *node) {
	name := strings.ToLower(k.text)
	switch {
	case name == "" || len(name) > MaxName || strings.Trim(name, "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz") != "":
		p.report(k.position, ruleHeader, fmt.Sprintf("%s is not the name of a header", quoted(k.text)), "use letters, digits and hyphens")
	case name == "idempotency-key":
		p.report(k.position, ruleHeader, "the header Idempotency-Key is always the key of the step", `write key: "${ … }" beside http to choose the key`)
	case slices.Contains(engineHeaders(), name):
		p.report(k.position, ruleHeader, fmt.Sprintf("the header %s follows from the url, the body or the connection", quoted(k.text)), "remove it")
	case v.kind == textNode && !strings.Contains(v.text, "${") && strings.ContainsFunc(v.text, isControl):
		p.report(v.position, ruleHeader, fmt.Sprintf("the header %s holds a control character or a line break", quoted(k.text)), "write it on one line")
	}
}

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// reserved reports a name that belongs to the engine.
func (p *parser) reserved(n *node, name, what string) string {
	if strings.HasPrefix(name, ReservedPrefix) {
		p.report(n.position, ruleReserved, fmt.Sprintf("%s %s begins with %q, which is kept for the engine", what, quoted(name), ReservedPrefix),
			"use another name, or the verb http for a call over HTTP")
	}
	return name
}

// caughtStatus reports an entry of catch.on that looks like a failure of an
// http step and can never be one.
func (p *parser) caughtStatus(n *node, s *Step, w string) {
	digits, ok := strings.CutPrefix(w, "http_")
	if !ok || slices.Contains(httpCodes(), w) {
		return
	}
	status, err := strconv.Atoi(digits)
	if err == nil && len(digits) == 3 && status >= 200 && status <= 599 {
		return
	}
	if s.Verb == VerbHTTP {
		p.report(n.position, ruleCatch, fmt.Sprintf("%s cannot happen to the verb http", quoted(w)),
			"write http_ and a status, such as http_404, or "+listed(httpCodes()))
	}
}

// The codes of http steps beside http_NNN, for an answer with a status that was
// not expected.
const (
	CodeHTTPUnreachable = "http_unreachable"     // no connection: nothing was sent
	CodeHTTPForbidden   = "http_private_address" // the address belongs to a network that is not allowed
	CodeHTTPNoAnswer    = "http_no_answer"       // the connection was lost before the whole answer came
	CodeHTTPBadRequest  = "http_bad_request"     // the request that the expressions made cannot be sent
)

func httpCodes() []string {
	return []string{CodeHTTPUnreachable, CodeHTTPForbidden, CodeHTTPNoAnswer, CodeHTTPBadRequest}
}
