package workflow

import "strings"

// A trap is a value that must be quoted and is not: YAML ends it too early,
// takes it for something else, or finds an error somewhere near. The YAML
// parser's own words about it would help nobody.
type trap struct {
	at, end int // the value in the text
	text    string
	rule    string
	message string
	silent  bool // YAML reads something else without complaining
}

// quoteSuggestion begins what is said about a value that must be quoted.
const quoteSuggestion = "quote the value: "

func (t trap) suggestion() string { return quoteSuggestion + yamlQuote(t.text) }

// maxTraps bounds the traps that are looked for in one file.
const maxTraps = 100

// trapWork bounds, in bytes, how much text is read twice while looking for the
// end of expressions.
const trapWork = 4 << 20

// findTraps looks through the text with a coarse eye for YAML: it knows keys,
// comments, quotes, block scalars and brackets, and nothing else. It also says
// where a quote or bracket begins that is never closed, or -1.
func findTraps(text string) (traps []trap, unclosed int) {
	s := &trapScan{text: text, budget: trapWork, unclosed: -1}
	for s.at < len(text) && len(s.traps) < maxTraps {
		s.line()
	}
	return s.traps, s.unclosed
}

type trapScan struct {
	text     string
	at       int
	column   int // of the value's parent in its line, from 0
	traps    []trap
	budget   int
	unclosed int
}

// line reads one line of block style from its start.
func (s *trapScan) line() {
	start := s.at
	s.blanks()
	item := false
	for s.has("- ") {
		item, s.column = true, s.at-start
		s.at++
		s.blanks()
	}
	if !item {
		s.column = s.at - start
	}
	if s.atEnd() || s.has("---") || s.has("...") {
		s.skipLine()
		return
	}
	if key := s.keyEnd(); key >= 0 {
		if item {
			s.column = s.at - start
		}
		s.at = key
		s.blanks()
		s.value(false)
		return
	}
	s.value(item)
}

// blanks passes blanks of one line.
func (s *trapScan) blanks() {
	for s.at < len(s.text) && (s.text[s.at] == ' ' || s.text[s.at] == '\t') {
		s.at++
	}
}

func (s *trapScan) has(prefix string) bool { return strings.HasPrefix(s.text[s.at:], prefix) }

// atEnd reports whether the rest of the line is empty or a comment.
func (s *trapScan) atEnd() bool {
	return s.at >= len(s.text) || isBreak(s.text[s.at]) || s.text[s.at] == '#'
}

func (s *trapScan) skipLine() { s.at = s.lineEnd(s.at) + 1 }

// lineEnd is the offset of the end of the line that i stands in.
func (s *trapScan) lineEnd(i int) int {
	if i >= len(s.text) {
		return len(s.text)
	}
	if n := strings.IndexByte(s.text[i:], '\n'); n >= 0 {
		return i + n
	}
	return len(s.text)
}

// keyEnd returns the offset behind the colon of a key that begins here, or -1.
func (s *trapScan) keyEnd() int {
	line := s.text[s.at:s.lineEnd(s.at)]
	if strings.HasPrefix(line, "${") || line[0] == '{' || line[0] == '[' {
		return -1
	}
	from := 0
	if line[0] == '"' || line[0] == '\'' {
		if from = quoteEnd(line, 0); from < 0 {
			return -1
		}
		if rest := strings.TrimLeft(line[from:], " "); !strings.HasPrefix(rest, ":") {
			return -1
		}
	}
	for i := from; i < len(line); i++ {
		if line[i] == ':' && (i+1 == len(line) || isSpace(line[i+1])) {
			return s.at + i + 1
		}
		if line[i] == '#' && i > 0 && isSpace(line[i-1]) {
			return -1
		}
	}
	return -1
}

// value reads the value that begins here, in block style. item says that it
// is an entry of a list, where text with a colon is read as a mapping.
func (s *trapScan) value(item bool) {
	for s.has("&") { // an anchor in front of it
		for s.at < len(s.text) && !isSpace(s.text[s.at]) {
			s.at++
		}
		s.blanks()
	}
	if s.atEnd() {
		s.skipLine()
		return
	}
	switch s.text[s.at] {
	case '|', '>':
		s.blockScalar()
	case '"', '\'':
		s.quotedValue()
	case '[', '{':
		s.flow()
	case '!':
		s.plain(item, ruleTag, "YAML reads a value that begins with ! as a tag")
	case '*':
		s.skipLine()
	default:
		s.plain(item, "", "")
	}
}

// blockScalar passes the lines of a text that begins with | or >.
func (s *trapScan) blockScalar() {
	for s.skipLine(); s.at < len(s.text); s.skipLine() {
		start := s.at
		s.blanks()
		if depth := s.at - start; s.at < len(s.text) && !isBreak(s.text[s.at]) && depth <= s.column {
			s.at = start
			return
		}
	}
}

// quotedValue passes a quoted text. Text behind it on the same line is the
// trap of a condition that begins with a quote, such as: when: "a" == input.x.
func (s *trapScan) quotedValue() {
	start := s.at
	end := quoteEnd(s.text, s.at)
	if end < 0 {
		s.unclosed, s.at = start, len(s.text)
		return
	}
	s.at = end
	s.blanks()
	if !s.atEnd() && s.text[s.at] != ':' {
		line := strings.TrimRight(s.text[start:s.lineEnd(s.at)], " \t\r")
		s.add(trap{
			at: start, end: start + len(line), text: line, rule: ruleSyntax,
			message: "text stands behind the closing quote, which YAML does not allow",
		})
	}
	s.skipLine()
}

// quoteEnd returns the offset behind the quoted text that begins at i, or -1.
func quoteEnd(text string, i int) int {
	quote := text[i]
	for i++; i < len(text); i++ {
		switch {
		case text[i] == '\\' && quote == '"':
			i++
		case text[i] == quote && quote == '\'' && i+1 < len(text) && text[i+1] == '\'':
			i++
		case text[i] == quote:
			return i + 1
		}
	}
	return -1
}

// plain reads an unquoted value up to the end of its line, or of its
// expression where that runs over several lines.
func (s *trapScan) plain(item bool, rule, message string) {
	start, end := s.at, s.lineEnd(s.at)
	line := s.text[start:end]
	open := s.firstOpen(start, end)
	cut := comment(line)
	silent := false
	switch {
	case open < 0: // every expression of the line is closed in it
		if cut > 0 && s.firstOpen(start, start+cut) >= 0 {
			rule, silent = ruleComment, true
			message = "YAML reads a blank followed by # as the start of a comment, also inside an expression"
		} else if cut > 0 {
			line = line[:cut]
		}
	case cut > 0:
		line = line[:cut]
	default:
		if close := s.exprEnd(open); close > 0 {
			end = s.lineEnd(close)
			line = s.text[start:end]
		}
	}
	line = strings.TrimRight(line, " \t\r\n")
	if rule == "" && hasColon(line) {
		rule, silent = ruleColon, item
		message = "a colon followed by a blank ends an unquoted value for YAML, also inside an expression"
		if !strings.Contains(line, "${") && !strings.Contains(line, " ? ") {
			if rule = ruleSyntax; item {
				rule = "" // a mapping in a list
			}
		}
	}
	if rule != "" {
		s.add(trap{at: start, end: start + len(line), text: line, rule: rule, message: message, silent: silent})
	}
	s.at = min(end+1, len(s.text))
}

// comment returns where a comment begins in the line, or -1.
func comment(line string) int {
	for i := 1; i < len(line); i++ {
		if line[i] == '#' && isSpace(line[i-1]) {
			return i
		}
	}
	return -1
}

// hasColon reports whether YAML would end a key in the text.
func hasColon(text string) bool {
	for i := 0; i < len(text); i++ {
		if text[i] == ':' && (i+1 == len(text) || isSpace(text[i+1])) {
			return true
		}
	}
	return false
}

// firstOpen returns the first expression between two offsets that does not end
// before the second, or -1.
func (s *trapScan) firstOpen(from, to int) int {
	for {
		i := strings.Index(s.text[from:to], "${")
		if i < 0 {
			return -1
		}
		end := s.exprEnd(from + i)
		if end < 0 || end > to {
			return from + i
		}
		from = end
	}
}

// exprEnd returns the offset behind the bracket that closes the expression
// that begins at i, or -1.
func (s *trapScan) exprEnd(i int) int {
	depth := 0
	limit := min(len(s.text), i+8<<10)
	for j := i + 1; j < limit && s.budget > 0; j++ {
		s.budget--
		switch s.text[j] {
		case '"', '\'':
			end := quoteEnd(s.text[:limit], j)
			if end < 0 {
				return -1
			}
			s.budget -= end - j
			j = end - 1
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return j + 1
			}
		}
	}
	return -1
}

// flow reads a list or mapping in brackets, over as many lines as it takes.
func (s *trapScan) flow() {
	start, depth, token := s.at, 0, s.at
	for s.at < len(s.text) && len(s.traps) < maxTraps {
		c := s.text[s.at]
		switch {
		case c == '[' || c == '{':
			depth++
			token = s.at + 1
		case c == ']' || c == '}':
			if depth--; depth == 0 {
				s.skipLine()
				return
			}
			token = s.at + 1
		case c == ',' || (c == ':' && s.at+1 < len(s.text) && (isSpace(s.text[s.at+1]) || s.text[s.at-1] == '"')):
			token = s.at + 1
		case c == '#' && isSpace(s.text[s.at-1]):
			s.at = s.lineEnd(s.at) - 1
		case (c == '"' || c == '\'') && strings.TrimSpace(s.text[token:s.at]) == "":
			end := quoteEnd(s.text, s.at)
			if end < 0 {
				s.unclosed, s.at = s.at, len(s.text)
				return
			}
			s.at = end - 1
		case c == '$' && s.has("${"):
			token = s.flowTrap(token)
			continue
		}
		s.at++
	}
	s.unclosed = start
}

// flowTrap records an unquoted expression inside brackets and passes it.
func (s *trapScan) flowTrap(token int) int {
	start := token
	for start < s.at && isSpace(s.text[start]) {
		start++
	}
	end := s.exprEnd(s.at)
	if end < 0 {
		end = s.lineEnd(s.at)
	}
	for end < len(s.text) && !isBreak(s.text[end]) && strings.IndexByte(",]}", s.text[end]) < 0 {
		if strings.HasPrefix(s.text[end:], "${") {
			if next := s.exprEnd(end); next > 0 {
				end = next
				continue
			}
		}
		end++
	}
	text := strings.TrimRight(s.text[start:end], " \t\r\n")
	s.add(trap{
		at: start, end: start + len(text), text: text, rule: ruleBraces,
		message: "an expression inside { } or [ ] must be quoted, since YAML reads its brackets as its own",
	})
	s.at = end
	return end
}

func (s *trapScan) add(t trap) { s.traps = append(s.traps, t) }

// An edit is one character that patch has put into the text.
type edit struct{ at int } // offset in the patched text

// patch quotes the traps, so that the rest of the file can be read.
func patch(text string, traps []trap) (string, []edit) {
	var b strings.Builder
	var edits []edit
	insert := func(c byte) {
		edits = append(edits, edit{b.Len()})
		b.WriteByte(c)
	}
	last := 0
	for _, t := range traps {
		b.WriteString(text[last:t.at])
		quote := byte('"')
		if strings.ContainsAny(t.text, `"\`) {
			quote = '\''
		}
		insert(quote)
		for i := t.at; i < t.end; i++ {
			if quote == '\'' && text[i] == '\'' {
				insert('\'')
			}
			b.WriteByte(text[i])
		}
		insert(quote)
		last = t.end
	}
	b.WriteString(text[last:])
	return b.String(), edits
}
