package graph_test

import (
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ringiflow/ringi/workflow"
	"github.com/ringiflow/ringi/workflow/graph"
)

var update = flag.Bool("update", false, "rewrite the expected drawings")

// definitions are the files that every drawing is tried with: the examples, the
// right definitions of all rules, and one with every shape there is.
func definitions(t *testing.T) map[string]*workflow.Definition {
	t.Helper()
	out := map[string]*workflow.Definition{}
	for _, pattern := range []string{"testdata/*.yaml", "../testdata/*.yaml", "../rules/*/right.yaml", "../../examples/*/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.yaml") {
				continue // scenarios
			}
			out[file] = parsed(t, file)
		}
	}
	return out
}

func parsed(t *testing.T, file string) *workflow.Definition {
	t.Helper()
	src, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	d, problems := workflow.Parse(file, src)
	if d == nil {
		t.Fatalf("%s: %v", file, problems)
	}
	return d
}

// A box is a rectangle of the drawing that stands for something.
type box struct{ x, y, w, h int }

func (b box) overlaps(c box) bool {
	return b.x < c.x+c.w && c.x < b.x+b.w && b.y < c.y+c.h && c.y < b.y+b.h
}

// read checks that the drawing is XML, and returns its boxes and its size.
func read(t *testing.T, svg []byte) (boxes []box, page box) {
	t.Helper()
	dec := xml.NewDecoder(strings.NewReader(string(svg)))
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return boxes, page
		}
		if err != nil {
			t.Fatal(err)
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		at := map[string]string{}
		for _, a := range start.Attr {
			at[a.Name.Local] = a.Value
		}
		number := func(name string) int { n, _ := strconv.Atoi(at[name]); return n }
		b := box{number("x"), number("y"), number("width"), number("height")}
		switch {
		case start.Name.Local == "svg":
			page = b
		case start.Name.Local == "rect" && (b.w == 290 || b.w == 170): // steps, ends and undos
			boxes = append(boxes, b)
		}
	}
}

func TestNoTwoBoxesOverlapAndAllAreOnThePage(t *testing.T) {
	for file, d := range definitions(t) {
		boxes, page := read(t, graph.Of(d).SVG())
		if len(boxes) < d.Steps() {
			t.Errorf("%s: %d boxes for %d steps", file, len(boxes), d.Steps())
		}
		for i, b := range boxes {
			if b.x < 0 || b.y < 0 || b.x+b.w > page.w || b.y+b.h > page.h {
				t.Errorf("%s: the box %+v is not on the page %+v", file, b, page)
			}
			for _, c := range boxes[i+1:] {
				if b.overlaps(c) {
					t.Errorf("%s: the boxes %+v and %+v overlap", file, b, c)
				}
			}
		}
	}
}

func TestEveryStepIsInEveryDrawing(t *testing.T) {
	for file, d := range definitions(t) {
		chart := graph.Of(d)
		for name, drawing := range map[string]string{"svg": string(chart.SVG()), "mermaid": chart.Mermaid(), "text": chart.Text(0)} {
			if !utf8.ValidString(drawing) {
				t.Errorf("%s: %s is not UTF-8", file, name)
			}
			for _, id := range ids(d.Root) {
				if !strings.Contains(drawing, id) {
					t.Errorf("%s: %s does not show the step %s", file, name, id)
				}
			}
		}
	}
}

func ids(b *workflow.Block) (out []string) {
	for _, s := range b.Steps {
		out = append(out, s.ID)
		for _, inner := range s.Blocks() {
			out = append(out, ids(inner)...)
		}
	}
	return out
}

// The drawings of two definitions are kept, so that a change of the layout is seen.
func TestDrawingsAreStable(t *testing.T) {
	for _, file := range []string{"testdata/everything.yaml", "../../examples/order/order_fulfilment.yaml"} {
		chart := graph.Of(parsed(t, file))
		again := graph.Of(parsed(t, file))
		for ending, drawing := range map[string][2]string{
			"svg":  {string(chart.SVG()), string(again.SVG())},
			"mmd":  {chart.Mermaid(), again.Mermaid()},
			"text": {chart.Text(100), again.Text(100)},
		} {
			if drawing[0] != drawing[1] {
				t.Errorf("%s: the %s of one definition differs from time to time", file, ending)
			}
			kept := filepath.Join("testdata", strings.TrimSuffix(filepath.Base(file), ".yaml")+"."+ending)
			if *update {
				if err := os.WriteFile(kept, []byte(drawing[0]), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(kept)
			if err != nil || string(want) != drawing[0] {
				t.Errorf("%s differs (%v); look at the drawing, then: go test ./workflow/graph -update\n%s", kept, err, drawing[0])
			}
		}
	}
}

// What people write into a definition cannot leave its place in a drawing.
func TestTextIsOnlyText(t *testing.T) {
	src := `ringi: v1
name: hostile
title: "<script>alert(1)</script> \"] --> x"
description: "one \e[31m two \u202e three"
steps:
  - id: a
    title: "</text><image href='http://example.org/x'/> &"
    wait: { for: 1h }
`
	d, problems := workflow.Parse("f.yaml", []byte(src))
	if d == nil {
		t.Fatal(problems)
	}
	chart := graph.Of(d)
	svg := string(chart.SVG())
	read(t, []byte(svg))
	for _, bad := range []string{"<script", "<image", "\x1b", "\u202e"} {
		if strings.Contains(svg, bad) || strings.Contains(chart.Mermaid(), bad) {
			t.Errorf("%q came through", bad)
		}
	}
	if strings.Contains(chart.Text(0), "\x1b") || strings.Contains(chart.Mermaid(), `x"] -->`) {
		t.Error("text or Mermaid hold what their readers obey")
	}
}

func TestLinesOfTextAreCutToTheTerminal(t *testing.T) {
	for file, d := range definitions(t) {
		for line := range strings.Lines(graph.Of(d).Text(60)) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 60 {
				t.Errorf("%s: a line has %d columns: %s", file, n, line)
			}
		}
	}
}

// Deep and wide definitions are drawn in the time that their size takes.
func TestALargeDefinitionIsDrawn(t *testing.T) {
	var b strings.Builder
	b.WriteString("ringi: v1\nname: large\nsteps:\n")
	indent := ""
	for i := range 28 {
		fmt.Fprintf(&b, "%s  - id: d%d\n%s    do:\n", indent, i, indent)
		indent += "    "
	}
	for i := range 900 {
		fmt.Fprintf(&b, "%s  - { id: s%d, wait: { for: 1s } }\n", indent, i)
	}
	d, problems := workflow.Parse("f.yaml", []byte(b.String()))
	if d == nil {
		t.Fatal(problems[0])
	}
	boxes, _ := read(t, graph.Of(d).SVG())
	if len(boxes) < 928 {
		t.Errorf("%d boxes", len(boxes))
	}
}

// Wide letters leave no box: a line holds fewer of them.
func TestWideLettersStayInTheirBox(t *testing.T) {
	src := `ringi: v1
name: ` + strings.Repeat("w", 64) + `
title: "` + strings.Repeat("W", 70) + `"
steps:
  - id: ` + strings.Repeat("m", 50) + `
    title: "` + strings.Repeat("W", 60) + `"
    activity: ` + strings.Repeat("M", 60) + `
    effect: idempotent
    compensate: { activity: ` + strings.Repeat("W", 40) + ` }
`
	d, problems := workflow.Parse("f.yaml", []byte(src))
	if d == nil {
		t.Fatal(problems)
	}
	svg := string(graph.Of(d).SVG())
	_, page := read(t, []byte(svg))
	widest := map[string]int{ // letters of a line, at nine tenths of the size each
		"title": 266 * 10 / (13 * 9), "head": 266 * 10 / (13 * 9), "id": 266 * 10 / (14 * 9), "undo": 170 * 10 / (12 * 9), "name": (page.w - 32) * 10 / (22 * 9),
	}
	seen := map[string]bool{}
	for line := range strings.Lines(svg) {
		_, rest, isText := strings.Cut(line, `<text class="`)
		class, rest, _ := strings.Cut(rest, `"`)
		if !isText || widest[class] == 0 {
			continue
		}
		text := strings.TrimSuffix(strings.TrimSpace(rest[strings.LastIndex(rest[:strings.LastIndex(rest, "<")], ">")+1:]), "</text>")
		if n := utf8.RuneCountInString(strings.Trim(text, "…")); strings.Trim(text, "WMmw…") == "" && n > 0 {
			seen[class] = true
			if n > widest[class] {
				t.Errorf("a line of class %s has %d wide letters, room is for %d: %s", class, n, widest[class], text)
			}
		}
	}
	if len(seen) != len(widest) {
		t.Errorf("only %v were found", seen)
	}
}
