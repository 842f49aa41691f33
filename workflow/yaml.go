package workflow

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// readYAML reads a YAML document. Where the text is not YAML because of one of
// the known traps, the trap is reported, its value is read as if it had been
// quoted, and reading goes on, so that the file's other problems are reported too.
func (p *parser) readYAML(text []byte) *node {
	traps, unclosed := findTraps(string(text))
	root, err := decodeYAML(string(text))
	if err == nil {
		traps = slices.DeleteFunc(traps, func(t trap) bool { return !t.silent })
	}
	for _, t := range traps {
		p.report(p.src.position(t.at), t.rule, t.message, t.suggestion())
	}
	if len(traps) > 0 {
		patched, edits := patch(string(text), traps)
		if root, err = decodeYAML(patched); err != nil {
			return nil // the traps are reported; what else is wrong shows when they are mended
		}
		p.src = newSource(p.src.file, []byte(patched))
		p.edits = edits
	}
	if err != nil {
		p.yamlProblem(err, unclosed)
		return nil
	}
	if root == nil || root.Kind != yaml.DocumentNode || len(root.Content) == 0 {
		return &node{kind: nullNode, position: position{1, 1}}
	}
	r := &yamlReader{p: p, open: map[*yaml.Node]bool{}}
	n := r.value(root.Content[0], 1)
	if p.stopped {
		return nil
	}
	return n
}

// decodeYAML parses one document into nodes.
func decodeYAML(text string) (*yaml.Node, error) {
	dec := yaml.NewDecoder(strings.NewReader(text))
	var root yaml.Node
	if err := dec.Decode(&root); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	var second yaml.Node
	switch err := dec.Decode(&second); {
	case errors.Is(err, io.EOF):
		return &root, nil
	case err != nil:
		return nil, err
	}
	return nil, &secondDocument{line: second.Line}
}

// secondDocument is the error of a file with two documents.
type secondDocument struct{ line int }

func (e *secondDocument) Error() string {
	return fmt.Sprintf("a second document begins in line %d", e.line)
}

// yamlProblem reports a syntax error in words for people who do not know how a
// YAML parser works. unclosed is the offset of a quote or bracket without end, or -1.
func (p *parser) yamlProblem(err error, unclosed int) {
	var e *secondDocument
	if errors.As(err, &e) {
		p.report(position{max(e.line, 1), 1}, ruleDocuments, "a second document begins here; a file holds one definition", "put the second definition into a file of its own")
		return
	}
	line, what := 1, strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, ok := strings.CutPrefix(what, "line "); ok {
		if n, text, ok := strings.Cut(rest, ": "); ok {
			if v, err := strconv.Atoi(n); err == nil {
				line, what = v, text
			}
		}
	}
	line = min(max(line, 1), len(p.src.lines))
	if name, ok := strings.CutPrefix(what, "unknown anchor '"); ok {
		p.unknownAnchor(strings.TrimSuffix(name, "' referenced"))
		return
	}
	if strings.HasPrefix(what, "exceeded max depth") {
		p.report(p.tooDeep(), ruleTooDeep, fmt.Sprintf("lists and mappings stand more than %d deep in each other", MaxNesting),
			"flatten the document; a long branch can be a definition of its own")
		return
	}
	message, suggestion := explainYAML(what)
	at := p.firstText(line)
	if unclosed >= 0 && (strings.Contains(what, "did not find expected ',' or") || strings.Contains(what, "end of stream")) {
		at = p.src.position(unclosed)
	}
	p.report(at, ruleSyntax, message, suggestion)
}

// tooDeep is the place at which the text is nested deeper than it may be, for a
// file that the YAML parser gave up without saying where. Brackets inside quotes
// are rare enough there to be counted.
func (p *parser) tooDeep() position {
	var indents []int // of the blocks that are open
	flow := 0
	comment := false
	for i, inText, column := 0, false, 0; i < len(p.src.text); i++ {
		switch c := p.src.text[i]; {
		case c == '\n':
			inText, comment, column = false, false, 0
			continue
		case comment:
		case c == '#' && (column == 0 || isSpace(p.src.text[i-1])):
			comment = true
		case c == '[' || c == '{':
			flow, inText = flow+1, true
		case c == ']' || c == '}':
			flow = max(flow-1, 0)
		case c != ' ' && c != '\t' && !inText && flow == 0:
			for len(indents) > 0 && indents[len(indents)-1] >= column {
				indents = indents[:len(indents)-1]
			}
			indents = append(indents, column)
			inText = c != '-' && c != '?' // behind these another block may begin in the same line
		}
		if flow+len(indents) > MaxNesting {
			return p.src.position(i)
		}
		column++
	}
	return position{1, 1}
}

// firstText is the first character of a line that is no blank.
func (p *parser) firstText(line int) position {
	text := p.src.line(line)
	return position{line, 1 + len(text) - len(strings.TrimLeft(text, " \t"))}
}

// unknownAnchor reports an alias whose anchor is missing, which is most often
// an expression or a glob that begins with a star.
func (p *parser) unknownAnchor(name string) {
	at := position{1, 1}
	if i := strings.Index(p.src.text, "*"+name); i >= 0 {
		at = p.src.position(i)
	}
	p.report(at, ruleAlias, fmt.Sprintf("*%s refers to an anchor that does not exist", name),
		fmt.Sprintf("quote the value if it is text: \"*%s\"", name))
}

// explainYAML translates a message of the YAML parser.
func explainYAML(what string) (message, suggestion string) {
	switch {
	case strings.Contains(what, "mapping values are not allowed"):
		return "a colon followed by a blank stands inside an unquoted value, or the line is indented too far",
			"quote the whole value, or indent the line like its neighbours"
	case strings.Contains(what, "tab"), strings.Contains(what, "found character that cannot start any token"):
		return "a value begins with a character that YAML does not allow here (a tab, @, ` or %)",
			"indent with blanks, and quote values that begin with such a character"
	case strings.Contains(what, "did not find expected ',' or"):
		return "a list in [ ] or a mapping in { } is not closed, or a comma is missing in it",
			"close the bracket, separate the entries by commas, and quote values that hold brackets or commas"
	case strings.Contains(what, "unexpected end of stream"):
		return "a quoted text is not closed", "put the closing quote at the end of the text"
	case strings.Contains(what, "could not find expected ':'"):
		return "a key without a colon, or a text that runs over several lines, stands near here",
			"write key: value, and quote text of several lines or begin it with |"
	case strings.Contains(what, "did not find expected key"), strings.Contains(what, "did not find expected '-' indicator"),
		strings.Contains(what, "block sequence entries are not allowed"):
		return "the indentation does not fit, or text follows a quoted value",
			"indent the keys of one mapping and the dashes of one list alike, and quote a value as a whole"
	case strings.Contains(what, "escape"):
		return "a text in double quotes holds an escape that YAML does not know", "write \\\\ for a backslash, or use single quotes"
	}
	return "the file is not YAML: " + what, "correct the line, or write the document as JSON"
}

// A yamlReader turns the YAML parser's nodes into ours.
type yamlReader struct {
	p    *parser
	open map[*yaml.Node]bool // aliases being expanded, against one that holds itself
}

func (r *yamlReader) value(y *yaml.Node, depth int) *node {
	n := &node{position: position{y.Line, y.Column}}
	if !r.p.grow(n.position, depth, y.Kind == yaml.SequenceNode || y.Kind == yaml.MappingNode, len(y.Value)) {
		return n
	}
	if y.Style&yaml.TaggedStyle != 0 {
		r.tag(y)
	}
	switch y.Kind {
	case yaml.AliasNode:
		return r.alias(y, depth)
	case yaml.ScalarNode:
		return r.scalar(n, y)
	case yaml.SequenceNode:
		n.kind = listNode
		for _, c := range y.Content {
			n.items = append(n.items, r.value(c, depth+1))
		}
	case yaml.MappingNode:
		n.kind = mapNode
		for i := 0; i+1 < len(y.Content) && !r.p.stopped; i += 2 {
			if k := r.key(y.Content[i]); k != nil {
				n.keys, n.items = append(n.keys, k), append(n.items, r.value(y.Content[i+1], depth+1))
			}
		}
		r.p.uniqueKeys(n)
	}
	return n
}

// alias expands an alias in place: its values count again.
func (r *yamlReader) alias(y *yaml.Node, depth int) *node {
	if r.open[y.Alias] {
		r.p.stopped = true
		r.p.report(position{y.Line, y.Column}, ruleAlias, fmt.Sprintf("*%s stands inside the value that it repeats", y.Value),
			"write the value out")
		return &node{position: position{y.Line, y.Column}}
	}
	r.open[y.Alias] = true
	n := r.value(y.Alias, depth)
	delete(r.open, y.Alias)
	return n
}

// tag reports a tag. Most are a condition that begins with a negation.
func (r *yamlReader) tag(y *yaml.Node) {
	suggestion := "quote the value: " + yamlQuote(tagged(y))
	if strings.HasPrefix(y.Tag, "!!") || y.Kind != yaml.ScalarNode {
		suggestion = "remove the tag; quote a value to make it text"
	}
	r.p.report(position{y.Line, y.Column}, ruleTag, fmt.Sprintf("YAML reads %s as a tag, not as part of the value", quoted(y.Tag)), suggestion)
}

// tagged is a tagged scalar as its author meant it.
func tagged(y *yaml.Node) string {
	if strings.HasPrefix(y.Tag, "!!") {
		return y.Value
	}
	return strings.TrimSpace(y.Tag + " " + y.Value)
}

// key reads a mapping's key, which must be text.
func (r *yamlReader) key(y *yaml.Node) *node {
	at := position{y.Line, y.Column}
	r.p.bytes += len(y.Value)
	if y.Kind == yaml.AliasNode && y.Alias.Kind == yaml.ScalarNode {
		y = y.Alias
	}
	switch {
	case y.Kind != yaml.ScalarNode:
		r.p.report(at, ruleKey, "a list or a mapping stands where a key is expected", "write a word followed by a colon; quote a value that begins with [ or {")
		return nil
	case y.Tag == "!!merge":
		r.p.report(at, ruleMerge, "merge keys (<<) are not part of the language", "write the keys out, or use the file's defaults")
		return nil
	case y.Style&^yaml.FlowStyle == 0 && plainNull(y.Value):
		r.p.report(at, ruleKey, "a key is missing in front of the colon", "write a word followed by a colon")
		return nil
	}
	return &node{kind: textNode, text: y.Value, style: styleOf(y), position: at}
}

func styleOf(y *yaml.Node) scalarStyle {
	switch {
	case y.Style&yaml.DoubleQuotedStyle != 0:
		return doubleStyle
	case y.Style&yaml.SingleQuotedStyle != 0:
		return singleStyle
	case y.Style&yaml.LiteralStyle != 0:
		return literalStyle
	case y.Style&yaml.FoldedStyle != 0:
		return foldedStyle
	}
	return plainStyle
}

// scalar decides the type of a scalar by the rules of YAML 1.2: quoted is
// text, and of plain ones only null, true, false and JSON's numbers are not.
func (r *yamlReader) scalar(n *node, y *yaml.Node) *node {
	n.kind, n.text, n.style = textNode, y.Value, styleOf(y)
	if y.Style&yaml.TaggedStyle != 0 { // reported; read on as if it had been quoted
		n.text = tagged(y)
		return n
	}
	if n.style != plainStyle {
		return n
	}
	switch {
	case plainNull(n.text):
		n.kind = nullNode
	case n.text == "true" || n.text == "True" || n.text == "TRUE":
		n.kind, n.text = boolNode, "true"
	case n.text == "false" || n.text == "False" || n.text == "FALSE":
		n.kind, n.text = boolNode, "false"
	case isJSONNumber(n.text):
		n.kind = numberNode
		return r.p.number(n)
	case likeNumber(n.text):
		r.p.report(n.position, ruleNumber, fmt.Sprintf("%s is read as a number by some YAML programs and as text by others", quoted(n.text)),
			"write a decimal number as JSON does, or quote it to make it text: "+yamlQuote(n.text))
	}
	return n
}

func plainNull(text string) bool {
	return text == "" || text == "~" || text == "null" || text == "Null" || text == "NULL"
}

// isJSONNumber reports whether text is a number as JSON writes it.
func isJSONNumber(text string) bool {
	return (text[0] == '-' || (text[0] >= '0' && text[0] <= '9')) && json.Valid([]byte(text))
}

// likeNumber reports whether a plain scalar is a number in YAML 1.1 or 1.2 but
// not in JSON, so that programs disagree about it.
func likeNumber(text string) bool {
	s := strings.ToLower(strings.TrimLeft(text, "+-"))
	switch {
	case s == ".inf" || s == ".nan":
		return true
	case strings.HasPrefix(s, "0x"):
		return len(s) > 2 && strings.Trim(s[2:], "0123456789abcdef_") == ""
	case strings.HasPrefix(s, "0o"), strings.HasPrefix(s, "0b"):
		return len(s) > 2 && strings.Trim(s[2:], "01234567_") == ""
	case strings.Trim(s, "0123456789_.") == "" && strings.Count(s, ".") < 2:
		return strings.ContainsAny(s, "0123456789")
	}
	return false
}

// yamlQuote writes text as a quoted scalar on one line.
func yamlQuote(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if strings.ContainsAny(text, `"\`) {
		return "'" + strings.ReplaceAll(text, "'", "''") + "'"
	}
	return `"` + text + `"`
}
