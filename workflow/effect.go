package workflow

import (
	"fmt"
	"slices"

	"github.com/ringiflow/ringi/workflow/grammar"
)

// checkContract checks what a step says about its effect against itself.
func (p *parser) checkContract(s *Step, f fields, own Retry) {
	a := s.Activity
	effect := f.get("effect")
	if s.Verb == VerbActivity && f.lacks("effect") {
		p.report(f.key("activity").position, ruleNoContract, fmt.Sprintf("the step declares no effect and is taken for %s", AtMostOnce),
			"add effect: pure, idempotent, probeable or at_most_once")
	}
	if own.Attempts > 1 && a.Effect == AtMostOnce {
		p.retryForbidden(f)
	}
	p.contractKeys(s, f, own)
	switch {
	case a.Effect == Probeable && f.lacks("probe"):
		p.report(effect.position, ruleNoProbe, "a probeable step needs the call that asks whether the effect took place",
			`add probe: { activity: payment.find, with: { key: "${ step.key }" } }`)
	}
	if a.OnUnknown == UnknownCompensate && !a.Irreversible && f.lacks("compensate") {
		p.report(f.get("on_unknown").position, ruleUnknownUndo, "on_unknown: compensate needs a compensation", "add compensate: { activity: … }, or write on_unknown: incident")
	}
	p.checkTimes(s, f)
}

// contractKeys reports keys that the step's contract makes nothing of.
func (p *parser) contractKeys(s *Step, f fields, own Retry) {
	a := s.Activity
	f.forbidden()
	p.uselessBackoff(f, s.Retry)
	if c := f.get("compensate"); c != nil && a.Compensate != nil {
		p.uselessBackoff(p.known(c, p.form.Compensate), a.Compensate.Retry)
	}
}

// known wraps a mapping whose keys have been checked before.
func (p *parser) known(n *node, form *grammar.Mapping) fields {
	if n.kind != mapNode {
		n = nil
	}
	return fields{p: p, at: n, form: form}
}

// uselessBackoff reports pauses between attempts of which there is only one.
func (p *parser) uselessBackoff(f fields, r Retry) {
	if _, k := f.get("retry").field("backoff"); k != nil && r.Attempts == 1 {
		p.report(k.position, ruleNoEffect, "backoff has no effect: there is only one attempt", "remove it, or allow more attempts")
	}
}

// checkTimes reports an attempt that may take longer than the whole step.
func (p *parser) checkTimes(s *Step, f fields) {
	attempt, _ := f.get("timeouts").field("attempt")
	total, _ := f.get("timeouts").field("total")
	if s.Timeouts.Attempt <= s.Timeouts.Total || (attempt == nil && total == nil) {
		return
	}
	at := attempt
	if at == nil {
		at = total
	}
	p.report(at.position, ruleTimes, fmt.Sprintf("one attempt may take %s, but the step with all its attempts only %s",
		shortDuration(s.Timeouts.Attempt), shortDuration(s.Timeouts.Total)),
		"write total: "+shortDuration(s.Timeouts.Attempt)+" or more, or a shorter attempt")
}

// findings reports what S7 asks of every side effect: that it can be undone,
// or that somebody approved it, or that somebody wrote down why not.
func (p *parser) findings(s *Step, approved bool) {
	a, f := s.Activity, p.at[s]
	if a == nil || a.Effect == Pure || !f.lacks("accepted") || slices.Contains(f.meant, "effect") {
		return
	}
	if s.Verb == VerbHTTP && a.Effect == AtMostOnce && f.lacks("effect") {
		return // its method is wrong, or its effect must be declared: that is reported already
	}
	switch {
	case a.Irreversible && !approved:
		p.report(f.key("irreversible").position, ruleUnapproved, "nobody approves this step, and it cannot be undone",
			"put an approval in front of it, or say why it needs none: accepted: \"…\"")
	case f.lacks("irreversible", "compensate"):
		p.report(f.key(string(s.Verb)).position, ruleNoUndo, "the effect of this step stays when the run fails later",
			"add compensate: { activity: … }, or irreversible: true, or say why that is meant: accepted: \"…\"")
	}
}

// besideFailure reports irreversible steps in a branch beside one that can
// fail: the failure comes too late to stop them.
func (p *parser) besideFailure(par *Parallel) {
	for i, b := range par.Branches {
		for j, other := range par.Branches {
			if i == j || !canFail(other) {
				continue
			}
			for _, s := range pivots(b) {
				if s.Accepted == "" {
					p.report(p.at[s].key("irreversible").position, rulePivotBeside,
						fmt.Sprintf("this step cannot be undone, and the branch %s beside it can fail", other.Branch),
						"move the step behind the parallel, or say why that is meant: accepted: \"…\"")
				}
			}
		}
	}
}

// pivots lists the irreversible steps of a block and the blocks in it.
func pivots(b *Block) []*Step {
	var out []*Step
	for _, s := range b.Steps {
		if s.Activity != nil && s.Activity.Irreversible {
			out = append(out, s)
		}
		for _, inner := range s.Blocks() {
			out = append(out, pivots(inner)...)
		}
	}
	return out
}

// canFail reports whether a block can end with a failure.
func canFail(b *Block) bool {
	for _, s := range b.Steps {
		switch {
		case catchesAll(s):
		case s.Activity != nil, s.Fail != nil,
			s.Approval != nil && s.Approval.OnReject == "fail",
			s.Wait != nil && s.Wait.Timeout > 0 && s.Wait.Then == "fail":
			return true
		}
		for _, inner := range s.Blocks() {
			if catchesAll(s) && !isCatch(inner) {
				continue
			}
			if canFail(inner) {
				return true
			}
		}
	}
	return false
}

// catchesAll reports whether no failure of the step gets past it.
func catchesAll(s *Step) bool {
	for _, c := range s.Catch {
		for _, on := range c.On {
			if on == "*" {
				return true
			}
		}
	}
	return false
}

// isCatch reports whether a block handles a failure of its owner.
func isCatch(b *Block) bool {
	for _, c := range b.Owner.Catch {
		if c.Do == b {
			return true
		}
	}
	return false
}

// checkOnFailure reports steps that must not run when the run has failed and
// everything was undone: what fails there, nobody could undo.
func (p *parser) checkOnFailure(b *Block) {
	if b == nil {
		return
	}
	for _, s := range b.Steps {
		for _, handler := range s.Catch {
			p.checkOnFailure(handler.Do)
		}
		f := p.at[s]
		switch {
		case s.Verb == VerbEmit, s.Verb == VerbSet, s.Verb == "": // without a verb it is reported already
		case s.Activity != nil && (s.Activity.Effect == Pure || s.Activity.Effect == Idempotent):
			for _, key := range []string{"compensate", "irreversible"} {
				if k := f.key(key); k != nil {
					p.report(k.position, ruleNoEffect, key+" has no effect in on_failure: it runs after everything was undone", "remove it")
				}
			}
		case s.Activity != nil:
			p.report(f.key(string(s.Verb)).position, ruleOnFailure, fmt.Sprintf("on_failure may only make pure or idempotent calls, this one is %s", s.Activity.Effect),
				"declare effect: idempotent if the service honours the key, else tell the service by emit")
		default:
			p.report(f.key(string(s.Verb)).position, ruleOnFailure, fmt.Sprintf("on_failure may not have the verb %s", s.Verb), "use emit, set, or a pure or idempotent activity or http")
		}
	}
}
