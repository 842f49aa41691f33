package workflow

import (
	"fmt"
	"time"
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
	f := p.open(n, "defaults", "queue", "timeouts", "retry")
	d := defaults{timeouts: p.timeouts(f.get("timeouts")), retry: p.retry(f.get("retry"))}
	if q := f.get("queue"); q != nil {
		d.queue = p.name(q, "the queue")
	}
	return d
}

// timeouts reads the mapping; zero where it says nothing.
func (p *parser) timeouts(n *node) Timeouts {
	if n == nil {
		return Timeouts{}
	}
	f := p.open(n, "timeouts", "attempt", "total", "queue", "heartbeat")
	return Timeouts{
		Attempt: p.duration(f.get("attempt")), Total: p.duration(f.get("total")),
		Queue: p.duration(f.get("queue")), Heartbeat: p.duration(f.get("heartbeat")),
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
	f := p.open(n, "retry", "attempts", "backoff", "stop_on")
	r := Retry{Attempts: p.count(f.get("attempts"), "attempts", 1, MaxAttempts, 0)}
	if b := f.get("backoff"); b != nil {
		g := p.open(b, "backoff", "initial", "factor", "max")
		r.Initial, r.Max = p.duration(g.get("initial")), p.duration(g.get("max"))
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

// effects are the words of effect, safest reading last.
func effects() []string {
	return []string{string(Pure), string(Idempotent), string(Probeable), string(AtMostOnce)}
}

// activity reads a call to a worker with its contract.
func (p *parser) activity(s *Step, f fields) {
	a := &Activity{Name: p.name(f.get("activity"), "the activity")}
	s.Activity = a
	a.Queue = firstWord(p.optionalName(f.get("queue"), "the queue"), p.defaults.queue, DefaultQueue)
	a.Effect = Effect(p.word(f.get("effect"), string(AtMostOnce), effects()...))
	a.Irreversible = p.flag(f.get("irreversible"), "irreversible")
	a.OnUnknown = OnUnknown(p.word(f.get("on_unknown"), string(UnknownIncident), string(UnknownIncident),
		string(UnknownAssumeApplied), string(UnknownAssumeNotApplied), string(UnknownCompensate), string(UnknownFail)))
	if n := f.get("with"); n != nil {
		p.objectSlot(n, s, placeBefore, "with", &a.With)
	}
	if n := f.get("key"); n != nil {
		p.keySlot(n, s, placeBefore, &a.Key)
	}
	a.Output = p.schema(f.get("output"))
	s.Accepted = p.accepted(f.get("accepted"))
	s.Timeouts = p.timeouts(f.get("timeouts")).over(p.defaults.timeouts).over(DefaultTimeouts())
	own := p.retry(f.get("retry"))
	s.Retry = p.stepRetry(own, a.Effect)
	if n := f.get("probe"); n != nil {
		a.Probe = p.probe(n, s)
	}
	if n := f.get("compensate"); n != nil {
		a.Compensate = p.compensate(n, s)
	}
	p.checkContract(s, f, own)
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

// probe reads the activity that says whether an effect took place.
func (p *parser) probe(n *node, s *Step) *Call {
	f := p.open(n, "probe", "activity", "with")
	c := &Call{Name: p.name(f.must("activity", "activity: payment.find"), "the activity"), Queue: s.Activity.Queue, Effect: Pure}
	c.Retry = DefaultRetry(Pure)
	c.Retry.Attempts = DefaultProbeAttempts
	if w := f.get("with"); w != nil {
		p.objectSlot(w, s, placeProbe, "with", &c.With)
	}
	return c
}

// compensate reads the activity that undoes the step.
func (p *parser) compensate(n *node, s *Step) *Call {
	f := p.open(n, "compensate", "activity", "with", "effect", "key", "retry")
	c := &Call{Name: p.name(f.must("activity", "activity: payment.refund"), "the activity"), Queue: s.Activity.Queue}
	c.Effect = Effect(p.word(f.get("effect"), string(Idempotent), string(Idempotent), string(AtMostOnce)))
	own := p.retry(f.get("retry"))
	c.Retry = own.over(DefaultUndoRetry())
	if c.Effect == AtMostOnce {
		if c.Retry.Attempts = AtMostOnceAttempts; own.Attempts > 1 {
			p.retryForbidden(f)
		}
	}
	if w := f.get("with"); w != nil {
		p.objectSlot(w, s, placeUndo, "with", &c.With)
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
