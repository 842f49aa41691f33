package workflow

import (
	"fmt"
	"slices"
	"strings"
)

// choose reads a list of cases and the block for when none holds.
func (p *parser) choose(s *Step, n *node, depth int) {
	s.Choose = &Choose{}
	items := p.list(n, "choose")
	if len(items) > MaxWidth {
		p.report(items[MaxWidth].position, ruleTooMany, fmt.Sprintf("choose has at most %d cases", MaxWidth), "split it into several steps")
		return
	}
	for i, item := range items {
		f := p.open(item, p.form.Case)
		if f.at == nil {
			continue
		}
		otherwise := f.get("else")
		if otherwise == nil {
			p.chooseCase(s, f, depth)
			continue
		}
		for _, k := range []string{"if", "do"} {
			if extra := f.key(k); extra != nil {
				p.report(extra.position, ruleElse, fmt.Sprintf("%s stands beside else; else is taken when no condition holds", k),
					"write - if: … do: … and - else: … as two entries")
			}
		}
		if i != len(items)-1 {
			p.report(f.key("else").position, ruleElse, "cases behind else are never looked at", "move else to the end of the list")
		}
		if s.Choose.Else == nil {
			s.Choose.Else = p.block(otherwise, s, "else", depth+1, true)
		}
	}
	if s.Choose.Else == nil && len(items) > 0 {
		p.report(p.at[s].key("choose").position, ruleNoElse, "choose says nothing about the case that no condition holds",
			"add - else: with steps, or - else: [] when nothing is to be done")
	}
}

func (p *parser) chooseCase(s *Step, f fields, depth int) {
	i := len(s.Choose.Cases)
	s.Choose.Cases = append(s.Choose.Cases, Case{})
	condition := f.must("if")
	body := f.must("do")
	s.Choose.Cases[i].Do = p.block(body, s, fmt.Sprintf("if_%d", i), depth+1, true)
	if condition != nil {
		// The list of cases grows after this, so its address is taken when the condition is compiled.
		p.conditionSlot(condition, s, func(c *Condition) { s.Choose.Cases[i].If = c })
	}
}

// parallel reads branches that run side by side.
func (p *parser) parallel(s *Step, n *node, depth int) {
	s.Parallel = &Parallel{}
	f := p.open(n, p.form.Parallel)
	branches := f.must("branches")
	if branches == nil || !p.expect(branches, mapNode, "branches") {
		return
	}
	switch {
	case len(branches.keys) == 0:
		p.report(branches.position, ruleEmpty, "parallel has no branches", "add branches, or remove the step")
	case len(branches.keys) > MaxWidth:
		p.report(branches.keys[MaxWidth].position, ruleTooMany, fmt.Sprintf("parallel has at most %d branches", MaxWidth), "split it into several steps")
		return
	}
	p.overWidth(branches)
	for i, k := range branches.keys {
		name := p.identifier(k, "the branch")
		if strings.HasPrefix(name, "catch_") {
			p.report(k.position, ruleIdentifier, "names that begin with catch_ are kept for the blocks of catch", "use another name")
		}
		s.Parallel.Branches = append(s.Parallel.Branches, p.block(branches.items[i], s, name, depth+1, false))
	}
}

// catchWords are the words of catch.on that are no failure codes.
func catchWords() []string {
	return []string{"timed_out", "rejected", "expired", "cancelled", "bad_output", "expression", "*"}
}

// possibleCatches are the words that can happen to a verb; codes says whether
// failure codes can.
func possibleCatches(v Verb) (words []string, codes bool) {
	switch v {
	case VerbActivity, VerbHTTP:
		return []string{"timed_out", "cancelled", "bad_output", "expression", "*"}, true
	case VerbApproval:
		return []string{"rejected", "expired", "cancelled", "expression", "*"}, false
	case VerbWait:
		return []string{"timed_out", "cancelled", "expression", "*"}, false
	case VerbEmit, VerbSet:
		return []string{"expression", "*"}, false
	}
	return catchWords(), true
}

// catch reads the handlers of a step's failures.
func (p *parser) catch(n *node, s *Step, depth int) []Catch {
	if n == nil {
		return nil
	}
	var out []Catch
	seen := map[string]bool{}
	for i, item := range p.list(n, "catch") {
		f := p.open(item, p.form.Catch)
		if f.at == nil {
			continue
		}
		c := Catch{}
		for _, word := range p.list(f.must("on"), "on") {
			if w := p.catchWord(word, s, seen); w != "" {
				c.On = append(c.On, w)
			}
		}
		c.Do = p.block(f.must("do"), s, fmt.Sprintf("catch_%d", i), depth+1, true)
		out = append(out, c)
	}
	return out
}

// catchWord reads one entry of on.
func (p *parser) catchWord(n *node, s *Step, seen map[string]bool) string {
	w := p.name(n, "an entry of on")
	if w == "" {
		return ""
	}
	possible, codes := possibleCatches(s.Verb)
	known := slices.Contains(catchWords(), w)
	near := nearest(w, catchWords())
	switch {
	case seen[w] || seen["*"]:
		p.report(n.position, ruleCatch, fmt.Sprintf("%s is caught by an entry above already", quoted(w)), "remove it, or move * to the end")
	case known && !slices.Contains(possible, w), !known && !codes:
		p.report(n.position, ruleCatch, fmt.Sprintf("%s cannot happen to the verb %s", quoted(w), s.Verb), "write "+listed(possible))
	case !known && strings.HasPrefix(w, "http_"):
		p.caughtStatus(n, s, w)
	case !known && near != "":
		p.report(n.position, ruleCatchWord, fmt.Sprintf("%s is taken for a failure code of the worker", quoted(w)), "did you mean "+near+"?")
	}
	seen[w] = true
	return w
}
