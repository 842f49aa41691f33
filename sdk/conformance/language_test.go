package conformance_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/ringiflow/ringi/api"
)

// A language is a way to write a worker: a row of the scenarios.
type language struct {
	name   string
	worker []string // the command of its worker; see doc.go
	client []string // the command of its client, where it has one of its own
	env    []string // besides what doc.go names
	told   string   // what its functions learn when they are told to end; "" is the reason
}

// languages are all rows. tools/need-sdk.sh installs what they need.
func languages(t *testing.T) []language {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := compiled(); err != nil {
		t.Fatal(err)
	}
	python, typescript := []string{needed(t, "python3"), "workers/worker.py"}, []string{needed(t, "node"), "workers/worker.mjs"}
	source, err := filepath.Abs("../python/src")
	if err != nil {
		t.Fatal(err)
	}
	return []language{
		{name: "go", worker: []string{self}, env: []string{asWorker + "=go"}},
		{
			name: "python", worker: python, client: append(python, "client"),
			env: []string{"PYTHONPATH=" + source, "PYTHONDONTWRITEBYTECODE=1"},
		},
		{name: "typescript", worker: typescript, client: append(typescript, "client")},
		{name: "command", worker: []string{self}, told: "SIGTERM", env: []string{asWorker + "=command"}},
	}
}

// needed is the path of a program that must be there.
func needed(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%v: run tools/need-sdk.sh, which installs what the libraries of other languages need", err)
	}
	return path
}

// A process is a worker that runs.
type process struct {
	*exec.Cmd
	t    *testing.T
	name string
	out  *output
	done chan struct{} // closed when it has ended
}

// output may be written and read at once.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// runs starts a command of a language. It is killed at the end of the test, and
// what it said is shown if the test has failed.
func (w *world) runs(l language, command []string, env ...string) *process {
	w.Helper()
	p := &process{Cmd: exec.CommandContext(context.WithoutCancel(w.Context()), command[0], command[1:]...), t: w.T, name: l.name, out: &output{}, done: make(chan struct{})}
	p.Env = append(os.Environ(), "RINGI_SERVER="+w.proxy.url, "RINGI_KEY_FILE="+w.keyFile, "RINGI_QUEUE="+w.queue, "LEDGER="+w.ledger.url)
	p.Env = append(append(p.Env, l.env...), env...)
	p.Stderr = p.out
	return p
}

// worker starts a worker of the row.
func (w *world) worker(env ...string) *process { return w.workerOf(w.language, env...) }

func (w *world) workerOf(l language, env ...string) *process {
	w.Helper()
	p := w.runs(l, l.worker, env...)
	p.Stdout = p.out
	if err := p.Start(); err != nil {
		w.Fatal(err)
	}
	go func() {
		_ = p.Wait() // ProcessState says how it ended
		close(p.done)
	}()
	w.Cleanup(func() {
		p.kill()
		if w.Failed() {
			w.Logf("the worker in %s said:\n%s", l.name, p.out)
		}
	})
	return p
}

// kill ends the process like a lost machine does.
func (p *process) kill() {
	_ = p.Process.Kill() // it may have ended by itself
	<-p.done
}

// stop asks the process to end.
func (p *process) stop() {
	p.t.Helper()
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
}

// ended reports whether the process has ended.
func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// client runs the client of the row with a text on its standard input and
// returns its lines.
func (w *world) client(input string) []string {
	w.Helper()
	p := w.runs(w.language, w.language.client)
	p.Stdin = strings.NewReader(input)
	said, err := p.Output()
	if err != nil {
		w.Fatalf("the client in %s: %v\n%s%s", w.language.name, err, said, p.out)
	}
	return strings.Split(strings.TrimSpace(string(said)), "\n")
}

// identity is who every request comes from: one key with every scope.
func identity() api.Identity {
	return api.Identity{Actor: machine(), Tenant: 1, Scopes: []string{api.ScopeAdmin}}
}

// keyFile writes the key of identity.
func writeKey(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte(theKey+"\n"), 0o600); err != nil {
		t.Fatal(fmt.Errorf("the key file: %w", err))
	}
	return path
}
