package main

import (
	"os"
	"strings"
	"testing"

	"github.com/ringiflow/ringi/feed"
)

// The files of feeds that the guide and the help show are files of feeds.
func TestTheFeedsOfTheGuideAreRight(t *testing.T) {
	guide, err := os.ReadFile("../../docs/brokers.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(guide), "```yaml\n")
	file, _, ended := strings.Cut(rest, "```")
	if !found || !ended {
		t.Fatal("there is no file of feeds in docs/brokers.md")
	}
	help := newDesk(t).run("help", "feed").out
	_, rest, found = strings.Cut(help, "\n  feeds:\n")
	inHelp, _, ended := strings.Cut("  feeds:\n"+rest, "\n\n")
	if !found || !ended {
		t.Fatalf("there is no file of feeds in the help: %s", help)
	}
	for name, text := range map[string]string{"guide": file, "help": inHelp} {
		if feeds, err := feed.Parse(name, []byte(text)); err != nil || len(feeds) < 2 {
			t.Errorf("%d feeds, %v", len(feeds), err)
		}
	}
}
