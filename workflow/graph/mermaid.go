package graph

import (
	"fmt"
	"strings"
)

// Mermaid draws the chart as a flowchart of Mermaid, for places that render it,
// such as Markdown on many sites.
func (c *Chart) Mermaid() string {
	m := &mermaid{}
	m.b.WriteString("flowchart TD\n")
	m.node("start", `(["%s"])`, "start", c.input)
	ends := m.steps(c.steps, []exit{{from: "start"}})
	if len(ends) > 0 {
		m.node("completed", `(["%s"])`, "completed", c.output)
		m.edges(ends, "completed")
	}
	if len(c.onFailure) > 0 {
		m.node("failed", `(["%s"])`, "when it has failed and everything is undone")
		m.steps(c.onFailure, []exit{{from: "failed", dotted: true}})
	}
	for _, class := range []string{
		"step fill:#f4f8ff,stroke:#3b6fb6,color:#1b2430", "ask fill:#fff8e1,stroke:#b7860b,color:#1b2430",
		"flow fill:#f3f4f6,stroke:#6b7280,color:#1b2430", "undo fill:#fff4ec,stroke:#c2570c,color:#1b2430,stroke-dasharray:4",
		"pivot fill:#f4f8ff,stroke:#b42318,color:#1b2430,stroke-width:3px",
	} {
		m.b.WriteString("  classDef " + class + "\n")
	}
	return m.b.String()
}

// mermaid is the text so far.
type mermaid struct{ b strings.Builder }

// An exit is where the flow comes from, and why it goes on there.
type exit struct {
	from, label string
	dotted      bool
}

// node writes a node of lines of text in the shape of its brackets.
func (m *mermaid) node(id, shape string, lines ...string) {
	var kept []string
	for _, l := range lines {
		if l != "" {
			kept = append(kept, mermaidText(l))
		}
	}
	fmt.Fprintf(&m.b, "  %s"+shape+"\n", id, strings.Join(kept, "<br/>"))
}

func (m *mermaid) edges(from []exit, to string) {
	for _, e := range from {
		arrow := "-->"
		if e.dotted {
			arrow = "-.->"
		}
		if e.label != "" {
			arrow += fmt.Sprintf("|\"%s\"|", mermaidText(e.label))
		}
		fmt.Fprintf(&m.b, "  %s %s %s\n", e.from, arrow, to)
	}
}

// mermaidText is text inside quotes, where Mermaid knows entities and HTML.
func mermaidText(s string) string {
	return strings.NewReplacer("#", "#35;", `"`, "#quot;", "&", "#amp;", "<", "#lt;", ">", "#gt;", "`", "#96;").Replace(s)
}

// steps writes a list of steps and returns where the flow leaves it.
func (m *mermaid) steps(steps []step, from []exit) []exit {
	for _, s := range steps {
		from = m.step(s, from)
	}
	return from
}

func (m *mermaid) step(s step, from []exit) []exit {
	id := "s_" + s.id
	lines := append([]string{s.id, strings.TrimSpace(kindWord(s.kind) + " " + s.head)}, s.notes...)
	if s.when != "" {
		lines = append(lines, "only if "+s.when)
	}
	shape, class := `["%s"]`, "step"
	switch {
	case s.kind == "choose":
		shape, class = `{"%s"}`, "flow"
	case s.kind == "approval":
		shape, class = `[/"%s"/]`, "ask"
	case len(s.branches) > 0, s.kind == "wait", s.kind == "set":
		class = "flow"
	case s.pivot:
		class = "pivot"
	case s.kind == "fail" || s.kind == "finish":
		shape, class = `(["%s"])`, "flow"
	}
	m.node(id, shape, lines...)
	fmt.Fprintf(&m.b, "  class %s %s\n", id, class)
	m.edges(from, id)
	if s.undo != "" {
		m.node("u_"+s.id, `(["%s"])`, "undo", s.undo)
		fmt.Fprintf(&m.b, "  class u_%s undo\n  %s -.- u_%s\n", s.id, id, s.id)
	}
	return m.leave(s, id)
}

// leave writes what is inside a step and returns where the flow leaves it.
func (m *mermaid) leave(s step, id string) (out []exit) {
	for _, b := range s.branches {
		out = append(out, m.steps(b.steps, []exit{{from: id, label: b.label}})...)
	}
	if len(s.branches) == 0 && !s.ends {
		out = []exit{{from: id}}
	}
	if s.kind == "parallel" && len(out) > 1 {
		join := "j_" + s.id
		m.b.WriteString("  " + join + "((\" \"))\n")
		m.edges(out, join)
		out = []exit{{from: join}}
	}
	for _, b := range s.catches {
		out = append(out, m.steps(b.steps, []exit{{from: id, label: b.label, dotted: true}})...)
	}
	if s.ends && s.when == "" {
		return nil
	}
	return out
}
