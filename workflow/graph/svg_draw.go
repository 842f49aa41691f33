package graph

import (
	"fmt"
	"html"
	"strings"
)

// A drawing collects lines and boxes; boxes are painted over lines.
type drawing struct{ lines, boxes strings.Builder }

// path draws a line of a class through points; an arrow stands at its end when
// one is named.
func (d *drawing) path(class, arrow string, points ...int) {
	var b strings.Builder
	for i := 0; i < len(points); i += 2 {
		command := "L"
		if i == 0 {
			command = "M"
		}
		fmt.Fprintf(&b, "%s%d %d", command, points[i], points[i+1])
	}
	end := ""
	if arrow != "" {
		end = fmt.Sprintf(` marker-end="url(#%s)"`, arrow)
	}
	fmt.Fprintf(&d.lines, `<path class="%s" d="%s"%s/>`+"\n", class, b.String(), end)
}

// text writes a text whose middle, start or end is at x. The whole text is
// shown to who points at it.
func (d *drawing) text(class, anchor string, x, y int, text, whole string) {
	tip := ""
	if whole != text && whole != "" {
		tip = "<title>" + html.EscapeString(whole) + "</title>"
	}
	fmt.Fprintf(&d.boxes, `<text class="%s" text-anchor="%s" x="%d" y="%d">%s%s</text>`+"\n", class, anchor, x, y, tip, html.EscapeString(text))
}

func (d *drawing) rect(x, y, w, h, radius int, attributes string) {
	fmt.Fprintf(&d.boxes, `<rect x="%d" y="%d" width="%d" height="%d" rx="%d" %s/>`+"\n", x, y, w, h, radius, attributes)
}

// main draws the steps between their two ends and returns where it stops.
func (d *drawing) main(c *Chart, x, y int) int {
	y = d.end(x, y, "start", c.input)
	d.path("flow", "arrow", x, y, x, y+stepGap)
	y = d.steps(c.steps, x, y+stepGap)
	if len(c.steps) > 0 && c.steps[len(c.steps)-1].ends {
		return y
	}
	d.path("flow", "arrow", x, y, x, y+stepGap)
	return d.end(x, y+stepGap, "completed", c.output)
}

// end draws where a run begins or ends.
func (d *drawing) end(x, y int, word, fields string) int {
	lines := wrap("note", fields, boxWidth-24, 3)
	h := 26 + lineHeight*len(lines)
	d.rect(x-half, y, boxWidth, h, 13, `fill="#ffffff" stroke="#1b2430" stroke-width="1.5"`)
	d.text("id", "middle", x, y+18, word, "")
	for i, l := range lines {
		d.text("note", "middle", x, y+18+lineHeight*(i+1), l, fields)
	}
	return y + h
}

// failure draws what runs when everything is undone.
func (d *drawing) failure(c *Chart, x, y int) int {
	bottom := d.end(x, y, "has failed", "and everything is undone")
	d.path("catch", "arrow-catch", x, bottom, x, bottom+stepGap)
	bottom = d.steps(c.onFailure, x, bottom+stepGap)
	d.path("flow", "arrow", x, bottom, x, bottom+stepGap)
	return d.end(x, bottom+stepGap, "failed", "")
}

// steps draws a list of steps on the line at x and returns where it stops.
func (d *drawing) steps(steps []step, x, y int) int {
	if len(steps) == 0 {
		d.path("flow", "", x, y, x, y+empty)
		return y + empty
	}
	e := measureSteps(steps)
	undo := -1 // the y of the undo above that nothing stands between
	for i, s := range steps {
		if i > 0 {
			d.path("flow", "arrow", x, y, x, y+stepGap)
			y += stepGap
		}
		d.step(s, x, y)
		undo = d.undo(s, x, y, undo)
		y += measure(s).height
		if s.pivot {
			d.pivot(x, y, e)
			y += pivotHeight
		}
	}
	return y
}

// undo draws what undoes a step, and the way to it from the undo of the step
// behind. above is the y of the one before, or -1.
func (d *drawing) undo(s step, x, y, above int) int {
	if s.undo == "" {
		if measure(s).left > half {
			return -1 // something stands in the way
		}
		return above
	}
	left := x - half - chipGap - chipWidth
	middle := y + boxHeight(s)/2
	d.path("back", "arrow-back", x-half, middle, left+chipWidth, middle)
	top := middle - chipHeight/2
	d.rect(left, top, chipWidth, chipHeight, 8, `fill="#fff4ec" stroke="#c2570c" stroke-dasharray="3 3"`)
	d.text("kind", "middle", left+chipWidth/2, top+14, "undone by", "")
	d.text("undo", "middle", left+chipWidth/2, top+29, clip("undo", s.undo, chipWidth-14), s.undo)
	if above >= 0 {
		d.path("back", "arrow-back", left+chipWidth/2, top, left+chipWidth/2, above)
	}
	return top + chipHeight
}

// pivot draws the line behind which there is no way back.
func (d *drawing) pivot(x, y int, e extent) {
	d.path("flow", "", x, y, x, y+pivotHeight)
	y += pivotHeight / 2
	fmt.Fprintf(&d.boxes, `<path d="M%d %dH%d" stroke="#b42318" stroke-width="2" stroke-dasharray="9 5" fill="none"/>`+"\n", x-e.left, y, x+e.right)
	const words = "no way back from here"
	d.rect(x+14, y-10, 176, 20, 4, `fill="#ffffff"`)
	d.text("stop", "start", x+20, y+4, words, "")
}

// step draws a step at x with its top at y.
func (d *drawing) step(s step, x, y int) {
	d.box(s, x, y)
	bottom := y + boxHeight(s)
	end := y + measure(s).height
	switch {
	case s.kind == "do":
		d.do(s, x, bottom)
		bottom += measureBody(s).height
	case len(s.branches) > 0:
		bottom = d.branches(s, x, bottom)
	}
	d.catches(s, x, y, end)
	if bottom < end && !bodyEnds(s) {
		d.path("flow", "", x, bottom, x, end)
	}
}

// bodyEnds reports whether nothing leaves a step but through its catches.
func bodyEnds(s step) bool {
	s.catches = nil
	return ends(s)
}

// box draws the box of a step.
func (d *drawing) box(s step, x, y int) {
	p, h := paintOf(s.kind), boxHeight(s)
	stroke, weight := p.stroke, "1.5"
	if s.pivot {
		stroke, weight = "#b42318", "3"
	}
	radius := 8
	if s.kind == "fail" || s.kind == "finish" {
		radius = 16
	}
	d.rect(x-half, y, boxWidth, h, radius, fmt.Sprintf(`fill="%s" stroke="%s" stroke-width="%s"`, p.fill, stroke, weight))
	kind := s.kind
	if s.pivot {
		kind += ", irreversible"
	}
	room := boxWidth - 24 - 7*len(kind) - 10
	d.text("id", "start", x-half+12, y+21, clip("id", s.id, room), s.id)
	d.text("kind", "end", x+half-12, y+20, kind, "")
	for i, l := range boxLines(s) {
		d.text(l.class, "start", x-half+12, y+40+lineHeight*i, l.text, l.whole)
	}
}

// do draws the steps of a do in a frame under its box.
func (d *drawing) do(s step, x, y int) {
	steps := s.branches[0].steps
	e := measureSteps(steps)
	d.rect(x-e.left-frame, y+frame-4, e.left+e.right+2*frame, stepGap+e.height, 10, `fill="none" stroke="#9ca3af" stroke-dasharray="6 4"`)
	d.path("flow", "arrow", x, y, x, y+stepGap)
	bottom := d.steps(steps, x, y+stepGap)
	if !s.branches[0].ends() {
		d.path("flow", "", x, bottom, x, bottom+frame)
	}
}

// branches draws the branches side by side under the box of their step, and
// returns where they have come together again.
func (d *drawing) branches(s step, x, y int) int {
	places, e := placeBranches(s.branches)
	class := "flow"
	if s.kind == "parallel" {
		class = "beside"
	}
	top, bottom := y+fork, y+e.height-stepGap/2
	d.path("flow", "", x, y, x, top)
	d.path(class, "", x+places[0], top, x+places[len(places)-1], top)
	joined := []int{}
	for i, b := range s.branches {
		at := x + places[i]
		d.path("flow", "", at, top, at, top+labelHeight)
		d.label(b.label, at, top+2)
		next := "arrow"
		if len(b.steps) == 0 {
			next = ""
		}
		d.path("flow", next, at, top+labelHeight, at, top+labelHeight+stepGap)
		end := d.steps(b.steps, at, top+labelHeight+stepGap)
		if !b.ends() {
			joined = append(joined, at)
			d.path("flow", "", at, end, at, bottom)
		}
	}
	if len(joined) > 0 {
		d.path(class, "", min(joined[0], x), bottom, max(joined[len(joined)-1], x), bottom)
		d.path("flow", "", x, bottom, x, y+e.height)
	}
	return y + e.height
}

// label writes why a branch is taken, over its line.
func (d *drawing) label(text string, x, y int) {
	lines := wrap("label", text, labelWidth-16, 2)
	widest := 0
	for _, l := range lines {
		widest = max(widest, pixels("label", l))
	}
	w := min(widest+18, labelWidth)
	h := 4 + 15*len(lines)
	d.rect(x-w/2, y, w, h, 6, `fill="#ffffff" stroke="#d1d5db"`)
	for i, l := range lines {
		d.text("label", "middle", x, y+13+15*i, l, text)
	}
}

// catches draws what handles failures of a step, to its right; it comes back
// to the line of the step at end.
func (d *drawing) catches(s step, x, y, end int) {
	e := extent{right: half}
	if len(s.branches) > 0 {
		e.beside(measureBody(s))
	}
	_, places := measureCatches(s, e.right)
	for i, c := range s.catches {
		at, top := x+places[i], y+catchTop(s, i)
		d.path("catch", "arrow-catch", x+half, top, at, top, at, top+labelHeight+stepGap)
		d.label(c.label, at, top+8)
		bottom := d.steps(c.steps, at, top+labelHeight+stepGap)
		if !c.ends() {
			d.path("flow", "arrow", at, bottom, at, end-6, x+4, end-6)
		}
	}
}

// legend explains the colours and lines that the chart has, and returns its height.
func (d *drawing) legend(c *Chart, x, y, width int) int {
	u := uses{}
	u.of(c.steps)
	u.of(c.onFailure)
	left, rows := x, 0
	item := func(swatch func(x, y int), word string) {
		w := 34 + 7*len(word) + 18
		if left+w > x+width {
			left, rows = x, rows+1
		}
		swatch(left, y+22*rows)
		d.text("note", "start", left+34, y+22*rows+12, word, "")
		left += w
	}
	seen := map[string]bool{}
	for _, kind := range []string{"activity", "http", "approval", "wait", "choose", "parallel", "do", "emit", "set", "fail", "finish"} {
		p := paintOf(kind)
		if !u.kinds[kind] || seen[p.word] {
			continue
		}
		seen[p.word] = true
		item(func(x, y int) {
			d.rect(x, y, 26, 15, 4, fmt.Sprintf(`fill="%s" stroke="%s" stroke-width="1.5"`, p.fill, p.stroke))
		}, p.word)
	}
	for _, l := range []struct {
		shown       bool
		class, word string
	}{
		{u.kinds["parallel"], "beside", "side by side"},
		{u.catches, "catch", "when it fails so"},
		{u.undo, "back", "undone in this order when the run fails"},
	} {
		if l.shown {
			item(func(x, y int) { d.path(l.class, "", x, y+8, x+26, y+8) }, l.word)
		}
	}
	if u.pivot {
		item(func(x, y int) {
			d.rect(x, y, 26, 15, 4, `fill="#ffffff" stroke="#b42318" stroke-width="3"`)
		}, "cannot be undone: from here the run only goes forward")
	}
	return 22*rows + 22
}

// uses says what of the legend a chart needs.
type uses struct {
	kinds                map[string]bool
	catches, undo, pivot bool
}

func (u *uses) of(steps []step) {
	if u.kinds == nil {
		u.kinds = map[string]bool{}
	}
	for _, s := range steps {
		u.kinds[s.kind] = true
		u.catches = u.catches || len(s.catches) > 0
		u.undo = u.undo || s.undo != ""
		u.pivot = u.pivot || s.pivot
		for _, b := range s.branches {
			u.of(b.steps)
		}
		for _, b := range s.catches {
			u.of(b.steps)
		}
	}
}
