package workflow

import (
	"encoding/json"
	"slices"
	"strings"
)

// Document returns what a file holds as canonical JSON, as Parse reads it, and
// the file with quotes around the values that YAML would misread without them,
// also when it is no definition. It returns problems, and nothing else, for a
// file that cannot be read, or can be read in more than one way.
func Document(file string, src []byte) (doc json.RawMessage, mended []byte, problems []Problem) {
	p := newParser(file, src, nil)
	root := p.readDocument(src)
	problems = slices.DeleteFunc(sortProblems(p.problems), func(problem Problem) bool {
		switch problem.ID {
		case ruleColon, ruleBraces, ruleComment, ruleTag, ruleNumber:
			return true
		}
		return strings.HasPrefix(problem.Suggestion, quoteSuggestion)
	})
	if root == nil || len(problems) > 0 {
		return nil, nil, problems
	}
	doc, err := Canonical(root.json())
	if err != nil {
		p.problems = nil
		p.report(root.position, ruleSyntax, "the document has no canonical form: "+err.Error(), "correct the document")
		return nil, nil, p.problems
	}
	traps, _ := findTraps(string(src))
	if _, err := decodeYAML(string(src)); err == nil {
		traps = slices.DeleteFunc(traps, func(t trap) bool { return !t.silent && t.rule != ruleTag })
	}
	text, _ := patch(string(src), traps)
	return doc, []byte(text), nil
}
