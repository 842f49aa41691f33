package config_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/ringiflow/ringi/config"
)

func known() []string { return []string{"listen", "log_format"} }

func TestAFileIsReadWithThePlaceOfEachValue(t *testing.T) {
	got, err := config.Parse("c.yaml", []byte("# of the shop\nlisten: 127.0.0.1:1\nlog_format: |\n  a\n  b\n"), known())
	if err != nil || len(got) != 2 || got["listen"] != (config.Value{Text: "127.0.0.1:1", At: "c.yaml:2:9"}) || got["log_format"].Text != "a\nb\n" {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, empty := range []string{"", "# nothing\n", "---\n"} {
		if got, err := config.Parse("c.yaml", []byte(empty), known()); err != nil || len(got) != 0 {
			t.Errorf("%q: %+v, %v", empty, got, err)
		}
	}
}

func TestAnErrorSaysWhereAndWhatToWrite(t *testing.T) {
	for text, want := range map[string]string{
		"listn: a\n":                `c.yaml:1:1: there is no setting "listn" (write listen)`,
		"listen: a\nlisten: b\n":    "c.yaml:2:1: the setting listen stands at c.yaml:1:9 already",
		"listen: [a]\n":             "c.yaml:1:9: the setting listen is one value",
		"listen:\n":                 "c.yaml:1:8: the setting listen is one value",
		"- listen\n":                "c.yaml:1:1: settings are a mapping",
		"listen: a: b\n":            "c.yaml: ",
		"listen: a\n---\nlisten: b": "one document",
	} {
		_, err := config.Parse("c.yaml", []byte(text), known())
		if wrong := (*config.Error)(nil); !errors.As(err, &wrong) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, without %q", text, err, want)
		}
	}
}

func FuzzAFileIsReadOrRefused(f *testing.F) {
	f.Add("listen: a\n")
	f.Add("- &a [*a]\n")
	f.Add("{")
	f.Fuzz(func(t *testing.T, text string) {
		values, err := config.Parse("c.yaml", []byte(text), known())
		if wrong := (*config.Error)(nil); err != nil && !errors.As(err, &wrong) {
			t.Errorf("an error of another kind: %v", err)
		}
		for name, v := range values {
			if v.At == "" {
				t.Errorf("%s has no place", name)
			}
		}
	})
}
