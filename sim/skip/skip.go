// Package skip keeps the numbers of what is left out of a simulated world.
package skip

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A List is the numbers of perturbations that do not take place, as spans from
// a first to a last, in order. Its zero value leaves out nothing.
type List []Span

// A Span is a span of numbers, both ends included.
type Span struct{ From, To int }

// Has reports whether a number is in one of the spans.
func (s List) Has(n int) bool {
	i, found := slices.BinarySearchFunc(s, n, func(x Span, n int) int {
		switch {
		case x.To < n:
			return -1
		case x.From > n:
			return 1
		}
		return 0
	})
	return found && i < len(s)
}

// String writes the spans as Parse reads them: 3,5-9.
func (s List) String() string {
	parts := make([]string, len(s))
	for i, x := range s {
		parts[i] = strconv.Itoa(x.From)
		if x.To > x.From {
			parts[i] += "-" + strconv.Itoa(x.To)
		}
	}
	return strings.Join(parts, ",")
}

// Parse reads spans of numbers such as 3,5-9, in ascending order.
func Parse(text string) (List, error) {
	var out List
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		low, high, isSpan := strings.Cut(part, "-")
		if !isSpan {
			high = low
		}
		from, err1 := strconv.Atoi(low)
		to, err2 := strconv.Atoi(high)
		if err1 != nil || err2 != nil || from < 1 || to < from || len(out) > 0 && from <= out[len(out)-1].To {
			return nil, fmt.Errorf("sim: %q is no ascending list of numbers such as 3,5-9", text)
		}
		out = append(out, Span{from, to})
	}
	return out, nil
}

// With adds a span and joins what touches.
func (s List) With(from, to int) List {
	all := append(slices.Clone(s), Span{from, to})
	slices.SortFunc(all, func(a, b Span) int { return a.From - b.From })
	out := all[:1]
	for _, x := range all[1:] {
		last := &out[len(out)-1]
		if x.From <= last.To+1 {
			last.To = max(last.To, x.To)
			continue
		}
		out = append(out, x)
	}
	return out
}
