package workflow

import "fmt"

// The quotas of definitions unless an operator sets others.
const (
	DefaultSteps = 20 // a process that people can still read
	DefaultDepth = 16 // blocks in each other
	DefaultWidth = 16 // branches side by side
)

// Quotas bound what a definition may hold when it is published. They keep one
// process from using up the system, lie far below the bounds of the language,
// and an operator may raise them up to those. A field that is 0 is its default.
type Quotas struct {
	Steps int // of the whole tree; 0 is DefaultSteps
	Depth int // blocks in each other, the steps of the file are 1; 0 is DefaultDepth
	Width int // branches of one parallel; 0 is DefaultWidth
}

// Check is Parse, and adds the places at which a definition is above the
// quotas: it is what publishing does, and what a look before publishing should
// do. What was published stays valid when quotas are lowered, so that reading it
// again is left to Parse.
func Check(file string, src []byte, q Quotas) (*Definition, []Problem) {
	def := func(n *int, d int) {
		if *n <= 0 {
			*n = d
		}
	}
	def(&q.Steps, DefaultSteps)
	def(&q.Depth, DefaultDepth)
	def(&q.Width, DefaultWidth)
	return parse(file, src, &q)
}

// overSteps reports the first step above the quota.
func (p *parser) overSteps(at position) {
	if p.quotas != nil && p.steps == p.quotas.Steps+1 {
		p.report(at, ruleQuotaSteps, fmt.Sprintf("this is step %d, %s", p.steps, quotaOf(p.quotas.Steps, DefaultSteps, "steps in a definition")),
			"split the process into several definitions, or ask an operator to raise the quota")
	}
}

// overDepth reports a block that is the first of its kind above the quota;
// what stands in it is not reported again.
func (p *parser) overDepth(at position, depth int) {
	if p.quotas != nil && depth == p.quotas.Depth+1 {
		p.report(at, ruleQuotaDepth, fmt.Sprintf("this block stands %d deep, %s", depth, quotaOf(p.quotas.Depth, DefaultDepth, "blocks in each other")),
			"flatten the process, make a definition of its own of the inner part, or ask an operator to raise the quota")
	}
}

// overWidth reports the first branch above the quota.
func (p *parser) overWidth(branches *node) {
	if p.quotas != nil && len(branches.keys) > p.quotas.Width {
		p.report(branches.keys[p.quotas.Width].position, ruleQuotaWidth,
			fmt.Sprintf("this parallel has %d branches, %s", len(branches.keys), quotaOf(p.quotas.Width, DefaultWidth, "branches side by side")),
			"split it into several steps, or ask an operator to raise the quota")
	}
}

// quotaOf names a quota, and that another server may have another one.
func quotaOf(n, byDefault int, what string) string {
	if n == byDefault {
		return fmt.Sprintf("the quota is %d %s unless the server's operator has raised it", n, what)
	}
	return fmt.Sprintf("the quota of this server is %d %s", n, what)
}

// quotaRules are the rules about the size that an operator allows.
func quotaRules() []Rule {
	return []Rule{
		{ID: ruleQuotaSteps, Title: "more steps than the quota", Why: "People can read a process of twenty steps. A server has a quota for each definition so that one process does not use it up; ringi check takes the default, and an operator may have raised it."},
		{ID: ruleQuotaDepth, Title: "deeper than the quota", Why: "Each block inside another is one more condition to keep in mind. A server has a quota of blocks in each other; ringi check takes the default, and an operator may have raised it."},
		{ID: ruleQuotaWidth, Title: "wider than the quota", Why: "Each branch of a parallel is work that is under way at the same time. A server has a quota of branches side by side; ringi check takes the default, and an operator may have raised it."},
	}
}
