package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/cmd/ringi/cli"
	"github.com/ringiflow/ringi/cmd/ringi/client"
)

// The three commands that ringi dev suggests work as they are printed.
func TestTheSuggestionsOfDevWorkAsPrinted(t *testing.T) {
	w := newDesk(t)
	r := w.start("dev")
	delete(w.env, "RINGI_SERVER") // the commands say where the server is
	var commands []string
	for line := range strings.Lines(r.out.String()) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == "ringi" && strings.HasPrefix(line, "  ") {
			commands = append(commands, strings.Join(words[1:], " "))
		}
	}
	if len(commands) != 3 {
		t.Fatalf("dev suggests %q in\n%s", commands, r.out)
	}
	for _, c := range commands {
		if got := w.run(strings.Fields(c)...); got.code != cli.ExitOK || got.out == "" {
			t.Fatalf("ringi %s: %+v", c, got)
		}
	}
	key := strings.Fields(commands[2])[1]
	w.env["RINGI_SERVER"] = r.url
	if list := w.approvals(); len(list) != 1 || list[0].Requester != "carol" || len(list[0].Votes) != 1 || list[0].Votes[0].Person != "alice" {
		t.Fatalf("after alice's vote: %+v", list)
	}
	var v voted
	w.ok(&v, "approve", key, "--as", "bob", "--yes")
	eventually(t, "the end of the order", func() bool {
		var s client.RunState
		w.ok(&s, "show", key)
		return s.Status == ringi.Completed
	})
}

func TestDevKeepsEverythingInItsDirectory(t *testing.T) {
	w := newDesk(t)
	r := w.start("dev", "--json")
	var said struct {
		URL      string   `json:"url"`
		Dir      string   `json:"dir"`
		People   []string `json:"people"`
		Commands []string `json:"commands"`
	}
	if err := json.Unmarshal([]byte(r.out.String()), &said); err != nil || said.URL != r.url || len(said.Commands) != 3 || strings.Join(said.People, " ") != "alice bob carol" {
		t.Fatalf("dev --json says %s: %v", r.out, err)
	}
	entries, err := os.ReadDir(w.dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != ".ringi" {
		t.Errorf("the directory holds %v, %v", entries, err)
	}
	for _, name := range said.People {
		info, err := os.Stat(filepath.Join(w.dir, ".ringi", "keys", name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the key of %s: %v, %v", name, info, err)
		}
	}
	w.exits(cli.ExitUsage, nil, "runs", "--as", "mallory")
	w.exits(cli.ExitUsage, nil, "runs", "--as", "../ringi.db.key")
	w.exits(cli.ExitUsage, nil, "runs", "--as", "alice", "--server", "https://ringi.example.com")
	w.exits(cli.ExitNotAllowed, nil, "terminate", "01a22ccb-9bd7-76c4-83b7-b3a944c13ad1", "--reason", "r", "--as", "alice")
	r.end()
	if again := w.start("dev"); again.url == "" {
		t.Error("it does not start again in its directory")
	}
	w.ok(nil, "runs", "--as", "carol")
}

func TestTheSuggestionsOfDevNameTheProgramAsItWasCalled(t *testing.T) {
	for name, want := range map[string]string{"": "ringi ", "../bin/ringi": "../bin/ringi ", "/a b/ri'ngi": `'/a b/ri'\''ngi' `} {
		w := newDesk(t)
		ctx, stop := context.WithCancel(t.Context())
		out := &safeBuffer{}
		p := w.program("dev", "--listen", "127.0.0.1:0", "--json")
		p.Name, p.Stdout = name, out
		p.Listening = func(string) { stop() }
		p.Run(ctx, rootCommand)
		var said struct{ Commands []string }
		if err := json.Unmarshal([]byte(out.String()), &said); err != nil || len(said.Commands) != 3 {
			t.Fatalf("%q: %s: %v", name, out, err)
		}
		for _, c := range said.Commands {
			if !strings.HasPrefix(c, want) {
				t.Errorf("called as %q it suggests %s", name, c)
			}
		}
	}
}

func TestReplayFindsTheDatabaseOfDev(t *testing.T) {
	w := newDesk(t)
	w.start("dev").end()
	w.ok(nil, "replay", "--all")
	w.exits(cli.ExitNotFound, nil, "replay", "--all", "--database", "sqlite:./ringi.db")
}

func TestDevIsForThisMachineOnly(t *testing.T) {
	w := newDesk(t)
	for _, listen := range []string{"0.0.0.0:0", ":0", "nowhere"} {
		if got := w.run("dev", "--listen", listen); got.code != cli.ExitUsage {
			t.Errorf("dev --listen %s: %+v", listen, got)
		}
	}
	if got := w.run("dev", "--database", "sqlite:x"); got.code != cli.ExitUsage {
		t.Errorf("dev --database: %+v", got)
	}
}
