package graph

import (
	"fmt"
	"html"
	"strings"
)

// Colours of a kind of step: its frame and its ground.
type paint struct{ stroke, fill, word string }

// paintOf is the colour of a verb.
func paintOf(kind string) paint {
	switch kind {
	case "activity":
		return paint{"#3b6fb6", "#f4f8ff", "calls a worker"}
	case "http":
		return paint{"#0f766e", "#effcf9", "calls over HTTP"}
	case "approval":
		return paint{"#b7860b", "#fff9e6", "asks people"}
	case "wait":
		return paint{"#7c4dbd", "#f8f4ff", "waits"}
	case "emit":
		return paint{"#2e7d32", "#f1f9f1", "tells the world"}
	case "fail":
		return paint{"#b42318", "#fef3f2", "ends as failed"}
	case "finish":
		return paint{"#2e7d32", "#f1f9f1", "ends as completed"}
	case "choose", "parallel", "do":
		return paint{"#4b5563", "#f3f4f6", "branches and groups"}
	}
	return paint{"#6b7280", "#ffffff", "remembers values"}
}

// SVG draws the chart as a document of its own, dark on light, without scripts,
// fonts or anything else from elsewhere. Text that does not fit is cut; the
// whole of it shows when one points at it.
func (c *Chart) SVG() []byte {
	main := measureSteps(c.steps)
	main.beside(extent{left: half, right: half})
	after := extent{}
	if len(c.onFailure) > 0 {
		after = measureSteps(c.onFailure)
		after.beside(extent{left: half, right: half})
	}
	inside := max(main.left+main.right+after.width(), 560, pixels("name", c.name))
	head := c.heading(inside)
	d := &drawing{}
	x, y := margin+main.left, margin+head.height()
	bottom := d.main(c, x, y)
	if len(c.onFailure) > 0 {
		bottom = max(bottom, d.failure(c, margin+main.left+main.right+2*branchGap+after.left, y))
	}
	width := 2*margin + inside
	legend := d.legend(c, margin, bottom+stepGap, width-2*margin)
	height := bottom + stepGap + legend + margin

	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img" aria-label="%s">`+"\n",
		width, height, width, height, html.EscapeString("the process "+c.name))
	b.WriteString(style)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", width, height)
	head.draw(&b)
	b.WriteString(d.lines.String())
	b.WriteString(d.boxes.String())
	b.WriteString("</svg>\n")
	return []byte(b.String())
}

// margin is around the whole.
const margin = 32

// width is the room of what stands beside the steps, with the gap to them.
func (e extent) width() int {
	if e.left+e.right == 0 {
		return 0
	}
	return e.left + e.right + 2*branchGap
}

const style = `<style>
text { font-family: system-ui, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif; fill: #1b2430; }
.name { font-size: 22px; font-weight: 700; }
.id { font-size: 14px; font-weight: 700; }
.kind { font-size: 11px; fill: #4b5563; }
.title { font-size: 13px; }
.head { font-size: 13px; font-weight: 600; }
.when { font-size: 12px; font-style: italic; fill: #374151; }
.note, .fact { font-size: 12px; fill: #374151; }
.label { font-size: 12px; fill: #1b2430; }
.undo { font-size: 12px; fill: #8a3d08; }
.stop { font-size: 12px; font-weight: 600; fill: #b42318; }
.flow { fill: none; stroke: #4b5563; stroke-width: 1.5; }
.beside { fill: none; stroke: #4b5563; stroke-width: 4; }
.catch { fill: none; stroke: #b42318; stroke-width: 1.3; stroke-dasharray: 5 4; }
.back { fill: none; stroke: #c2570c; stroke-width: 1.3; stroke-dasharray: 3 3; }
</style>
<defs>
<marker id="arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path d="M0 0 10 5 0 10z" fill="#4b5563"/></marker>
<marker id="arrow-catch" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path d="M0 0 10 5 0 10z" fill="#b42318"/></marker>
<marker id="arrow-back" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path d="M0 0 10 5 0 10z" fill="#c2570c"/></marker>
</defs>
`

// A headline is a line of the heading.
type headline struct {
	class, text string
	y           int
}

type heading []headline

// heading is the name, what the process is for, and what holds for all of it.
func (c *Chart) heading(width int) heading {
	h := heading{{"name", c.name, margin + 18}}
	y := margin + 18
	for _, text := range append([]string{c.title, c.description}, c.facts...) {
		for _, l := range wrap("fact", text, width, 3) {
			y += 20
			h = append(h, headline{"fact", l, y})
		}
	}
	return h
}

func (h heading) height() int { return h[len(h)-1].y - margin + 28 }

func (h heading) draw(b *strings.Builder) {
	for _, l := range h {
		fmt.Fprintf(b, `<text class="%s" x="%d" y="%d">%s</text>`+"\n", l.class, margin, l.y, html.EscapeString(l.text))
	}
}
