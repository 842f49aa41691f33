package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/ringiflow/ringi"
)

// How data is printed.
const (
	OutputTable = "table"
	OutputJSON  = "json"
)

// JSON reports whether data is printed as JSON.
func (p *Program) JSON() bool { return p.Get(SetOutput) == OutputJSON }

// Print prints data: the object as one line of JSON, or the table.
func (p *Program) Print(object any, t Table) error {
	if p.JSON() {
		return p.PrintJSON(object)
	}
	return t.Write(p.Stdout, p.Colours())
}

// PrintJSON prints one object on a line.
func (p *Program) PrintJSON(object any) error {
	enc := json.NewEncoder(p.Stdout)
	enc.SetEscapeHTML(false)
	return enc.Encode(object)
}

// Say tells the person, on standard error.
func (p *Program) Say(format string, args ...any) {
	fmt.Fprintf(p.Stderr, format+"\n", args...)
}

// report tells what went wrong: with JSON as one object on standard error, so
// that a script can read that too.
func (p *Program) report(err error) {
	out := struct {
		Code      string `json:"code,omitempty"`
		Message   string `json:"message"`
		Hint      string `json:"hint,omitempty"`
		Retryable bool   `json:"retryable"`
		Exit      int    `json:"exit"`
	}{Message: err.Error(), Exit: exitCode(err)}
	if e := endingOf(err); e != nil {
		out.Message, out.Hint = e.Message, e.Hint
	} else if r := RefusalOf(err); r != nil {
		out.Code, out.Message, out.Hint, out.Retryable = string(r.Code), r.Message, r.Hint, r.Retryable()
	}
	if out.Message == "" {
		return
	}
	if p.settings.values != nil && p.JSON() {
		line, _ := json.Marshal(out) // text and numbers only
		p.Say("%s", line)
		return
	}
	p.Say("ringi: %s", out.Message)
	if out.Hint != "" {
		p.Say("  %s", out.Hint)
	}
}

// Colours reports whether standard output may have colours.
func (p *Program) Colours() bool {
	return p.Terminal.Out && p.Env("NO_COLOR") == "" && p.Env("TERM") != "dumb"
}

// A Table is data for people: a head and rows of cells. Cells are shown on one
// line and without what a terminal would obey.
type Table struct {
	Head []string
	rows [][]string
}

// Row adds a row of cells.
func (t *Table) Row(cells ...string) { t.rows = append(t.rows, cells) }

// Write prints the table; a status is coloured as a whole line is read.
func (t *Table) Write(w io.Writer, colours bool) error {
	var b strings.Builder
	tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	if len(t.Head) > 0 {
		fmt.Fprintln(tw, strings.Join(t.Head, "\t"))
	}
	for _, r := range t.rows {
		cells := make([]string, len(r))
		for i, c := range r {
			cells[i] = Plain(c)
		}
		fmt.Fprintln(tw, strings.Join(cells, "\t"))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(b.String()) {
		line = strings.TrimRight(line, " \n")
		if colours {
			line = coloured(line)
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

// coloured paints the words in a line that say how a run or a step stands.
func coloured(line string) string {
	words := strings.SplitAfter(line, " ")
	for i, w := range words {
		word := strings.TrimRight(w, " ")
		if c := ColourOf(word); c != "" {
			words[i] = "\x1b[" + c + "m" + word + "\x1b[0m" + w[len(word):]
		}
	}
	return strings.Join(words, "")
}

// ColourOf returns the code by which a terminal paints a word that says how
// something stands, or "".
func ColourOf(word string) string {
	switch word {
	case string(ringi.Completed), string(ringi.Succeeded):
		return "32" // green
	case string(ringi.InIncident), string(ringi.Failed), string(ringi.TimedOut), string(ringi.Unknown), string(ringi.Terminated), string(ringi.Rejected), string(ringi.Expired), "error":
		return "31" // red
	case string(ringi.Waiting), string(ringi.Paused), string(ringi.Compensating), "warning":
		return "33" // yellow
	case string(ringi.Running), "open":
		return "36" // cyan
	}
	return ""
}

// Plain is text on one line, without control characters: names and titles come
// from people, and a terminal obeys what it is sent.
func Plain(s string) string {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029' || r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069' {
			return ' '
		}
		return r
	}, s)
}

// Counted is a number of things, as in 1 error and 2 errors.
func Counted[N int | int64](n N, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Short is text cut to n characters.
func Short(s string, n int) string {
	r := []rune(Plain(s))
	if len(r) <= n {
		return string(r)
	}
	return string(r[:n-1]) + "…"
}

// Moment is a time as tables show it: RFC 3339 in UTC, to the second.
func Moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
