package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/ringiflow/ringi/cmd/ringi/cli"
)

// printed is what --print-config --json prints.
type printed struct {
	Settings []struct {
		Name, Value, Origin, Reason string
	} `json:"settings"`
	Defaults []cli.FixedDefault `json:"defaults"`
}

func (p printed) setting(name string) (value, origin string) {
	for _, s := range p.Settings {
		if s.Name == name {
			return s.Value, s.Origin
		}
	}
	return "", ""
}

func TestASettingIsItsFlagElseItsVariableElseTheFileElseTheDefault(t *testing.T) {
	w := newDesk(t)
	w.write("ringi.yaml", "# of the shop\nlisten: 127.0.0.1:1\n\npublic_url: http://file\noutbox: \"off\"\n")
	w.env["RINGI_LISTEN"] = "127.0.0.1:2"
	w.env["RINGI_CONFIG"] = "ringi.yaml"
	var got printed
	w.ok(&got, "serve", "--listen", "127.0.0.1:3", "--print-config")
	for _, c := range [][3]string{
		{"listen", "127.0.0.1:3", "flag --listen"},
		{"public-url", "http://file", "ringi.yaml:4:13"},
		{"outbox", "off", "ringi.yaml:5:9"},
		{"database", "sqlite:./ringi.db", "default"},
		{"server", "http://127.0.0.1:7070", "default"},
		{"output", "json", "flag --json"},
	} {
		if value, origin := got.setting(c[0]); value != c[1] || origin != c[2] {
			t.Errorf("%s is %q from %q, want %q from %q", c[0], value, origin, c[1], c[2])
		}
	}
	w.ok(&got, "serve", "--print-config")
	if value, origin := got.setting("listen"); value != "127.0.0.1:2" || origin != "RINGI_LISTEN" {
		t.Errorf("without its flag listen is %q from %q", value, origin)
	}
	delete(w.env, "RINGI_LISTEN")
	w.ok(&got, "--print-config", "--config", "ringi.yaml")
	if value, origin := got.setting("listen"); value != "127.0.0.1:1" || origin != "ringi.yaml:2:9" {
		t.Errorf("without its variable listen is %q from %q", value, origin)
	}
}

func TestEveryDefaultHasItsReason(t *testing.T) {
	w := newDesk(t)
	var got printed
	w.ok(&got, "--print-config")
	for _, d := range got.Defaults {
		if d.Name == "" || d.Value == "" || d.Reason == "" {
			t.Errorf("%+v is not whole", d)
		}
	}
	for name, want := range map[string]string{
		"retry.attempts": "5", "lease.handover": "5s", "poll.longest": "20s", "batch.writes": "256", "batch.bytes": "4 MiB",
		"payload": "256 KiB", "approval.expires": "72h, then reject", "drain": "30s", "retry.backoff": "1s × 2 up to 1m",
	} {
		i := slices.IndexFunc(got.Defaults, func(d cli.FixedDefault) bool { return d.Name == name })
		if i < 0 || got.Defaults[i].Value != want {
			t.Errorf("%s is not %s in %+v", name, want, got.Defaults)
		}
	}
	if table := w.run("--print-config").out; !strings.Contains(table, "sqlite:./ringi.db") || !strings.Contains(table, "lease.handover") {
		t.Errorf("the table is %s", table)
	}
}

func TestAWrongFileOfSettingsNamesThePlace(t *testing.T) {
	for text, want := range map[string]string{
		"listn: 127.0.0.1:1\n":           `c.yaml:1:1: there is no setting "listn"`,
		"outbox: \"off\"\nlog-format: x": `c.yaml:2:1: there is no setting "log-format"`,
		"listen: [a]\n":                  "c.yaml:1:9: the setting listen is one value",
		"listen: a\nlisten: b\n":         "c.yaml:2:1: the setting listen stands at c.yaml:1:9 already",
		"- listen\n":                     "c.yaml:1:1: settings are a mapping",
		"listen: a: b\n":                 "c.yaml: ",
		"behind_proxy: perhaps\n":        "c.yaml:1:15: behind-proxy is \"perhaps\"",
		"log_format: xml\n":              "c.yaml:1:13: \"xml\" is not one of text, json",
		"database: postgres://db/%zz\n":  "c.yaml:1:11: the database's URL cannot be read",
		"outbox: kafka\n":                "c.yaml:1:9: the destination \"kafka\"",
		"listen: a\n---\nlisten: b\n":    "c.yaml: a file of settings is one document",
	} {
		w := newDesk(t)
		w.write("c.yaml", text)
		got := w.run("serve", "--config", "c.yaml")
		if got.code != cli.ExitUsage || !strings.Contains(got.err, want) {
			t.Errorf("%q exits with %d and says %q, without %q", text, got.code, got.err, want)
		}
	}
	w := newDesk(t)
	w.write("c.yaml", "# nothing yet\n")
	if got := w.run("version", "--config", "c.yaml"); got.code != cli.ExitOK {
		t.Errorf("an empty file is %+v", got)
	}
}

func TestAnUnknownSettingIsAnsweredWithTheNearest(t *testing.T) {
	w := newDesk(t)
	w.write("c.yaml", "pubic_url: http://x\n")
	if got := w.run("serve", "--config", "c.yaml"); !strings.Contains(got.err, "write public_url") {
		t.Errorf("says %q", got.err)
	}
}

func TestTheOutputSettingHoldsForAllCommands(t *testing.T) {
	w := newDesk(t)
	w.env["RINGI_OUTPUT"] = "json"
	if got := w.run("version"); !strings.HasPrefix(got.out, "{") {
		t.Errorf("prints %q", got.out)
	}
}
