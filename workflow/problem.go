package workflow

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Severity says whether a problem keeps a definition from being published.
type Severity string

// The severities.
const (
	SeverityError   Severity = "error"   // the definition is refused
	SeverityWarning Severity = "warning" // a finding: accepted, but somebody should read it
)

// A Problem is one thing that is wrong or doubtful in a definition, and where.
// Its JSON is what `check --json` and the API print.
type Problem struct {
	File       string   `json:"file"`
	Line       int      `json:"line"`   // from 1
	Column     int      `json:"column"` // from 1, in characters
	ID         string   `json:"id"`     // a rule of Rules, for example "RG0001"
	Severity   Severity `json:"severity"`
	Message    string   `json:"message"`    // what is wrong
	Suggestion string   `json:"suggestion"` // what to write instead
}

// String is the problem on one line: file:line:column: severity id: message; suggestion.
func (p Problem) String() string {
	s := fmt.Sprintf("%s:%d:%d: %s %s: %s", p.File, p.Line, p.Column, p.Severity, p.ID, p.Message)
	if p.Suggestion != "" {
		s += "; " + p.Suggestion
	}
	return s
}

// maxProblems bounds the list that one file can cause: nobody reads further,
// and a hostile file must not turn a megabyte of source into a gigabyte of
// answers. The first ones in the order of the file are kept.
const maxProblems = 500

// sortProblems orders by place, drops repeats of one rule at one place, and
// cuts the list: findings first, so that an error is never hidden behind them.
func sortProblems(list []Problem) []Problem {
	slices.SortStableFunc(list, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), strings.Compare(a.ID, b.ID))
	})
	list = slices.CompactFunc(list, func(a, b Problem) bool {
		return a.Line == b.Line && a.Column == b.Column && a.ID == b.ID
	})
	errors := 0
	for _, p := range list {
		if p.Severity == SeverityError {
			errors++
		}
	}
	room := max(0, maxProblems-errors)
	list = slices.DeleteFunc(list, func(p Problem) bool {
		if p.Severity == SeverityError {
			return false
		}
		room--
		return room < 0
	})
	return list[:min(len(list), maxProblems)]
}

// quoted renders text from the file for a message: short and on one line.
func quoted(text string) string {
	r := []rune(text)
	if len(r) > 60 {
		text = string(r[:57]) + "..."
	}
	return fmt.Sprintf("%q", text)
}

// listed renders words for a message: "a, b or c".
func listed(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}
