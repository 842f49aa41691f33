package workflow

import (
	"fmt"
	"strings"
	"time"
)

// approval reads what people are asked and who they are.
func (p *parser) approval(s *Step, n *node) {
	a := &Approval{Risk: DefaultRisk, ExpireAfter: DefaultApprovalExpiry}
	s.Approval = a
	f := p.open(n, p.form.Approval)
	a.Subject = constValue([]byte("{}"))
	p.approvalTexts(s, f)
	a.Risk = f.word("risk", DefaultRisk)
	a.Show = p.show(s, f.get("show"))
	lanes := p.list(f.must("ask"), "ask")
	a.Ask = make([]Lane, len(lanes))
	names := map[string]bool{}
	for i, item := range lanes {
		p.lane(s, &a.Ask[i], i, item, names)
	}
	if sep := f.get("separation"); sep != nil {
		a.Separation = p.people(s, p.list(sep, "separation"))
	}
	if e := f.get("expires"); e != nil {
		x := p.open(e, p.form.Expires)
		x.must("after")
		if d := x.duration("after"); d > 0 {
			a.ExpireAfter = d
		}
		x.word("then", "reject")
	}
	a.OnReject = f.word("on_reject", "fail")
}

func (p *parser) approvalTexts(s *Step, f fields) {
	a := s.Approval
	title := f.get("title")
	if title == nil {
		title = p.at[s].get("title")
	}
	if title == nil {
		title = &node{kind: textNode, text: strings.ReplaceAll(s.ID, "_", " ")}
	}
	p.titleSlot(title, s, placeBefore, &a.Title)
	if t := f.get("summary"); t != nil {
		p.textSlot(t, s, placeBefore, &a.Summary)
	}
	if t := f.get("consequence"); t != nil {
		p.textSlot(t, s, placeBefore, &a.Consequence)
	}
	if n := f.get("subject"); n != nil {
		p.objectSlot(n, s, placeBefore, "the subject", &a.Subject)
	}
}

// show reads the lines and tables that approvers see.
func (p *parser) show(s *Step, n *node) []Show {
	if n == nil {
		return nil
	}
	items := p.list(n, "show")
	out := make([]Show, len(items))
	for i, item := range items {
		f := p.open(item, p.form.Show)
		if f.at == nil {
			continue
		}
		out[i].Label = p.name(f.must("label"), "the label")
		value, table := f.get("value"), f.get("table")
		switch {
		case value != nil && table != nil:
			p.report(f.key("table").position, ruleOneOf, "an entry of show has a value or a table, not both", "make two entries of it")
		case value != nil:
			p.valueSlot(value, s, placeBefore, &out[i].Value)
		case table != nil:
			p.tableSlot(table, s, &out[i].Table)
		case f.lacks("value", "table"):
			p.report(item.position, ruleMissingKey, "an entry of show needs the key value or table", `add value: "${ input.amount }"`)
		}
	}
	return out
}

// lane reads one group of approvers.
func (p *parser) lane(s *Step, l *Lane, i int, n *node, names map[string]bool) {
	l.Quorum = DefaultQuorum
	l.Name = fmt.Sprintf("lane %d", i+1)
	f := p.open(n, p.form.Lane)
	if f.at == nil {
		return
	}
	if name := f.get("name"); name != nil {
		l.Name = p.name(name, "the name")
		if names[l.Name] {
			p.report(name.position, ruleSameLane, fmt.Sprintf("a lane above is named %s already", quoted(l.Name)), "use another name, or put everybody into one lane")
		}
	}
	names[l.Name] = true
	from := p.list(f.must("from"), "from")
	l.From = p.people(s, from)
	l.Quorum = f.count("quorum", DefaultQuorum)
	users, others := map[string]bool{}, false
	for _, who := range from {
		if strings.HasPrefix(who.text, "user:") && !strings.Contains(who.text, "${") {
			users[who.text] = true
		} else {
			others = true
		}
	}
	if !others && len(from) > 0 && l.Quorum > len(users) {
		at := n.position
		if q := f.get("quorum"); q != nil {
			at = q.position
		}
		p.report(at, ruleQuorum, fmt.Sprintf("%d different people must agree, but only %d can", l.Quorum, len(users)),
			fmt.Sprintf("write quorum: %d, or add people or a group to from", max(len(users), 1)))
	}
}

// people reads a list of group:NAME and user:ID.
func (p *parser) people(s *Step, items []*node) []*Value {
	out := make([]*Value, len(items))
	for i, n := range items {
		if !p.expect(n, textNode, "a group or user") {
			continue
		}
		if prefix, rest, ok := strings.Cut(n.text, ":"); !strings.HasPrefix(strings.TrimSpace(n.text), "${") &&
			(!ok || (prefix != "group" && prefix != "user") || strings.TrimSpace(rest) == "") {
			p.report(n.position, ruleWho, fmt.Sprintf("%s names neither a group nor a user", quoted(n.text)), "write "+whoSuggestion(n.text))
		}
		p.textSlot(n, s, placeBefore, &out[i])
	}
	return out
}

func whoSuggestion(text string) string {
	_, rest, ok := strings.Cut(text, ":")
	if !ok {
		rest = text
	}
	if rest = strings.TrimSpace(rest); rest == "" {
		rest = "finance"
	}
	return "group:" + rest + " or user:" + rest
}

// wait reads a wait for time or for an event.
func (p *parser) wait(s *Step, n *node) {
	w := &Wait{Then: "fail"}
	s.Wait = w
	f := p.open(n, p.form.Wait)
	if f.at == nil {
		return
	}
	first := ""
	for _, k := range f.at.keys {
		if k.text != "for" && k.text != "until" && k.text != "event" {
			continue
		}
		if first != "" {
			p.report(k.position, ruleOneOf, fmt.Sprintf("the wait has %s already and cannot also have %s", first, k.text), "make two steps of it")
			continue
		}
		first = k.text
	}
	if f.lacks("for", "until", "event") {
		p.report(f.at.position, ruleMissingKey, "wait needs one of the keys for, until and event", "add for: 4h")
	}
	w.For = f.duration("for")
	if until := f.get("until"); until != nil {
		p.until(s, until)
	}
	p.waitEvent(s, f)
	if t := f.get("timeout"); t != nil {
		x := p.open(t, p.form.WaitTimeout)
		x.must("after")
		w.Timeout = x.duration("after")
		w.Then = x.word("then", "fail")
	}
	if first != "event" && first != "" {
		for _, k := range []string{"key", "timeout"} {
			if extra := f.key(k); extra != nil {
				p.report(extra.position, ruleNoEffect, fmt.Sprintf("%s has no effect on a wait %s a time", k, first), "remove it")
			}
		}
	}
}

func (p *parser) waitEvent(s *Step, f fields) {
	event := f.get("event")
	if event == nil {
		return
	}
	s.Wait.Event = p.name(event, "the event")
	if key := f.get("key"); key != nil {
		p.textSlot(key, s, placeBefore, &s.Wait.Key)
	} else if f.lacks("key") {
		p.report(f.key("event").position, ruleEventKey, "a wait for an event needs the key that the event is sent with",
			`add key: "${ input.order_id }"`)
	}
}

// until reads an instant.
func (p *parser) until(s *Step, n *node) {
	if n.kind == textNode && !strings.Contains(n.text, "${") {
		if _, err := time.Parse(time.RFC3339, n.text); err != nil {
			p.report(n.position, ruleInstant, fmt.Sprintf("%s is not an instant", quoted(n.text)), "write it as 2026-03-01T09:00:00Z, or use for: with a duration")
			return
		}
	}
	p.timeSlot(n, s, &s.Wait.Until)
}
