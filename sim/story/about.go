package story

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A Line is one thing that happened, and when.
type Line struct {
	At   string // the time since the beginning
	Text string // indented by what waits around it
}

// Runs are the short names of the runs that a text speaks of: …1a2b3c.
func Runs(text string) []string {
	return slices.Compact(slices.Sorted(slices.Values(regexp.MustCompile(`…[0-9a-f]{6}`).FindAllString(text, -1))))
}

// About leaves out what a violation does not speak of: other runs, what happened
// before the first of its own began, workers that never had anything of it,
// repetitions, and what follows from the lines around it. It returns how many
// lines it left out. A violation that speaks of no run keeps all runs.
func About(lines []Line, message string) (kept []Line, out int) {
	runs := Runs(message)
	events := regexp.MustCompile(`\bevent-\d+\b`).FindAllString(message, -1)
	names := regexp.MustCompile(`\b(worker \d+|node [a-z])\b`)
	with := map[string]bool{} // workers and nodes that had to do with it
	mine := func(l Line) bool {
		return has(l.Text, runs) || has(l.Text, events) || strings.Contains(l.Text, "VIOLATION")
	}
	for _, l := range lines {
		if mine(l) {
			for _, n := range names.FindAllString(l.Text, -1) {
				with[n] = true
			}
		}
	}
	begun := len(runs) == 0
	for _, l := range lines {
		begun = begun || mine(l)
		switch {
		case mine(l), len(runs) == 0:
			kept = append(kept, l)
		case begun && len(Runs(l.Text)) == 0 && matters(l.Text, with, names):
			kept = append(kept, l)
		}
	}
	kept = plain(merged(kept))
	return kept, len(lines) - len(kept)
}

func has(text string, any []string) bool {
	return slices.ContainsFunc(any, func(s string) bool { return strings.Contains(text, s) })
}

// matters reports whether something that names no run may have to do with one: a
// fault of the whole world, or the life of a worker or node that had to do with it.
func matters(text string, with map[string]bool, names *regexp.Regexp) bool {
	text = strings.TrimSpace(text)
	of := names.FindString(text)
	for _, f := range []string{"clock jump", "store outage", "store restored", "node crash", "node stalled", "node suspended", "store cut"} {
		if strings.HasPrefix(text, "FAULT "+f) {
			node := regexp.MustCompile(`: ([a-z])\b( |$)`).FindStringSubmatch(text)
			return node == nil || with["node "+node[1]]
		}
	}
	for _, f := range []string{"FAULT worker", "FAULT zombie"} {
		if strings.HasPrefix(text, f) {
			return with[of]
		}
	}
	return text == "all faults end here" || with[of] && strings.HasSuffix(text, " is dead")
}

// ending is how many of the last lines are told whatever they say.
const ending = 6

// plain leaves out what follows from the lines around it: answers that say that
// something was accepted, which the events have told, and blocks that open and
// close around steps.
func plain(lines []Line) []Line {
	block := regexp.MustCompile(`, event \d+: block \S+ (opens|closes)$`)
	accepted := regexp.MustCompile(`^ *node [a-z] answers .*: accepted $`)
	end := max(len(lines)-ending, 0)
	var out []Line
	for _, l := range lines[:end] {
		if !block.MatchString(l.Text) && !accepted.MatchString(l.Text) {
			out = append(out, l)
		}
	}
	return append(out, lines[end:]...)
}

// merged tells what happened more than once in one line, at its first time.
func merged(lines []Line) []Line {
	times, last := map[string]int{}, map[string]string{}
	for _, l := range lines {
		times[l.Text]++
		last[l.Text] = l.At
	}
	var out []Line
	for _, l := range lines {
		switch n := times[l.Text]; {
		case n == 0:
			continue
		case n > 1:
			text := l.Text
			l.Text = fmt.Sprintf("%s (%d times, last at %s)", text, n, last[text])
			times[text] = 0
			out = append(out, l)
		default:
			out = append(out, l)
		}
	}
	return out
}

// Reached leaves out of a definition, written as this simulator writes them, the
// steps that a run never came to.
func Reached(source string, reached func(step string) bool) string {
	item := regexp.MustCompile(`^( *)- id: ([a-z0-9_]+)$`)
	var out []string
	skip, left := -1, 0
	for line := range strings.SplitSeq(strings.TrimRight(source, "\n"), "\n") {
		depth := len(line) - len(strings.TrimLeft(line, " "))
		if skip >= 0 && depth > skip {
			continue
		}
		skip = -1
		if m := item.FindStringSubmatch(line); m != nil && !reached(m[2]) {
			skip = depth
			left++
			continue
		}
		out = append(out, line)
	}
	if left > 0 {
		out = append(out, fmt.Sprintf("# and %d steps that it never came to", left))
	}
	return strings.Join(out, "\n") + "\n"
}
