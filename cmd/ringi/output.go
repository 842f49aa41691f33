package main

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
	outputTable = "table"
	outputJSON  = "json"
)

// json reports whether data is printed as JSON.
func (p *Program) json() bool { return p.get(setOutput) == outputJSON }

// print prints data: the object as one line of JSON, or the table.
func (p *Program) print(object any, t table) error {
	if p.json() {
		return p.printJSON(object)
	}
	return t.write(p.Stdout, p.colours())
}

// printJSON prints one object on a line.
func (p *Program) printJSON(object any) error {
	enc := json.NewEncoder(p.Stdout)
	enc.SetEscapeHTML(false)
	return enc.Encode(object)
}

// say tells the person, on standard error.
func (p *Program) say(format string, args ...any) {
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
		out.Message, out.Hint = e.message, e.hint
	} else if r := refusalOf(err); r != nil {
		out.Code, out.Message, out.Hint, out.Retryable = string(r.Code), r.Message, r.Hint, r.Retryable()
	}
	if out.Message == "" {
		return
	}
	if p.settings.values != nil && p.json() {
		line, _ := json.Marshal(out) // text and numbers only
		p.say("%s", line)
		return
	}
	p.say("ringi: %s", out.Message)
	if out.Hint != "" {
		p.say("  %s", out.Hint)
	}
}

// colours reports whether standard output may have colours.
func (p *Program) colours() bool {
	return p.Terminal.Out && p.Env("NO_COLOR") == "" && p.Env("TERM") != "dumb"
}

// A table is data for people: a head and rows of cells. Cells are shown on one
// line and without what a terminal would obey.
type table struct {
	head []string
	rows [][]string
}

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

// write prints the table; a status is coloured as a whole line is read.
func (t *table) write(w io.Writer, colours bool) error {
	var b strings.Builder
	tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	if len(t.head) > 0 {
		fmt.Fprintln(tw, strings.Join(t.head, "\t"))
	}
	for _, r := range t.rows {
		cells := make([]string, len(r))
		for i, c := range r {
			cells[i] = plain(c)
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
		if c := colourOf(word); c != "" {
			words[i] = "\x1b[" + c + "m" + word + "\x1b[0m" + w[len(word):]
		}
	}
	return strings.Join(words, "")
}

func colourOf(word string) string {
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

// plain is text on one line, without control characters: names and titles come
// from people, and a terminal obeys what it is sent.
func plain(s string) string {
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

// counted is a number of things, as in 1 error and 2 errors.
func counted[N int | int64](n N, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// short is text cut to n characters.
func short(s string, n int) string {
	r := []rune(plain(s))
	if len(r) <= n {
		return string(r)
	}
	return string(r[:n-1]) + "…"
}

// moment is a time as tables show it: RFC 3339 in UTC, to the second.
func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
