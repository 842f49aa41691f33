package schema_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ringiflow/ringi/workflow/grammar"
)

var update = flag.Bool("update", false, "rewrite docs/definition-keys.md")

// The list of all keys for people is made of the grammar too, and is up to date.
func TestTheListOfKeysIsThatOfTheGrammar(t *testing.T) {
	const file = "../../docs/definition-keys.md"
	want := reference(grammar.New())
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil || string(got) != want {
		t.Errorf("%s is out of date (%v): go test ./workflow/schema -run Keys -update", file, err)
	}
}

// reference is every mapping of the grammar as a table.
func reference(g *grammar.Grammar) string {
	var b strings.Builder
	b.WriteString("# The keys of a definition\n\nEvery mapping of the language with its keys in their usual order. [definitions.md](definitions.md) says how to work with definitions; a test keeps this list as the checker reads it.\n")
	seen := []*grammar.Mapping{g.ProbeHTTP} // http with fewer methods
	next := []*grammar.Mapping{g.Definition}
	for len(next) > 0 {
		m := next[0]
		next = next[1:]
		if slices.Contains(seen, m) {
			continue
		}
		seen = append(seen, m)
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| key | value | what |\n|---|---|---|\n", titled(m.What), m.Doc)
		for _, k := range m.Keys {
			doc := strings.ReplaceAll(k.Doc, "\n", " ")
			doc = strings.ReplaceAll(doc, "  ", " ")
			if k.Needed {
				doc = "**Needed.** " + doc
			}
			if k.Default != "" {
				doc += " Default: `" + k.Default + "`."
			}
			if len(k.Beside) > 0 && len(k.Beside) < 4 {
				doc += " Only beside `" + strings.Join(k.Beside, "` or `") + "`."
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", k.Name, strings.ReplaceAll(valueText(k.Value), "|", `\|`), strings.ReplaceAll(doc, "|", `\|`))
			next = append(next, mappingsIn(k.Value)...)
		}
		for _, group := range m.OneOf {
			b.WriteString("\nExactly one of `" + strings.Join(group.Keys, "`, `") + "`.\n")
		}
	}
	return b.String()
}

func titled(what string) string {
	what = strings.TrimPrefix(strings.TrimPrefix(what, "a "), "an ")
	return strings.ToUpper(what[:1]) + what[1:]
}

func mappingsIn(v grammar.Value) []*grammar.Mapping {
	switch {
	case v.Of != nil:
		return []*grammar.Mapping{v.Of}
	case v.Item != nil:
		return mappingsIn(*v.Item)
	}
	return nil
}

// valueText says what a value is, in a few words.
func valueText(v grammar.Value) string {
	switch v.Kind {
	case grammar.Word:
		return "`" + strings.Join(v.Words, "`, `") + "`"
	case grammar.Count:
		return fmt.Sprintf("a whole number, %d to %d", v.Low, v.High)
	case grammar.Map:
		return link(v.Of)
	case grammar.Steps:
		return "a list of [steps](#step)"
	case grammar.List:
		return "a list: " + valueText(*v.Item)
	case grammar.Named:
		return "names with values: " + valueText(*v.Item)
	}
	return map[grammar.Kind]string{
		grammar.Any: "any value; texts in it may hold `${ }`", grammar.Version: "`v1`", grammar.Name: "a short text", grammar.Prose: "a text", grammar.Reason: "a text",
		grammar.Title: "a short text; may hold `${ }`", grammar.Text: "a text; may hold `${ }`", grammar.KeyText: "a text; may hold `${ }`", grammar.Who: "`group:NAME` or `user:ID`; may hold `${ }`",
		grammar.Identifier: "a word: `[a-z][a-z0-9_]*`", grammar.Flag: "`true` or `false`", grammar.Factor: "a number from 1", grammar.Duration: "a duration: `90s`, `15m`, `4h`, `3d`",
		grammar.Instant: "an instant, or `${ }`", grammar.Condition: "an expression without `${ }`", grammar.Object: "an object, or `${ }`", grammar.Table: "a list, or `${ }`",
		grammar.Schema: "JSON Schema", grammar.Address: "an address; may hold `${ }`",
	}[v.Kind]
}

func link(m *grammar.Mapping) string {
	name := titled(m.What)
	return fmt.Sprintf("[%s](#%s)", strings.ToLower(name[:1])+name[1:], strings.ReplaceAll(strings.ToLower(name), " ", "-"))
}
