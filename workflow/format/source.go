package format

import (
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// A place is where something stands in the text, both from 1, the column in
// characters.
type place struct{ line, column int }

// A comment of the text.
type comment struct {
	place
	text       string
	alone      bool // nothing else stands in its line
	blankAbove bool
}

// A source is the text with its lines and comments.
type source struct {
	text     string
	lines    []string
	starts   []int // offset of each line
	comments []comment
	anchors  bool      // the file has anchors: what stands first must stay first
	top, end []comment // of the file: above and below everything
	topBlank bool
}

func newSource(text string) *source {
	s := &source{text: text, lines: strings.Split(text, "\n")}
	at := 0
	for _, l := range s.lines {
		s.starts = append(s.starts, at)
		at += len(l) + 1
	}
	return s
}

// offset is where a place stands in the text.
func (s *source) offset(at place) int {
	line := s.lines[at.line-1]
	i := 0
	for c := 1; c < at.column && i < len(line); c++ {
		_, n := utf8.DecodeRuneInString(line[i:])
		i += n
	}
	return s.starts[at.line-1] + i
}

func (s *source) blankAbove(line int) bool {
	return line >= 2 && line <= len(s.lines) && strings.TrimSpace(s.lines[line-2]) == ""
}

// scan finds the comments of the text: what begins with # at the start of a
// line or behind a blank, and does not stand inside quotes or a block of text.
func (s *source) scan(root *yaml.Node) {
	inside := make([]bool, len(s.text)+1)
	s.mark(root, 0, inside)
	for i, line := range s.lines {
		for at := range len(line) {
			if line[at] != '#' || at > 0 && line[at-1] != ' ' && line[at-1] != '\t' || inside[s.starts[i]+at] {
				continue
			}
			before := strings.TrimSpace(line[:at])
			s.comments = append(s.comments, comment{
				place: place{i + 1, utf8.RuneCountInString(line[:at]) + 1}, text: strings.TrimRight(line[at:], " \t"),
				alone: before == "", blankAbove: s.blankAbove(i + 1),
			})
			break
		}
	}
}

// mark marks what stands inside quotes and blocks of text. indent is that of
// the key that holds the value, from 0.
func (s *source) mark(n *yaml.Node, indent int, inside []bool) {
	s.anchors = s.anchors || n.Anchor != "" || n.Kind == yaml.AliasNode
	switch {
	case n.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			s.mark(n.Content[i], indent, inside)
			s.mark(n.Content[i+1], n.Content[i].Column-1, inside)
		}
	case n.Kind == yaml.SequenceNode:
		for _, c := range n.Content {
			s.mark(c, s.dash(n, c).column-1, inside)
		}
	case n.Kind == yaml.ScalarNode && n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0:
		from, to := s.quoted(n)
		for i := from; i < to; i++ {
			inside[i] = true
		}
	case n.Kind == yaml.ScalarNode && n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		from, to := s.blockLines(n, indent)
		if from < to {
			for i := s.starts[from]; i < s.starts[to-1]+len(s.lines[to-1]); i++ {
				inside[i] = true
			}
		}
	}
}

// quoted returns from where to where a quoted text stands, with its quotes.
func (s *source) quoted(n *yaml.Node) (from, to int) {
	from = s.offset(place{n.Line, n.Column})
	for from < len(s.text) && (s.text[from] == '&' || s.text[from] == '!') {
		for from < len(s.text) && s.text[from] != ' ' && s.text[from] != '\n' {
			from++
		}
		for from < len(s.text) && (s.text[from] == ' ' || s.text[from] == '\n') {
			from++
		}
	}
	quote := s.text[from]
	for to = from + 1; to < len(s.text); to++ {
		switch {
		case s.text[to] == '\\' && quote == '"':
			to++
		case s.text[to] == quote && quote == '\'' && to+1 < len(s.text) && s.text[to+1] == '\'':
			to++
		case s.text[to] == quote:
			return from, to + 1
		}
	}
	return from, len(s.text)
}

// blockLines returns the lines of a block of text behind its header, from 0,
// without blank lines at its end. A line that is indented less than the first
// ends it, too: it is a comment.
func (s *source) blockLines(n *yaml.Node, indent int) (from, to int) {
	from = n.Line
	to = from
	beyond, some := leading(n.Value)
	if !some {
		return from, to
	}
	least := -1
	for i := from; i < len(s.lines); i++ {
		blank := strings.TrimLeft(s.lines[i], " ")
		if blank == "" {
			continue
		}
		in := len(s.lines[i]) - len(blank)
		if in <= indent && n.Column > 1 || in < least {
			break
		}
		if least < 0 {
			least = in - beyond
		}
		to = i + 1
	}
	return from, to
}

// leading is how many blanks the first line of a text begins with that is not
// blank, and whether there is one.
func leading(value string) (blanks int, some bool) {
	for l := range strings.SplitSeq(value, "\n") {
		if trimmed := strings.TrimLeft(l, " "); trimmed != "" {
			return len(l) - len(trimmed), true
		}
	}
	return 0, false
}

// beyondMargin is where the lines of a block end that are blank and longer than its
// margin: to YAML they are text, of blanks. to is where those end that are not blank.
func (s *source) beyondMargin(to, margin int) int {
	for i := to; i < len(s.lines) && strings.Trim(s.lines[i], " ") == ""; i++ {
		if len(s.lines[i]) > margin {
			to = i + 1
		}
	}
	return to
}

// dash is the place of the dash of a list's entry; in brackets that of the entry.
func (s *source) dash(list, entry *yaml.Node) place {
	at := place{entry.Line, entry.Column}
	if list.Style&yaml.FlowStyle != 0 {
		return at
	}
	line := []rune(s.lines[entry.Line-1])
	for i := min(entry.Column-2, len(line)-1); i >= 0; i-- {
		if line[i] == '-' {
			return place{entry.Line, i + 1}
		}
		if line[i] != ' ' && line[i] != '\t' {
			break
		}
	}
	return place{entry.Line, max(list.Column, 1)}
}

// commented reports whether comments stand between the brackets of a value.
func (s *source) commented(n *yaml.Node) bool {
	last := lastLine(n)
	return slices.ContainsFunc(s.comments, func(c comment) bool {
		return c.line >= n.Line && (c.line < last || c.line == last && c.alone)
	})
}

// attach gives every comment to an item: one behind something to what stands in
// its line, one on a line of its own to what follows, unless it is indented like
// what went before.
func (s *source) attach(items []*item) {
	sorted := slices.Clone(items)
	slices.SortStableFunc(sorted, func(a, b *item) int {
		if a.at.line != b.at.line {
			return a.at.line - b.at.line
		}
		return a.at.column - b.at.column
	})
	for _, c := range s.comments {
		if !c.alone {
			if it := lastOn(sorted, c.line); it != nil && it.trail == "" {
				it.trail = c.text
				continue
			}
		}
		next := slices.IndexFunc(sorted, func(it *item) bool { return it.at.line > c.line })
		switch {
		case next == 0 && s.apart(c, sorted[0]):
			s.top = append(s.top, c)
		case next >= 0 && c.column <= sorted[next].at.column || next == 0:
			sorted[next].heads = append(sorted[next].heads, c)
		default:
			before := len(sorted) - 1
			if next > 0 {
				before = next - 1
			}
			s.foot(c, sorted[before])
		}
	}
}

// apart reports whether a blank line stands between a comment at the top and
// the first item: it is about the file then.
func (s *source) apart(c comment, first *item) bool {
	for i := c.line; i < first.at.line-1; i++ {
		if strings.TrimSpace(s.lines[i]) == "" {
			s.topBlank = true
			return true
		}
	}
	return false
}

// foot puts a comment behind the nearest item before it that it is not left of.
func (s *source) foot(c comment, it *item) {
	for it != nil && it.at.column > c.column {
		it = it.parent
	}
	if it == nil || it.parent == nil && c.column == 1 {
		s.end = append(s.end, c)
		return
	}
	it.foots = append(it.foots, c)
}

// lastOn is the innermost item that stands in a line and is written on a line of
// its own, or whose value ends in it.
func lastOn(sorted []*item, line int) *item {
	for i := len(sorted) - 1; i >= 0; i-- {
		it := sorted[i]
		if it.at.line == line || it.inner == nil && it.at.line <= line && lastLine(it.value) >= line {
			return it
		}
	}
	return nil
}

// sortedComments are the comments of a text, for comparing.
func sortedComments(text string) []string {
	text = plainLines(text)
	var doc yaml.Node
	if yaml.Unmarshal([]byte(text), &doc) != nil || len(doc.Content) == 0 {
		return nil
	}
	s := newSource(text)
	s.scan(doc.Content[0])
	out := make([]string, len(s.comments))
	for i, c := range s.comments {
		out[i] = c.text
	}
	slices.Sort(out)
	return out
}
