package workflow

import (
	"fmt"
	"slices"
	"strings"
)

// block reads a list of steps. It never returns nil, so that the checks behind
// it need not ask. mayBeEmpty is for branches where nothing to do is an answer.
func (p *parser) block(n *node, owner *Step, branch string, depth int, mayBeEmpty bool) *Block {
	b := &Block{Owner: owner, Branch: branch}
	p.definition.blocks = append(p.definition.blocks, b)
	if n == nil || !p.expect(n, listNode, "a list of steps") {
		return b
	}
	if len(n.items) == 0 && !mayBeEmpty {
		p.report(n.position, ruleEmpty, "the list of steps is empty", "add a step, or remove the branch")
	}
	p.overDepth(n.position, depth)
	if depth > MaxDepth {
		p.report(n.position, ruleTooMany, fmt.Sprintf("blocks stand more than %d deep in each other", MaxDepth),
			"flatten the process, or make a definition of its own of the inner part")
		return b
	}
	for _, item := range n.items {
		if p.steps++; p.steps > MaxSteps {
			if p.steps == MaxSteps+1 {
				p.report(item.position, ruleTooMany, fmt.Sprintf("a definition has at most %d steps", MaxSteps), "split the process into several definitions")
			}
			return b
		}
		p.overSteps(item.position)
		if s := p.step(item, b, depth); s != nil {
			s.In, s.Index, s.Line = b, len(b.Steps), p.original(item.position).line
			b.Steps = append(b.Steps, s)
		}
	}
	return b
}

// step reads one step.
func (p *parser) step(n *node, in *Block, depth int) *Step {
	if !p.expect(n, mapNode, "a step") {
		return nil
	}
	s := &Step{In: in}
	f := p.open(n, p.form.Step)
	p.at[s] = f
	known := p.verb(s, f)
	p.id(s, f)
	if !known { // others may still refer to it
		return s
	}
	if t := f.get("title"); t != nil {
		p.titleSlot(t, s, placeBefore, &s.Title)
	}
	if w := f.get("when"); w != nil {
		p.conditionSlot(w, s, func(c *Condition) { s.When = c })
	}
	p.misplaced(s, f)
	p.verbFields(s, f, depth)
	if s.Verb != VerbFail && s.Verb != VerbFinish {
		s.Catch = p.catch(f.get("catch"), s, depth)
	}
	return s
}

// verb finds the step's one verb.
func (p *parser) verb(s *Step, f fields) bool {
	var found []*node
	strange := false
	for _, k := range f.at.keys {
		if slices.Contains(p.form.Verbs(), k.text) {
			found = append(found, k)
		}
		strange = strange || !slices.Contains(f.form.Names(), k.text)
	}
	if len(found) == 0 {
		if !strange { // else the verb is misspelt, which is reported already
			p.report(f.at.position, ruleNoVerb, "the step does nothing: it has no verb", "add one of "+listed(p.form.Verbs()))
		}
		return false
	}
	for _, k := range found[1:] {
		p.report(k.position, ruleVerbs, fmt.Sprintf("the step has the verb %s already and cannot also have %s", found[0].text, k.text),
			"make two steps of it")
	}
	s.Verb = Verb(found[0].text)
	return true
}

// id reads the step's id and its uniqueness. An id that may be missing is
// made up later, see nameSteps.
func (p *parser) id(s *Step, f fields) {
	n := f.get("id")
	if n == nil {
		if s.Verb != "" && s.Verb != VerbFail && s.Verb != VerbFinish && f.lacks("id") {
			p.report(f.at.position, ruleMissingID, fmt.Sprintf("the step has no id; only %s and %s may leave it out", VerbFail, VerbFinish),
				"add id: and a word that is unique in the file")
		}
		return
	}
	id := p.identifier(n, "the id")
	if id == "" {
		return
	}
	if slices.Contains(f.of("id").Value.Reserved, id) {
		p.report(n.position, ruleIdentifier, fmt.Sprintf("expressions cannot name a step %s", quoted(id)), "write "+id+"_step")
		return
	}
	if first, ok := p.ids[id]; ok {
		p.report(n.position, ruleSameID, fmt.Sprintf("the id %s is taken by the step in line %d", id, p.original(first.position).line),
			"use another id, for example "+p.freeID(id))
		return
	}
	p.ids[id] = n
	s.ID = id
	p.definition.steps[id] = s
}

// freeID finds an id near one that is taken.
func (p *parser) freeID(id string) string {
	id = strings.TrimRight(id[:min(len(id), 58)], "_0123456789")
	for i := 2; ; i++ {
		if next := fmt.Sprintf("%s_%d", id, i); p.ids[next] == nil {
			return next
		}
	}
}

// nameSteps gives an id to the steps that have none: fail_1, finish_2, in the
// order of the file.
func (p *parser) nameSteps() {
	n := 0
	for _, b := range p.definition.blocks {
		for _, s := range b.Steps {
			if s.ID != "" || (s.Verb != VerbFail && s.Verb != VerbFinish) {
				continue
			}
			for s.ID == "" || p.definition.steps[s.ID] != nil {
				n++
				s.ID = fmt.Sprintf("%s_%d", s.Verb, n)
			}
			p.definition.steps[s.ID] = s
		}
	}
}

// misplaced reports keys that the step's verb makes nothing of.
func (p *parser) misplaced(s *Step, f fields) {
	for _, k := range f.at.keys {
		switch {
		case s.Verb == VerbHTTP && k.text == "with":
			p.report(k.position, ruleNoEffect, "with has no effect on the verb http", "put what is sent into query or body inside http")
		case s.Verb != VerbActivity && s.Verb != VerbHTTP && k.text != "catch" && slices.Contains(p.form.Step.BesideOf("activity"), k.text):
			suggestion := "remove it"
			if s.Verb == VerbApproval && k.text == "timeouts" {
				suggestion = "use expires: { after: 72h, then: reject } inside approval"
			} else if s.Verb == VerbWait && k.text == "timeouts" {
				suggestion = "use timeout: { after: 3d, then: fail } inside wait"
			}
			p.report(k.position, ruleNoEffect, fmt.Sprintf("%s has no effect on the verb %s", k.text, s.Verb), suggestion)
		case k.text == "catch" && (s.Verb == VerbFail || s.Verb == VerbFinish):
			p.report(k.position, ruleNoEffect, fmt.Sprintf("catch has no effect on the verb %s", s.Verb),
				"put catch on the step that this one stands in")
		}
	}
}

// verbFields reads what belongs to the step's verb.
func (p *parser) verbFields(s *Step, f fields, depth int) {
	n := f.get(string(s.Verb))
	switch s.Verb {
	case VerbActivity, VerbHTTP:
		p.activity(s, f)
	case VerbApproval:
		p.approval(s, n)
	case VerbWait:
		p.wait(s, n)
	case VerbChoose:
		p.choose(s, n, depth)
	case VerbParallel:
		p.parallel(s, n, depth)
	case VerbEmit:
		p.emit(s, n)
	case VerbSet:
		p.set(s, n)
	case VerbDo:
		s.Do = p.block(n, s, "do", depth+1, false)
	case VerbFail:
		p.fail(s, n)
	case VerbFinish:
		s.Finish = &Finish{}
		if out := p.open(n, p.form.Finish).get("output"); out != nil {
			p.valueSlot(out, s, placeBefore, &s.Finish.Output)
		}
	}
}

func (p *parser) fail(s *Step, n *node) {
	f := p.open(n, p.form.Fail)
	s.Fail = &Fail{Code: p.name(f.must("code"), "the code")}
	if m := f.get("message"); m != nil {
		p.textSlot(m, s, placeBefore, &s.Fail.Message)
	}
}

func (p *parser) emit(s *Step, n *node) {
	f := p.open(n, p.form.Emit)
	s.Emit = &Emit{Type: p.name(f.must("type"), "the type")}
	a := p.open(f.must("aggregate"), p.form.Aggregate)
	s.Emit.AggregateType = p.name(a.must("type"), "the type of the aggregate")
	if id := a.must("id"); id != nil {
		p.textSlot(id, s, placeBefore, &s.Emit.AggregateID)
	}
	s.Emit.Data = constValue([]byte("null"))
	if d := f.get("data"); d != nil {
		p.valueSlot(d, s, placeBefore, &s.Emit.Data)
	}
}

func (p *parser) set(s *Step, n *node) {
	if !p.expect(n, mapNode, "set") {
		return
	}
	if len(n.keys) == 0 {
		p.report(n.position, ruleEmpty, "set names no variable", `write set: { total: "${ input.amount }" }`)
	}
	s.Set = make([]Var, len(n.keys))
	reserved, _ := p.form.Step.Key(string(VerbSet))
	for i, k := range n.keys {
		s.Set[i].Name = p.identifier(k, "the name")
		if slices.Contains(reserved.Value.Reserved, k.text) {
			p.report(k.position, ruleIdentifier, fmt.Sprintf("expressions cannot name a variable %s", quoted(k.text)), "write "+k.text+"_value")
		}
		p.valueSlot(n.items[i], s, placeBefore, &s.Set[i].Value)
	}
}
