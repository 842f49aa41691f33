package graph

import "strings"

// Text draws the chart with box characters, for a terminal. Lines are cut to so
// many columns; 0 cuts none.
func (c *Chart) Text(columns int) string {
	t := &textDrawing{columns: columns}
	t.line("", c.name, dash(c.title))
	if c.description != "" {
		t.line("", c.description, "")
	}
	for _, f := range c.facts {
		t.line("", f, "")
	}
	t.line("", "", "")
	t.line("", "● start", dash(c.input))
	t.steps("", c.steps)
	if len(c.steps) == 0 || !c.steps[len(c.steps)-1].ends {
		t.line("", "● completed", dash(c.output))
	}
	if len(c.onFailure) > 0 {
		t.line("", "", "")
		t.line("", "when it has failed and everything is undone", "")
		t.steps("", c.onFailure)
		t.line("", "●", "")
	}
	if pivots(c.steps) {
		t.line("", "", "")
		t.line("", "‼ there is no way back from here: the run only goes forward", "")
	}
	return t.b.String()
}

func dash(text string) string {
	if text == "" {
		return ""
	}
	return "– " + text
}

func pivots(steps []step) bool {
	for _, s := range steps {
		if s.pivot {
			return true
		}
		for _, list := range [][]branch{s.branches, s.catches} {
			for _, b := range list {
				if pivots(b.steps) {
					return true
				}
			}
		}
	}
	return false
}

// A textDrawing is the text so far.
type textDrawing struct {
	b       strings.Builder
	columns int
}

// line writes one line, cut to the columns.
func (t *textDrawing) line(prefix, text, rest string) {
	line := strings.TrimRight(prefix+strings.TrimRight(text+" "+rest, " "), " ")
	if t.columns > 0 && width(line) > t.columns {
		line = cut(line, t.columns)
	}
	t.b.WriteString(line + "\n")
}

// steps draws a list of steps; prefix is what stands to its left.
func (t *textDrawing) steps(prefix string, steps []step) {
	for _, s := range steps {
		t.line(prefix, "│", "")
		mark := "├─ "
		if s.ends {
			mark = "└─ "
		}
		head := s.id + "  " + kindWord(s.kind)
		if s.head != "" {
			head += " " + s.head
		}
		if s.pivot {
			head += "  ‼"
		}
		t.line(prefix, mark+head, "")
		inner := prefix + "│  "
		if s.ends {
			inner = prefix + "   "
		}
		t.details(inner, s)
		for _, b := range s.branches {
			t.branch(inner, "├", s.kind == "parallel", b)
		}
		for _, b := range s.catches {
			t.branch(inner, "┊", false, b)
		}
	}
}

// details writes what stands under the line of a step.
func (t *textDrawing) details(prefix string, s step) {
	if s.when != "" {
		t.line(prefix, "only if "+s.when, "")
	}
	if s.title != "" && s.title != s.head {
		t.line(prefix, "“"+s.title+"”", "")
	}
	for _, n := range s.notes {
		t.line(prefix, n, "")
	}
	if s.undo != "" {
		t.line(prefix, "↩ undone by "+s.undo, "")
	}
}

// branch draws a branch with its label.
func (t *textDrawing) branch(prefix, mark string, beside bool, b branch) {
	label := b.label
	if label == "" {
		label = "do"
	}
	if len(b.steps) == 0 {
		label += ": go on"
	}
	line := "│"
	if beside {
		mark, line = "╠", "║"
	} else if mark == "┊" {
		line = "┊"
	}
	t.line(prefix, mark+"─ "+label, "")
	if len(b.steps) > 0 {
		t.steps(prefix+line+"  ", b.steps)
		t.line(prefix, line, "")
	}
}

// kindWord is how a verb is called where it stands in front of what it does.
func kindWord(kind string) string {
	switch kind {
	case "activity":
		return "calls"
	case "http":
		return "requests"
	case "approval":
		return "asks"
	case "wait":
		return "waits"
	case "choose":
		return "chooses"
	case "parallel":
		return "parallel:"
	case "emit":
		return "emits"
	case "set":
		return "sets"
	case "do":
		return "does"
	case "fail":
		return "fails with"
	case "finish":
		return "finishes:"
	}
	return kind
}

// width is the number of columns that a text takes: characters of East Asia
// take two.
func width(text string) int {
	n := 0
	for _, r := range text {
		n++
		if wide(r) {
			n++
		}
	}
	return n
}

// wide reports whether a character takes two columns.
func wide(r rune) bool {
	return r >= 0x1100 && r <= 0x115f || r >= 0x2e80 && r <= 0xa4cf || r >= 0xac00 && r <= 0xd7a3 ||
		r >= 0xf900 && r <= 0xfaff || r >= 0xfe30 && r <= 0xfe6f || r >= 0xff00 && r <= 0xff60 || r >= 0xffe0 && r <= 0xffe6 ||
		r >= 0x1f300 && r <= 0x1faff || r >= 0x20000 && r <= 0x3fffd
}

// cut shortens a text to so many columns.
func cut(text string, columns int) string {
	if width(text) <= columns {
		return text
	}
	n := 0
	for i, r := range text {
		w := 1
		if wide(r) {
			w = 2
		}
		if n+w > columns-1 {
			return text[:i] + "…"
		}
		n += w
	}
	return text
}
