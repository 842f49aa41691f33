package workflow

import (
	"fmt"
	"time"

	"github.com/ringiflow/ringi/workflow/grammar"
)

// defaults is the file's own block of defaults; zero where it says nothing.
type defaults struct {
	queue    string
	timeouts Timeouts
	retry    Retry
}

func (p *parser) readDefaults(n *node) defaults {
	if n == nil {
		return defaults{}
	}
	f := p.open(n, p.form.Defaults)
	d := defaults{timeouts: p.timeouts(f.get("timeouts")), retry: p.retry(f.get("retry"))}
	d.queue = p.queueName(f.get("queue"))
	return d
}

// timeouts reads the mapping; zero where it says nothing.
func (p *parser) timeouts(n *node) Timeouts {
	if n == nil {
		return Timeouts{}
	}
	f := p.open(n, p.form.Timeouts)
	return Timeouts{
		Attempt: f.duration("attempt"), Total: f.duration("total"),
		Queue: f.duration("queue"), Heartbeat: f.duration("heartbeat"),
	}
}

// over fills what t leaves open from u.
func (t Timeouts) over(u Timeouts) Timeouts {
	for _, pair := range []struct{ to, from *time.Duration }{
		{&t.Attempt, &u.Attempt}, {&t.Total, &u.Total}, {&t.Queue, &u.Queue}, {&t.Heartbeat, &u.Heartbeat},
	} {
		if *pair.to == 0 {
			*pair.to = *pair.from
		}
	}
	return t
}

// retry reads the mapping; zero where it says nothing.
func (p *parser) retry(n *node) Retry {
	if n == nil {
		return Retry{}
	}
	f := p.open(n, p.form.Retry)
	r := Retry{Attempts: f.count("attempts", 0)}
	if b := f.get("backoff"); b != nil {
		g := p.open(b, p.form.Backoff)
		r.Initial, r.Max = g.duration("initial"), g.duration("max")
		r.Factor = p.factor(g.get("factor"), "factor", 0)
		if r.Initial > 0 && r.Max > 0 && r.Max < r.Initial {
			p.report(g.get("max").position, ruleRange, "the longest pause is shorter than the first",
				"write max: "+shortDuration(r.Initial)+" or more")
		}
	}
	for _, code := range p.list(f.get("stop_on"), "stop_on") {
		if c := p.name(code, "a code of stop_on"); c != "" {
			r.StopOn = append(r.StopOn, c)
		}
	}
	return r
}

// over fills what r leaves open from q.
func (r Retry) over(q Retry) Retry {
	if r.Attempts == 0 {
		r.Attempts = q.Attempts
	}
	if r.Initial == 0 {
		r.Initial = q.Initial
	}
	if r.Factor == 0 {
		r.Factor = q.Factor
	}
	if r.Max == 0 {
		r.Max = max(q.Max, r.Initial)
	}
	if r.StopOn == nil {
		r.StopOn = q.StopOn
	}
	return r
}

// DefaultRetry is how a step of that effect is retried that says nothing itself.
func DefaultRetry(e Effect) Retry {
	r := Retry{Attempts: DefaultAttempts, Initial: DefaultBackoffInitial, Factor: DefaultBackoffFactor, Max: DefaultBackoffMax}
	if e == AtMostOnce {
		r.Attempts = AtMostOnceAttempts
	}
	return r
}

// DefaultUndoRetry is how a compensation is retried that says nothing itself.
// All its tries end within DefaultUndoTotal.
func DefaultUndoRetry() Retry {
	return Retry{Attempts: DefaultUndoAttempts, Initial: DefaultUndoInitial, Factor: DefaultUndoFactor, Max: DefaultUndoMax}
}

// DefaultTimeouts are the time-outs of an activity that names none.
func DefaultTimeouts() Timeouts {
	return Timeouts{Attempt: DefaultAttemptTimeout, Total: DefaultTotalTimeout, Queue: DefaultQueueTimeout, Heartbeat: DefaultHeartbeat}
}

// activity reads a call to a worker, or over HTTP, with its contract.
func (p *parser) activity(s *Step, f fields) {
	a := &Activity{}
	s.Activity = a
	queue := firstWord(p.queueName(f.get("queue")), p.defaults.queue, DefaultQueue)
	undeclared := AtMostOnce
	if s.Verb == VerbHTTP {
		a.Name, a.Queue = HTTPActivity, HTTPQueue
		method := p.request(f.get("http"), p.form.HTTP, s, placeCall, &a.With)
		undeclared = Effect(firstWord(string(methodEffect(method)), string(AtMostOnce)))
		p.httpKeys(f, method)
	} else {
		a.Name, a.Queue = p.activityName(f.get("activity")), queue
		if n := f.get("with"); n != nil {
			p.objectSlot(n, s, placeBefore, "with", &a.With)
		}
	}
	a.Effect = Effect(f.word("effect", string(undeclared)))
	a.Irreversible = f.flag("irreversible")
	a.OnUnknown = OnUnknown(f.word("on_unknown", string(UnknownIncident)))
	if n := f.get("key"); n != nil {
		p.keySlot(n, s, placeBefore, &a.Key)
	}
	a.Output = f.schema("output")
	s.Accepted = p.accepted(f.get("accepted"))
	s.Timeouts = p.timeouts(f.get("timeouts")).over(p.defaults.timeouts).over(DefaultTimeouts())
	own := p.retry(f.get("retry"))
	s.Retry = p.stepRetry(own, a.Effect)
	if n := f.get("probe"); n != nil {
		a.Probe = p.probe(n, s, queue)
	}
	if n := f.get("compensate"); n != nil {
		a.Compensate = p.compensate(n, s, queue)
	}
	p.checkContract(s, f, own)
}

// httpKeys reports what the method of an http step leaves open or makes useless.
func (p *parser) httpKeys(f fields, method string) {
	if method != "" && methodEffect(method) == "" && f.lacks("effect") {
		p.report(f.key("http").position, ruleHTTPEffect, fmt.Sprintf("%s does not tell what a lost answer means, and the step declares no effect", method),
			"add effect: idempotent if the service honours the header Idempotency-Key, else probeable, at_most_once or pure")
	}
	byWorker := func(key string) bool {
		_, k := f.get(key).field("activity")
		return k != nil
	}
	if k := f.key("queue"); k != nil && !byWorker("probe") && !byWorker("compensate") {
		p.report(k.position, ruleNoEffect, "queue has no effect on the verb http: the engine's own workers make the call", "remove it")
	}
}

// activityName reads the name of an activity of somebody's worker.
func (p *parser) activityName(n *node) string {
	return p.reserved(n, p.name(n, "the activity"), "the activity")
}

// queueName reads the name of a queue of somebody's workers; "" when n is nil.
func (p *parser) queueName(n *node) string {
	return p.reserved(n, p.optionalName(n, "the queue"), "the queue")
}

// stepRetry completes a step's own retry. The attempts of the file's defaults
// are not for at_most_once: a default must not weaken a contract.
func (p *parser) stepRetry(own Retry, e Effect) Retry {
	general := p.defaults.retry
	if e == AtMostOnce {
		general.Attempts = AtMostOnceAttempts
	}
	return own.over(general).over(DefaultRetry(e))
}

func (p *parser) accepted(n *node) string {
	if n == nil {
		return ""
	}
	if n.kind == boolNode {
		p.report(n.position, ruleWrongKind, "accepted must be text that says why", `write the reason: accepted: "a second mail does no harm"`)
		return ""
	}
	text := p.longText(n)
	if text == "" && n.kind == textNode {
		p.report(n.position, ruleName, "the reason is empty", "write why the finding is meant")
	}
	return text
}

func (p *parser) optionalName(n *node, what string) string {
	if n == nil {
		return ""
	}
	return p.name(n, what)
}

func firstWord(words ...string) string {
	for _, w := range words {
		if w != "" {
			return w
		}
	}
	return ""
}

// probe reads the call that says whether an effect took place.
func (p *parser) probe(n *node, s *Step, queue string) *Call {
	f := p.open(n, p.form.Probe)
	c := &Call{Effect: Pure, Retry: DefaultRetry(Pure)}
	c.Retry.Attempts = DefaultProbeAttempts
	p.call(c, f, s, placeProbe, queue, p.form.ProbeHTTP)
	return c
}

// call reads what a probe or an undo calls: an activity or an http request.
func (p *parser) call(c *Call, f fields, s *Step, at place, queue string, request *grammar.Mapping) {
	h, w := f.get("http"), f.get("with")
	if h == nil {
		c.Name, c.Queue = p.activityName(f.must("activity")), queue
		if w != nil {
			p.objectSlot(w, s, at, "with", &c.With)
		}
		return
	}
	c.Name, c.Queue = HTTPActivity, HTTPQueue
	p.request(h, request, s, at, &c.With)
	if k := f.key("activity"); k != nil {
		p.report(k.position, ruleOneOf, f.form.What+" has http already and cannot also have activity", "keep one of them")
	}
	if w != nil {
		p.report(f.key("with").position, ruleNoEffect, "with has no effect beside http", "put what is sent into query or body inside http")
	}
}

// compensate reads the call that undoes the step.
func (p *parser) compensate(n *node, s *Step, queue string) *Call {
	f := p.open(n, p.form.Compensate)
	c := &Call{}
	p.call(c, f, s, placeUndo, queue, p.form.HTTP)
	c.Effect = Effect(f.word("effect", string(Idempotent)))
	own := p.retry(f.get("retry"))
	c.Retry = own.over(DefaultUndoRetry())
	if c.Effect == AtMostOnce {
		if c.Retry.Attempts = AtMostOnceAttempts; own.Attempts > 1 {
			p.retryForbidden(f)
		}
	}
	if k := f.get("key"); k != nil {
		p.keySlot(k, s, placeUndo, &c.Key)
	}
	return c
}

// retryForbidden reports attempts where a second one must not be made.
func (p *parser) retryForbidden(f fields) {
	at, _ := f.get("retry").field("attempts")
	p.report(at.position, ruleRetryOnce, fmt.Sprintf("an %s call is never tried twice", AtMostOnce),
		"remove retry, or declare effect: idempotent if the service honours the idempotency key")
}
