package schema_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/ringiflow/ringi/workflow"
	"github.com/ringiflow/ringi/workflow/schema"
)

func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema.JSON()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(schema.ID, doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(schema.ID)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// refused is why the schema refuses a document; "" when it accepts it.
func refused(t *testing.T, s *jsonschema.Schema, doc []byte) string {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(doc))
	if err != nil {
		t.Fatal(err)
	}
	err = s.Validate(v)
	var invalid *jsonschema.ValidationError
	if err != nil && !errors.As(err, &invalid) {
		t.Fatal(err)
	}
	if err == nil {
		return ""
	}
	return err.Error()
}

// agree compares the two verdicts about one document. What the schema refuses,
// the parser refuses; what the schema accepts breaks at most rules that it
// cannot express.
func agree(t *testing.T, s *jsonschema.Schema, what string, doc []byte) {
	t.Helper()
	_, problems := workflow.Parse(what, doc)
	problems = slices.DeleteFunc(problems, func(p workflow.Problem) bool { return p.Severity != workflow.SeverityError })
	why := refused(t, s, doc)
	if why != "" && len(problems) == 0 {
		t.Errorf("%s: the parser accepts what the schema refuses: %s\n%s", what, why, doc)
	}
	if why != "" {
		return
	}
	for _, p := range problems {
		if !slices.ContainsFunc(schema.Beyond(), func(g schema.Gap) bool { return g.ID == p.ID }) || !strings.Contains(p.Message, partOf(p)) {
			t.Errorf("%s: the schema accepts what the parser refuses: %v\n%s", what, p, doc)
		}
	}
}

// partOf is what the message of a problem says when its rule is one that the
// schema expresses in part, and this is the other part.
func partOf(p workflow.Problem) string {
	switch p.ID {
	case "RG0025":
		return "the longest pause is shorter"
	case "RG0026":
		return " deep "
	case "RG0105":
		if strings.Contains(p.Message, "only one attempt") {
			return "" // because of the defaults of the file
		}
		if strings.Contains(p.Message, "queue has no effect on the verb http") || strings.Contains(p.Message, "stands above already") {
			return "" // it is for a probe or an undo; a status is expected twice
		}
		return "in on_failure"
	case "RG0109":
		return "behind else"
	}
	return ""
}

// definitions are all definitions of this repository, right and wrong, that can
// be read as YAML at all, as JSON documents by their files.
func definitions(t *testing.T) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for _, pattern := range []string{"../rules/*/*.yaml", "../testdata/*.yaml", "../graph/testdata/*.yaml", "../build/testdata/*.yaml", "../../examples/*/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var root yaml.Node
			if yaml.Unmarshal(src, &root) != nil || len(root.Content) == 0 || !bytes.Contains(src, []byte("ringi:")) {
				continue // no YAML, or no definition
			}
			if doc, ok := asJSON(root.Content[0]); ok {
				out[file] = doc
			}
		}
	}
	return out
}

// asJSON writes a YAML value as JSON by the rules of YAML 1.2, and reports
// whether it can: tags, merge keys and repeated keys have no counterpart.
func asJSON(n *yaml.Node) (doc []byte, ok bool) {
	join := func(open, end string, items [][]byte) []byte {
		return []byte(open + string(bytes.Join(items, []byte(","))) + end)
	}
	var items [][]byte
	switch n.Kind {
	case yaml.AliasNode:
		return asJSON(n.Alias)
	case yaml.SequenceNode:
		for _, c := range n.Content {
			item, ok := asJSON(c)
			if !ok {
				return nil, false
			}
			items = append(items, item)
		}
		return join("[", "]", items), true
	case yaml.MappingNode:
		seen := map[string]bool{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			value, ok := asJSON(n.Content[i+1])
			if !ok || key.Kind != yaml.ScalarNode || key.Tag == "!!merge" || seen[key.Value] {
				return nil, false
			}
			seen[key.Value] = true
			name, _ := json.Marshal(key.Value)
			items = append(items, append(append(name, ':'), value...))
		}
		return join("{", "}", items), true
	}
	switch {
	case n.Style&yaml.TaggedStyle != 0:
		return nil, false
	case n.Style == 0 && (n.Value == "" || n.Value == "null" || n.Value == "~"):
		return []byte("null"), true
	case n.Style == 0 && (n.Value == "true" || n.Value == "false" || json.Valid([]byte(n.Value)) && strings.Trim(n.Value, "-0123456789.eE+") == ""):
		return []byte(n.Value), true
	}
	doc, err := json.Marshal(n.Value)
	return doc, err == nil
}

func TestParserAndSchemaAgreeAboutEveryDefinitionHere(t *testing.T) { // W3
	s := compiled(t)
	all := definitions(t)
	if len(all) < 140 {
		t.Errorf("only %d definitions were found", len(all))
	}
	for file, doc := range all {
		agree(t, s, file, doc)
	}
}

// Definitions are broken at random: keys go, come and change their names, values
// become others. The two still agree about each.
func TestParserAndSchemaAgreeAboutBrokenDefinitions(t *testing.T) { // W3
	s := compiled(t)
	all := definitions(t)
	files := make([]string, 0, len(all))
	for file := range all {
		files = append(files, file)
	}
	slices.Sort(files)
	const seed = 20
	rnd := rand.New(rand.NewPCG(seed, 0))
	m := newMutator(rnd, all)
	refusals := 0
	for i := range 3000 {
		file := files[rnd.IntN(len(files))]
		var doc any
		dec := json.NewDecoder(bytes.NewReader(all[file]))
		dec.UseNumber()
		if err := dec.Decode(&doc); err != nil {
			t.Fatal(err)
		}
		for range 1 + rnd.IntN(2) {
			doc = m.mutate(doc)
		}
		broken, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		if refused(t, s, broken) != "" {
			refusals++
		}
		agree(t, s, fmt.Sprintf("%s, change %d of seed %d", file, i, seed), broken)
		if t.Failed() {
			return
		}
	}
	if refusals < 1000 {
		t.Errorf("only %d changes broke something", refusals)
	}
}

// Each key of each definition is left out, and each value is nothing.
// The two agree about all of them.
func TestParserAndSchemaAgreeAboutWhatIsMissing(t *testing.T) { // W3
	s := compiled(t)
	tried := 0
	for file, doc := range definitions(t) {
		var root any
		dec := json.NewDecoder(bytes.NewReader(doc))
		dec.UseNumber()
		if err := dec.Decode(&root); err != nil {
			t.Fatal(err)
		}
		check := func(what string) {
			broken, err := json.Marshal(root)
			if err != nil {
				t.Fatal(err)
			}
			tried++
			agree(t, s, file+": "+what, broken)
		}
		var visit func(v any, path string)
		visit = func(v any, path string) {
			switch v := v.(type) {
			case map[string]any:
				for _, k := range slices.Sorted(maps.Keys(v)) {
					kept := v[k]
					delete(v, k)
					check(path + "." + k + " is missing")
					for _, other := range []any{nil, map[string]any{}} {
						v[k] = other
						check(fmt.Sprintf("%s.%s is %v", path, k, other))
					}
					v[k] = kept
					visit(kept, path+"."+k)
				}
			case []any:
				for i, item := range v {
					visit(item, fmt.Sprintf("%s[%d]", path, i))
				}
			}
		}
		visit(root, "")
		if t.Failed() {
			return
		}
	}
	if tried < 3000 {
		t.Errorf("only %d definitions were tried", tried)
	}
}

// A mutator changes documents with keys and values that stand in others.
type mutator struct {
	rnd    *rand.Rand
	keys   []string
	values []any
}

func newMutator(rnd *rand.Rand, all map[string][]byte) *mutator {
	m := &mutator{rnd: rnd, values: []any{
		nil, true, false, json.Number("0"), json.Number("1"), json.Number("101"), json.Number("2.5"), "", " x", "x ", "a b", "90s", "0s", "99999d", "3650d", "3651d", "1h30m", "${ input.x }", "x ${ input.x }",
		json.Number("5.0"), json.Number("5e0"), json.Number("20e-1"), json.Number("-0"), json.Number("-1"), json.Number("1e-9"), json.Number("1.0000000000000000000001"),
		json.Number("100000000000000000000"), json.Number("200.0"), json.Number("1e300"), "5.0", "5", "1e3", "0x10", "true", "null", "~", "yes",
		"\u00a0", "a\u00a0b", "\u200b", "a\nb", "a\tb", "é", "\u2028", strings.Repeat("é", 200), strings.Repeat("é", 128), strings.Repeat("x", 256),
		"GET", "POST", "get", "https://a.example/x", "http://", "ftp://a.example", "https://${ input.x }", "${ input.x }://a", "HTTPS://a.example",
		"http_500", "http_200", "http_99", "timed_out", "*", "ringi.http", "ringi.", "${", "${ }", "$${ x }", "}", "a_b", "a-b", "_a", "a1", strings.Repeat("a", 64), strings.Repeat("a", 65),
		"1m", "1.5s", "-1s", "1s ", "1h0m", "24h", "1w", "P1D", "2026-02-30T00:00:00Z", "2026-03-01T09:00:00+25:00", "2026-03-01t09:00:00z", "23:59",
		"in", "A", "group:a", "user:", "2026-03-01T09:00:00Z", "2026-03-01",
		[]any{},
		map[string]any{},
		[]any{"x"},
		map[string]any{"a": "b"},
		strings.Repeat("x", 257), strings.Repeat("x", 4097),
		"pure", "idempotent", "probeable", "at_most_once", "compensate", "incident", "fail", "continue", "reject", "high",
	}}
	seen := map[string]bool{}
	var visit func(v any)
	visit = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, inner := range v {
				seen[k] = true
				visit(inner)
			}
		case []any:
			for _, inner := range v {
				visit(inner)
			}
		}
	}
	for _, doc := range all {
		var v any
		if json.Unmarshal(doc, &v) == nil {
			visit(v)
		}
	}
	for k := range seen {
		m.keys = append(m.keys, k)
	}
	slices.Sort(m.keys)
	return m
}

// mutate changes one place of a document.
func (m *mutator) mutate(v any) any {
	switch x := v.(type) {
	case map[string]any:
		if len(x) == 0 || m.rnd.IntN(6) == 0 {
			return m.object(x)
		}
		k := m.key(x)
		x[k] = m.mutate(x[k])
		return x
	case []any:
		if len(x) == 0 || m.rnd.IntN(6) == 0 {
			return append(x, m.value())
		}
		i := m.rnd.IntN(len(x))
		x[i] = m.mutate(x[i])
		return x
	}
	return m.value()
}

func (m *mutator) value() any { return copied(m.values[m.rnd.IntN(len(m.values))]) }

// copied is a value that shares nothing with v.
func copied(v any) any {
	switch x := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, inner := range x {
			out[k] = copied(inner)
		}
		return out
	case []any:
		out := make([]any, len(x))
		for i, inner := range x {
			out[i] = copied(inner)
		}
		return out
	}
	return v
}

func (m *mutator) key(x map[string]any) string {
	keys := make([]string, 0, len(x))
	for k := range x {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys[m.rnd.IntN(len(keys))]
}

// object takes a key away, adds one, gives one another name, or replaces all.
func (m *mutator) object(x map[string]any) any {
	if len(x) == 0 {
		x[m.keys[m.rnd.IntN(len(m.keys))]] = m.value()
		return x
	}
	k := m.key(x)
	switch m.rnd.IntN(5) {
	case 0:
		delete(x, k)
	case 1:
		x[m.keys[m.rnd.IntN(len(m.keys))]] = m.value()
	case 2:
		x[m.keys[m.rnd.IntN(len(m.keys))]] = x[k]
		delete(x, k)
	case 3:
		x[m.keys[m.rnd.IntN(len(m.keys))]] = copied(x[k])
	default:
		return m.value()
	}
	return x
}
