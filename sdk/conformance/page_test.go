package conformance_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ringiflow/ringi"
)

// The worker at the end of docs/worker-protocol.md does what the page says.
func TestTheWorkerOfTheProtocolPageWorks(t *testing.T) {
	page, err := os.ReadFile("../../docs/worker-protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "```python\n")
	program, _, ended := strings.Cut(rest, "```")
	if !found || !ended {
		t.Fatal("the page holds no worker in Python")
	}
	file := filepath.Join(t.TempDir(), "worker.py")
	if err := os.WriteFile(file, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, language{name: "page"}, "page")
	w.queue = "default" // which the page serves
	w.proxy.loses("complete", 1)
	w.workerOf(language{name: "page", worker: []string{needed(t, "python3"), file}}, "RINGI="+w.proxy.url, "KEY="+theKey)
	view := w.becomes(w.starts("  - { id: a, activity: greet.hello, with: { name: 'ringi' }, effect: at_most_once, irreversible: true }", "null"), ringi.Completed)
	if a := w.step(view, "a"); string(a.Output) != `{"text":"hello ringi"}` || a.Attempts != 1 {
		t.Errorf("%s", told(view))
	}
}
