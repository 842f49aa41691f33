package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/ringiflow/ringi/api"
)

// Document reads a JSON value that an argument gives: @FILE, - for standard
// input, or the JSON itself.
func (p *Program) Document(flag, value string) (json.RawMessage, error) {
	var raw []byte
	var err error
	from := "--" + flag
	switch {
	case value == "":
		return nil, nil
	case value == "-":
		from = "standard input"
		raw, err = io.ReadAll(io.LimitReader(p.Stdin, api.MaxBody+1))
	case strings.HasPrefix(value, "@"):
		from = value[1:]
		raw, err = os.ReadFile(p.Path(value[1:]))
	default:
		raw = []byte(value)
	}
	if err != nil {
		return nil, Usage("--"+flag+" takes @FILE, - for standard input, or JSON", "%v", err)
	}
	raw = bytes.TrimSpace(raw)
	if !json.Valid(raw) {
		return nil, Usage("--"+flag+" takes @FILE, - for standard input, or JSON", "%s: not JSON: %s", from, whyNotJSON(raw))
	}
	return raw, nil
}

func whyNotJSON(raw []byte) string {
	if len(raw) == 0 {
		return "it is empty"
	}
	var v json.RawMessage
	err := json.Unmarshal(raw, &v)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		before := raw[:min(int(syntax.Offset), len(raw))]
		line := 1 + bytes.Count(before, []byte("\n"))
		column := len(before) - bytes.LastIndexByte(before, '\n') - 1
		return fmt.Sprintf("line %d, column %d: %v", line, max(column, 1), err)
	}
	return fmt.Sprint(err)
}
