package cli

import (
	"bytes"
	"strings"
	"testing"
)

func TestColoursAreForTerminalsWithoutNO_COLOR(t *testing.T) {
	for _, c := range []struct {
		terminal bool
		env      map[string]string
		want     bool
	}{
		{true, nil, true},
		{false, nil, false},
		{true, map[string]string{"NO_COLOR": "1"}, false},
		{true, map[string]string{"TERM": "dumb"}, false},
	} {
		p := &Program{Terminal: Terminal{Out: c.terminal}, Env: func(name string) string { return c.env[name] }}
		var out bytes.Buffer
		tab := Table{}
		tab.Row("run", "completed")
		if err := tab.Write(&out, p.Colours()); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(out.String(), "\x1b["); got != c.want {
			t.Errorf("terminal %v, env %v: coloured %v", c.terminal, c.env, got)
		}
	}
}

// What people call things cannot move the cursor or recolour a terminal.
func TestTablesHoldNoControlCharacters(t *testing.T) {
	var out bytes.Buffer
	tab := Table{}
	tab.Row("a\x1b[31mb\nc\u202ed")
	if err := tab.Write(&out, false); err != nil {
		t.Fatal(err)
	}
	if want := "a [31mb c d\n"; out.String() != want {
		t.Errorf("prints %q, want %q", out.String(), want)
	}
}
