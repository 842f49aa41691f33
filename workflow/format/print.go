package format

import (
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// A printer writes the document anew.
type printer struct {
	source *source
	items  []*item // all, for their comments
	b      strings.Builder
}

// blank writes a blank line, unless one stands there: a block of text that keeps
// the blank lines at its end would get longer by it.
func (p *printer) blank() {
	if !strings.HasSuffix(p.b.String(), "\n\n") {
		p.b.WriteString("\n")
	}
}

func (p *printer) comments(list []comment, indent string) {
	for i, c := range list {
		if i > 0 && c.blankAbove {
			p.blank()
		}
		p.b.WriteString(indent + c.text + "\n")
	}
}

// block writes the entries of a tree. inline says that the first one goes on
// in a line that has been begun.
func (p *printer) block(t *tree, indent string, inline bool) {
	for i, it := range t.items {
		if !inline || i > 0 {
			it.lift()
			above := it.blankAbove
			if len(it.heads) > 0 {
				above = it.heads[0].blankAbove
			}
			if above && i > 0 {
				p.blank()
			}
			p.comments(it.heads, indent)
			if len(it.heads) > 0 && it.blankAbove {
				p.blank()
			}
			p.b.WriteString(indent)
		}
		if it.key != nil {
			p.entry(it, indent)
		} else {
			p.dashed(it, indent)
		}
		if len(it.foots) > 0 && it.foots[0].blankAbove {
			p.blank()
		}
		p.comments(it.foots, indent)
	}
}

// lift moves the comments above the first key of an entry, which goes on in the
// line of its dash, above the dash.
func (it *item) lift() {
	if it.key != nil || it.inner == nil || it.value.Anchor != "" || it.trail != "" {
		return
	}
	first := it.inner.items[0]
	first.lift()
	it.heads, first.heads = append(it.heads, first.heads...), nil
}

// entry writes a key with its value.
func (p *printer) entry(it *item, indent string) {
	head := p.scalar(it.key) + ":"
	p.b.WriteString(head)
	p.value(it, indent, utf8.RuneCountInString(indent+head))
}

// dashed writes an entry of a list.
func (p *printer) dashed(it *item, indent string) {
	inner := it.inner
	if inner == nil && nonEmpty(it.value) && !p.fits(it.value, utf8.RuneCountInString(indent)+2) {
		inner = p.open(it.value)
	}
	p.b.WriteString("-")
	if inner == nil || it.value.Anchor != "" || it.trail != "" {
		p.value(it, indent, utf8.RuneCountInString(indent)+1)
		return
	}
	p.b.WriteString(" ")
	p.block(inner, indent+"  ", true)
}

func nonEmpty(n *yaml.Node) bool {
	return (n.Kind == yaml.MappingNode || n.Kind == yaml.SequenceNode) && len(n.Content) > 0
}

// value writes what stands behind a key or a dash, up to the end of the line
// and the block under it. column is how much of the line is taken.
func (p *printer) value(it *item, indent string, column int) {
	n := it.value
	if n.Anchor != "" {
		p.b.WriteString(" &" + n.Anchor)
	}
	inner := it.inner
	if inner == nil && nonEmpty(n) && !p.fits(n, column+1) {
		inner = p.open(n)
	}
	switch {
	case inner != nil:
		p.endLine(it)
		p.block(inner, indent+"  ", false)
	case n.Kind == yaml.ScalarNode && n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		p.text(it, indent)
	default:
		if text := p.flow(n); text != "" {
			p.b.WriteString(" " + text)
		}
		p.endLine(it)
	}
}

func (p *printer) endLine(it *item) {
	if it.trail != "" {
		p.b.WriteString("  " + it.trail)
	}
	p.b.WriteString("\n")
}

// fits reports whether a value in brackets can stand on the line. One with a
// block of text in it cannot.
func (p *printer) fits(n *yaml.Node, column int) bool {
	text := p.flow(n)
	return !strings.Contains(text, "\n") && column+utf8.RuneCountInString(text) <= width
}

// text writes a block of text with its lines as they are.
func (p *printer) text(it *item, indent string) {
	n := it.value
	column := 0
	if it.at.column > 0 {
		column = it.at.column - 1
	}
	if strings.TrimLeft(n.Value, " \n") == "" && strings.Contains(n.Value, " ") { // only its header says that they are not margin
		p.b.WriteString(" " + doubleQuoted(n.Value))
		p.endLine(it)
		return
	}
	from, to := p.source.blockLines(n, column)
	cut, first := margin(p.source.lines[from:to], n.Value)
	if to > from {
		to = p.source.beyondMargin(to, cut)
	}
	lines := p.source.lines[from:to]
	header := "|"
	if n.Style&yaml.FoldedStyle != 0 {
		header = ">"
	}
	if first > 0 || strings.HasPrefix(strings.TrimLeft(n.Value, "\n "), "\t") || strings.HasPrefix(n.Value, "\n") || strings.HasPrefix(n.Value, " ") {
		header += "2"
	}
	keep := strings.HasSuffix(n.Value, "\n\n") || n.Value == "\n"
	switch {
	case keep:
		header += "+"
	case !strings.HasSuffix(n.Value, "\n"):
		header += "-"
	}
	p.b.WriteString(" " + header)
	p.endLine(it)
	for _, l := range lines {
		if len(l) > cut {
			p.b.WriteString(indent + "  " + l[cut:])
		}
		p.b.WriteString("\n")
	}
	if keep {
		after := len(n.Value) - len(strings.TrimRight(n.Value, "\n"))
		if len(lines) > 0 {
			after-- // the end of the last line
		}
		p.b.WriteString(strings.Repeat("\n", after))
	}
}

// margin is how far the lines of a block of text are indented, and how far its
// first line that is not blank is indented beyond it, as the header may say.
func margin(lines []string, value string) (cut, first int) {
	first, _ = leading(value)
	for _, l := range lines {
		if trimmed := strings.TrimLeft(l, " "); trimmed != "" {
			return max(len(l)-len(trimmed)-first, 0), first
		}
	}
	return 0, first
}

// flow is a value on one line.
func (p *printer) flow(n *yaml.Node) string {
	switch n.Kind {
	case yaml.AliasNode:
		return "*" + n.Value
	case yaml.ScalarNode:
		return p.scalar(n)
	}
	var parts []string
	roomy := n.Kind == yaml.MappingNode
	for i := 0; i < len(n.Content); i++ {
		part := ""
		if n.Kind == yaml.MappingNode {
			part = p.scalar(n.Content[i]) + ": "
			i++
		}
		c := n.Content[i]
		roomy = roomy || c.Kind == yaml.MappingNode
		if c.Anchor != "" {
			part += "&" + c.Anchor + " "
		}
		parts = append(parts, strings.TrimRight(part+p.flow(c), " "))
	}
	open, end := "[", "]"
	if n.Kind == yaml.MappingNode {
		open, end = "{", "}"
	}
	if roomy && len(parts) > 0 {
		open, end = open+" ", " "+end
	}
	return open + strings.Join(parts, ", ") + end
}

// scalar is a scalar on one line, quoted where it must be.
func (p *printer) scalar(n *yaml.Node) string {
	switch {
	case n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0:
		if from, to := p.source.quoted(n); !strings.Contains(p.source.text[from:to], "\n") {
			return p.source.text[from:to]
		}
		return doubleQuoted(n.Value)
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 || strings.Contains(n.Value, "\n"):
		return doubleQuoted(n.Value)
	case misread(n.Value):
		return `"` + n.Value + `"`
	}
	return n.Value
}

// misread reports whether programs disagree about what a plain value is: text
// for ringi, true or a number for some others.
func misread(v string) bool {
	switch strings.ToLower(v) {
	case "yes", "no", "on", "off":
		return v != "on" // a key of catch, which every example has
	}
	s := strings.ToLower(strings.TrimLeft(v, "+-"))
	switch {
	case s == "" || s == ".inf" || s == ".nan":
		return s != ""
	case len(s) > 2 && s[0] == '0' && (s[1] == 'x' || s[1] == 'o' || s[1] == 'b'):
		return strings.Trim(s[2:], "0123456789abcdef_") == ""
	case strings.Trim(s, "0123456789_.") == "" && strings.Count(s, ".") < 2 && strings.ContainsAny(s, "0123456789"):
		return v[0] == '+' || strings.Contains(s, "_") || s[0] == '.' || strings.HasSuffix(s, ".") || len(s) > 1 && s[0] == '0' && s[1] != '.'
	}
	return false
}

// doubleQuoted is a text in double quotes on one line.
func doubleQuoted(v string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range v {
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < ' ' || r == 0x7f || r == 0x85 || r == 0xa0 || r == 0x2028 || r == 0x2029 || r == 0xfeff:
			const hex = "0123456789abcdef"
			b.WriteString(`\u` + string([]byte{hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15]}))
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
