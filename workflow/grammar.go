package workflow

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/ringiflow/ringi/workflow/exact"
	"github.com/ringiflow/ringi/workflow/grammar"
)

// laterKeys are the keys that the language will have and this version does
// not: DESIGN section 4, "Later".
func laterKeys() []string {
	return []string{
		"lock", "guards", "valid", "escalate", "delegate", "remind", "notify", "machines", "channels",
		"each", "call", "triggers", "schedules", "limits", "signal", "env", "secrets", "form", "editable",
	}
}

// fields is a mapping of the grammar whose keys have been checked.
type fields struct {
	p     *parser
	at    *node
	form  *grammar.Mapping
	meant []string // known keys that unknown ones were probably meant to be
}

// open checks that n is a mapping of that form, with no keys that it lacks.
func (p *parser) open(n *node, form *grammar.Mapping) fields {
	f := fields{p: p, at: n, form: form}
	if n == nil {
		return f
	}
	if !p.expect(n, mapNode, form.What) {
		f.at = nil
		return f
	}
	known := form.Names()
	for _, k := range n.keys {
		if !slices.Contains(known, k.text) {
			f.meant = append(f.meant, p.unknownKey(k, form.What, known))
		}
	}
	return f
}

// of returns what the grammar says about a key. The parser may read no other
// keys, and none as something else.
func (f fields) of(key string, kinds ...grammar.Kind) grammar.Key {
	k, ok := f.form.Key(key)
	if !ok || len(kinds) > 0 && !slices.Contains(kinds, k.Value.Kind) {
		panic(fmt.Sprintf("workflow: the grammar does not have %s in %s so", key, f.form.What)) //nolint:forbidigo // a slip in this package, which its tests find
	}
	return k
}

// unknownKey reports a key and returns the known one that it stands for, or "".
func (p *parser) unknownKey(k *node, what string, known []string) string {
	if slices.Contains(laterKeys(), k.text) {
		suggestion, meant := "remove it; see the release notes for what this version can do", ""
		switch k.text {
		case "signal":
			suggestion, meant = "wait for an event with a key", "event"
		}
		p.report(k.position, ruleLater, fmt.Sprintf("%s is not available yet", quoted(k.text)), suggestion)
		return meant
	}
	suggestion := fmt.Sprintf("%s may have %s", what, listed(known))
	near := ""
	if p.counts[SeverityError] < maxProblems { // nobody reads the suggestions of the others
		near = nearest(k.text, known)
	}
	if near != "" {
		suggestion = "did you mean " + near + "?"
	}
	p.report(k.position, ruleUnknownKey, fmt.Sprintf("%s has no key %s", what, quoted(k.text)), suggestion)
	return near
}

// lacks reports whether the mapping has none of the keys, not even misspelt:
// one mistake should be told once.
func (f fields) lacks(keys ...string) bool {
	return !slices.ContainsFunc(keys, func(key string) bool { return f.get(key) != nil || slices.Contains(f.meant, key) })
}

// get returns the value of a key, or nil.
func (f fields) get(key string) *node {
	f.of(key)
	v, _ := f.at.field(key)
	return v
}

// key returns the key itself, or nil: where a problem about its presence is shown.
func (f fields) key(key string) *node {
	_, k := f.at.field(key)
	return k
}

// must returns the value of a key and reports its absence.
func (f fields) must(key string) *node {
	if f.at == nil {
		return nil
	}
	v := f.get(key)
	if f.lacks(key) {
		f.p.report(f.at.position, ruleMissingKey, fmt.Sprintf("%s needs the key %s", f.form.What, key), "add "+f.of(key).Example)
	}
	return v
}

// duration returns the duration of a key; 0 when it is missing or wrong.
func (f fields) duration(key string) time.Duration {
	f.of(key, grammar.Duration)
	return f.p.duration(f.get(key))
}

// word returns the word of a key; fallback when it is missing or wrong.
func (f fields) word(key, fallback string) string {
	return f.p.word(f.get(key), fallback, f.of(key, grammar.Word).Value.Words...)
}

// flag returns whether a key is true.
func (f fields) flag(key string) bool {
	f.of(key, grammar.Flag)
	return f.p.flag(f.get(key), key)
}

// count returns the whole number of a key; fallback when it is missing or wrong.
func (f fields) count(key string, fallback int) int {
	v := f.of(key, grammar.Count).Value
	return f.p.count(f.get(key), key, v.Low, v.High, fallback)
}

// schema returns the schema of a key, or nil.
func (f fields) schema(key string) *Schema {
	f.of(key, grammar.Schema)
	return f.p.schema(f.get(key))
}

// is reports whether a condition of the grammar holds here.
func (f fields) is(all []grammar.Is) bool {
	return f.at != nil && !slices.ContainsFunc(all, func(one grammar.Is) bool {
		n, path := f.at, strings.Split(one.Key, ".")
		for _, key := range path {
			n, _ = n.field(key)
		}
		switch {
		case n == nil:
			return !one.Missing || !f.lacks(path[0])
		case one.Missing && len(one.Words) == 0:
			return true
		}
		return len(one.Words) > 0 && !slices.Contains(one.Words, n.text)
	})
}

// forbidden reports the keys that the rules of the grammar forbid here.
func (f fields) forbidden() {
	for _, r := range f.form.Rules {
		if r.Never == "" || f.key(r.Never) == nil || !f.is(r.If) {
			continue
		}
		rule, message := ruleNoEffect, fmt.Sprintf("%s has no effect: %s", r.Never, r.Why)
		if r.Contrary {
			rule, message = rulePivotUndo, r.Why
		}
		f.p.report(f.key(r.Never).position, rule, message, r.Instead)
	}
}

// expect reports a value of another kind.
func (p *parser) expect(n *node, kind nodeKind, what string) bool {
	if n.kind == kind {
		return true
	}
	suggestion := fmt.Sprintf("write %s here", kind)
	switch {
	case kind == textNode && (n.kind == numberNode || n.kind == boolNode):
		suggestion = "quote it to make it text: " + yamlQuote(n.text)
	case kind == boolNode && n.kind == textNode && slices.Contains([]string{"yes", "no", "on", "off"}, strings.ToLower(n.text)):
		suggestion = "write true or false; YAML reads yes, no, on and off as text"
	case kind == listNode && n.kind == mapNode:
		suggestion = "write a list: put a dash in front of each entry"
	}
	p.report(n.position, ruleWrongKind, fmt.Sprintf("%s must be %s, not %s", what, kind, n.kind), suggestion)
	return false
}

// constant returns text that must not be an expression.
func (p *parser) constant(n *node, what string) (string, bool) {
	if n == nil || !p.expect(n, textNode, what) {
		return "", false
	}
	if strings.Contains(n.text, "${") {
		p.report(n.position, ruleConstant, fmt.Sprintf("%s is fixed when the definition is published and cannot be an expression", what),
			"write the text itself")
		return "", false
	}
	return n.text, true
}

// name returns a short text: a name, a key, a code.
func (p *parser) name(n *node, what string) string {
	text, ok := p.constant(n, what)
	if !ok {
		return ""
	}
	problem := ""
	switch {
	case strings.TrimSpace(text) == "":
		problem = "is empty"
	case len(text) > MaxName:
		problem = fmt.Sprintf("has %d bytes, at most %d are allowed", len(text), MaxName)
	case strings.ContainsFunc(text, unicode.IsControl):
		problem = "holds a control character or a line break"
	case text != strings.TrimSpace(text):
		problem = "begins or ends with a blank"
	}
	if problem != "" {
		p.report(n.position, ruleName, what+" "+problem, "use a short text on one line")
	}
	return text
}

// longText returns text for people.
func (p *parser) longText(n *node) string {
	if n == nil || !p.expect(n, textNode, "the text") {
		return ""
	}
	if len(n.text) > MaxDescription {
		p.report(n.position, ruleName, fmt.Sprintf("the text has %d bytes, at most %d are allowed", len(n.text), MaxDescription), "shorten it")
	}
	return n.text
}

// identifier returns a word that expressions can use as a name.
func (p *parser) identifier(n *node, what string) string {
	text, ok := p.constant(n, what)
	if !ok {
		return ""
	}
	if !isIdentifier(text) {
		p.report(n.position, ruleIdentifier, fmt.Sprintf("%s %s is not a lower-case letter followed by at most 63 lower-case letters, digits and underscores", what, quoted(text)),
			"write "+toIdentifier(text))
		return ""
	}
	return text
}

// isIdentifier reports whether text has the form [a-z][a-z0-9_]{0,63}.
func isIdentifier(text string) bool {
	if text == "" || len(text) > 64 || text[0] < 'a' || text[0] > 'z' {
		return false
	}
	return strings.Trim(text, "abcdefghijklmnopqrstuvwxyz0123456789_") == "" && !strings.ContainsFunc(text, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z')
	})
}

// toIdentifier makes the nearest identifier of a text.
func toIdentifier(text string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(text) {
		switch {
		case (r >= 'a' && r <= 'z') || (r >= '0' && r <= '9' && b.Len() > 0):
			b.WriteRune(r)
		case b.Len() > 0:
			b.WriteByte('_')
		}
		if b.Len() == 64 {
			break
		}
	}
	if s := strings.Trim(b.String(), "_"); s != "" {
		return s
	}
	return "step_1"
}

// word returns one of a few words; fallback when n is nil or wrong.
func (p *parser) word(n *node, fallback string, words ...string) string {
	text, ok := p.constant(n, "the value")
	if !ok {
		return fallback
	}
	if slices.Contains(words, text) {
		return text
	}
	suggestion := "write " + listed(words)
	if near := nearest(text, words); near != "" {
		suggestion = "did you mean " + near + "? Allowed: " + listed(words)
	}
	p.report(n.position, ruleWord, fmt.Sprintf("%s is not one of the words allowed here", quoted(text)), suggestion)
	return fallback
}

// flag returns a boolean, false when n is nil.
func (p *parser) flag(n *node, what string) bool {
	return n != nil && p.expect(n, boolNode, what) && n.text == "true"
}

// count returns a whole number between two bounds; fallback when n is nil or wrong.
func (p *parser) count(n *node, what string, low, high, fallback int) int {
	if n == nil || !p.expect(n, numberNode, what) {
		return fallback
	}
	v, err := wholeNumber(n.text)
	if err != nil || v < low || v > high {
		p.report(n.position, ruleRange, fmt.Sprintf("%s must be a whole number from %d to %d, not %s", what, low, high, quoted(n.text)),
			fmt.Sprintf("write a number from %d to %d", low, high))
		return fallback
	}
	return v
}

// wholeNumber reads a number by its value, as JSON Schema does: 5.0 is 5.
func wholeNumber(text string) (int, error) {
	n, err := exact.ParseNumber(text)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(n))
}

// factor returns a number of at least 1; fallback when n is nil or wrong.
func (p *parser) factor(n *node, what string, fallback float64) float64 {
	if n == nil || !p.expect(n, numberNode, what) {
		return fallback
	}
	v, err := strconv.ParseFloat(n.text, 64)
	if err != nil || v < 1 || v > 100 {
		p.report(n.position, ruleRange, fmt.Sprintf("%s must be a number from 1 to 100, not %s", what, quoted(n.text)), "write a number from 1 to 100, for example 2")
		return fallback
	}
	return v
}

// duration returns a length of time such as 90s, 15m, 4h or 3d; 0 when n is nil or wrong.
func (p *parser) duration(n *node) time.Duration {
	if n == nil {
		return 0
	}
	if n.kind == numberNode {
		p.report(n.position, ruleDuration, fmt.Sprintf("the duration %s has no unit", n.text), fmt.Sprintf("write %ss for seconds, or use m, h or d", n.text))
		return 0
	}
	text, ok := p.constant(n, "a duration")
	if !ok {
		return 0
	}
	d, suggestion := ParseDuration(text)
	switch {
	case suggestion != "":
		p.report(n.position, ruleDuration, fmt.Sprintf("%s is not a duration", quoted(text)), suggestion)
	case d <= 0 || d > MaxDuration:
		p.report(n.position, ruleRange, fmt.Sprintf("the duration %s is not between 1ms and 3650d", quoted(text)), "write a duration in that range, for example 15m")
		return 0
	}
	return d
}

// ParseDuration reads a whole number with one unit. Where it cannot, it says
// what to write instead. A day is 24 hours. What is longer than MaxDuration is
// returned as one nanosecond more than that.
func ParseDuration(text string) (time.Duration, string) {
	digits := text[:len(text)-len(strings.TrimLeft(text, "0123456789"))]
	unit := time.Duration(0)
	switch text[len(digits):] {
	case "ms":
		unit = time.Millisecond
	case "s":
		unit = time.Second
	case "m":
		unit = time.Minute
	case "h":
		unit = time.Hour
	case "d":
		unit = 24 * time.Hour
	}
	if n, err := strconv.ParseInt(digits, 10, 32); err == nil && unit > 0 {
		if time.Duration(n) > MaxDuration/unit {
			return MaxDuration + 1, "" // multiplied, it could wrap around into what is allowed
		}
		return time.Duration(n) * unit, ""
	}
	if d, err := time.ParseDuration(strings.ReplaceAll(text, " ", "")); err == nil && d > 0 && d%time.Second == 0 {
		return 0, "write one number and one unit: " + shortDuration(d)
	}
	return 0, "write a whole number and a unit: 500ms, 90s, 15m, 4h or 3d"
}

// shortDuration writes a duration with its largest fitting unit, as the language does.
func shortDuration(d time.Duration) string {
	switch {
	case d%(24*time.Hour) == 0:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	case d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d%time.Minute == 0:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d%time.Second == 0:
		return fmt.Sprintf("%ds", d/time.Second)
	}
	return fmt.Sprintf("%dms", d/time.Millisecond)
}

// list returns the entries of a list that must not be empty.
func (p *parser) list(n *node, what string) []*node {
	if n == nil || !p.expect(n, listNode, what) {
		return nil
	}
	if len(n.items) == 0 {
		p.report(n.position, ruleEmpty, what+" is empty", "add an entry, or remove the key")
	}
	return n.items
}
