package graph

// Sizes in pixels. A box is wide enough for the names that people give, and
// three of them stand side by side on a page.
const (
	boxWidth    = 290
	half        = boxWidth / 2
	chipWidth   = 170 // of an undo
	chipHeight  = 36
	chipGap     = 26
	stepGap     = 28 // between a step and the next, with an arrow
	branchGap   = 36 // between branches side by side
	labelHeight = 34 // of the label of a branch, at most two lines
	labelWidth  = 210
	fork        = 18 // from a box to the line that its branches hang on
	pivotHeight = 30
	frame       = 14 // around the steps of a do
	lineHeight  = 16
	empty       = 16 // a branch without steps
	catchDrop   = 22
)

// An extent is what something takes: to the left and to the right of the line
// on which it stands, and down.
type extent struct{ left, right, height int }

// beside makes e wide enough for f on the same line.
func (e *extent) beside(f extent) {
	e.left, e.right = max(e.left, f.left), max(e.right, f.right)
}

// measureSteps is the extent of a list of steps.
func measureSteps(steps []step) extent {
	e := extent{left: labelWidth / 2, right: labelWidth / 2, height: empty}
	if len(steps) == 0 {
		return e
	}
	e.height = 0
	for i, s := range steps {
		if i > 0 {
			e.height += stepGap
		}
		m := measure(s)
		e.beside(m)
		e.height += m.height
		if s.pivot {
			e.height += pivotHeight
		}
	}
	return e
}

// measure is the extent of a step with all that hangs on it.
func measure(s step) extent {
	e := extent{left: half, right: half, height: boxHeight(s)}
	if s.undo != "" {
		e.left += chipGap + chipWidth
	}
	if len(s.branches) > 0 {
		body := measureBody(s)
		e.beside(body)
		e.height += body.height
	}
	catches, _ := measureCatches(s, e.right)
	e.right = max(e.right, catches.right)
	e.height = max(e.height, catches.height)
	return e
}

// boxLines are the lines in a box under its first one.
func boxLines(s step) []line {
	var out []line
	add := func(class, text string, most int) {
		if text == "" {
			return
		}
		for _, l := range wrap(class, text, boxWidth-24, most) {
			out = append(out, line{class, l, text})
		}
	}
	if s.title != s.head {
		add("title", s.title, 2)
	}
	add("head", s.head, 2)
	if s.when != "" {
		add("when", "only if "+s.when, 3)
	}
	for i, n := range s.notes {
		if i == maxNotes && len(s.notes) > maxNotes+1 {
			add("note", counted(len(s.notes)-i, "more", "more"), 1)
			break
		}
		add("note", n, 2)
	}
	return out
}

// maxNotes is how many notes a box shows; the rest is counted.
const maxNotes = 6

// A line of a box: what stands there, and the whole text for who points at it.
type line struct{ class, text, whole string }

func boxHeight(s step) int { return 32 + lineHeight*len(boxLines(s)) + 6 }

// measureBody is the extent of the branches of a step, under its box.
func measureBody(s step) extent {
	if s.kind == "do" {
		e := measureSteps(s.branches[0].steps)
		return extent{e.left + frame, e.right + frame, stepGap + e.height + frame}
	}
	_, e := placeBranches(s.branches)
	return e
}

// placeBranches says where each branch stands relative to the line of its step.
func placeBranches(branches []branch) (places []int, e extent) {
	at := 0
	var widest int
	for i, b := range branches {
		m := measureSteps(b.steps)
		m.beside(extent{left: labelWidth / 2, right: labelWidth / 2})
		if i > 0 {
			at += branchGap
		}
		places = append(places, at+m.left)
		at += m.left + m.right
		widest = max(widest, m.height)
	}
	middle := (places[0] + places[len(places)-1]) / 2
	for i := range places {
		places[i] -= middle
	}
	return places, extent{left: middle, right: at - middle, height: fork + labelHeight + stepGap + widest + stepGap}
}

// measureCatches says where what handles failures stands, to the right of all
// else, and how far it reaches.
func measureCatches(s step, right int) (e extent, places []int) {
	e.right = right
	for i, c := range s.catches {
		m := measureSteps(c.steps)
		m.beside(extent{left: labelWidth / 2, right: labelWidth / 2})
		places = append(places, e.right+branchGap+m.left)
		e.right += branchGap + m.left + m.right
		e.height = max(e.height, catchTop(s, i)+labelHeight+stepGap+m.height+catchDrop)
	}
	return e, places
}

// catchTop is where the line to a catch leaves the box: the farthest one at the
// top, so that no two lines cross.
func catchTop(s step, i int) int {
	return boxHeight(s) * (len(s.catches) - i) / (len(s.catches) + 1)
}
