package demo

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ringiflow/ringi"
)

// patience is how long a test waits for what has to happen.
const patience = 2 * time.Minute

// shell is a process that runs a line of shell.
func shell(t *testing.T, life context.Context, line string) (*process, <-chan error) {
	t.Helper()
	dir, died := t.TempDir(), make(chan error, 1)
	p := &process{
		life: life, name: "shell", binary: "/bin/sh", args: []string{"-c", line}, dir: dir,
		log: filepath.Join(dir, "shell.log"), announces: true, died: func(err error) { died <- err },
	}
	return p, died
}

// W31: a process is killed and comes back as another one.
func TestAProcessIsKilledAndStartedAgain(t *testing.T) {
	p, died := shell(t, t.Context(), "echo here; exec sleep 600")
	var pids []int
	for range 3 {
		line, err := p.start(t.Context())
		if err != nil || line != "here" {
			t.Fatalf("announced %q, %v", line, err)
		}
		pids = append(pids, p.pid())
		if !p.kill() || p.running() {
			t.Fatal("the process was not killed")
		}
	}
	if p.kill() {
		t.Error("a process that is gone was killed")
	}
	slices.Sort(pids)
	if len(slices.Compact(pids)) != 3 {
		t.Errorf("started again under the same number: %v", pids)
	}
	select {
	case err := <-died:
		t.Errorf("a kill was told as a death: %v", err)
	default:
	}
}

// W31: the demo hears of a process that ends by itself, with what it said last.
func TestAProcessThatEndsByItselfIsTold(t *testing.T) {
	p, died := shell(t, t.Context(), "echo here; echo the disk is on fire >&2; exit 3")
	if _, err := p.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-died:
		if !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "the disk is on fire") {
			t.Errorf("told %q", err)
		}
	case <-time.After(patience):
		t.Error("nobody was told")
	}
	if err := p.stop(); err != nil {
		t.Errorf("stopping what is gone: %v", err)
	}
}

// W31: a process that ends before it can be called is an error, not a wait.
func TestAProcessThatDoesNotAnnounceItselfFails(t *testing.T) {
	p, _ := shell(t, t.Context(), "echo no port is free >&2; exit 1")
	p.died = nil
	if _, err := p.start(t.Context()); err == nil {
		t.Error("it started")
	}
}

// W31: the end of the demo is the end of its processes.
func TestAProcessEndsWithItsLife(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p, died := shell(t, ctx, "echo here; exec sleep 600")
	if _, err := p.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	cancel()
	select {
	case <-p.now.gone:
	case <-time.After(patience):
		t.Fatal("it is still there")
	}
	select {
	case err := <-died:
		t.Errorf("told as a death: %v", err)
	default:
	}
}

// W31: settings for another server do not reach the processes of the demo.
func TestTheSettingsOfAnotherServerStayOutside(t *testing.T) {
	got := environment([]string{"HOME=/h", "RINGI_DATABASE=sqlite:x", "PATH=/bin", "RINGI_KEYS=k"})
	if want := []string{"HOME=/h", "PATH=/bin"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// W31: the tail of a log begins with a whole line.
func TestTheTailOfALogIsWholeLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte(strings.Repeat("a line of text\n", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	tail := logTail(path)
	if len(tail) > tailBytes || !strings.HasPrefix(tail, "a line of text\n") {
		t.Errorf("%d bytes that begin with %.20q", len(tail), tail)
	}
	if got := logTail(filepath.Join(t.TempDir(), "none")); !strings.Contains(got, "none") {
		t.Errorf("a log that is missing: %q", got)
	}
}

// W31: what a demo has to prove, and what is said when it did not.
func TestADemoIsCleanOnlyIfItProvedEverything(t *testing.T) {
	good := Result{Orders: 25, AsExpected: 25, ServerKills: 5, WorkerKills: 5, TasksInFlightAtKills: 1, Redelivered: 1}
	if f := good.Failings(); len(f) != 0 {
		t.Errorf("a good demo fails: %q", f)
	}
	one := 1
	for name, spoil := range map[string]func(*Result){
		"an order that is not as expected": func(r *Result) { r.AsExpected-- },
		"a double effect":                  func(r *Result) { r.DoubleEffects++ },
		"a lost order":                     func(r *Result) { r.Lost++ },
		"four kills of the server":         func(r *Result) { r.ServerKills-- },
		"four kills of the worker":         func(r *Result) { r.WorkerKills-- },
		"kills that hit nothing":           func(r *Result) { r.TasksInFlightAtKills = 0 },
		"nothing delivered again":          func(r *Result) { r.Redelivered = 0 },
		"a row that replay finds wrong":    func(r *Result) { r.Mismatches = &one },
	} {
		r := good
		spoil(&r)
		if f := r.Failings(); len(f) != 1 {
			t.Errorf("%s: %q", name, f)
		}
	}
}

// W31: the demo's requests are made again while the server is away, and only
// then.
func TestRequestsInsistOnlyWhileTheServerIsAway(t *testing.T) {
	tries := 0
	got, err := insist(t.Context(), func() (int, error) {
		if tries++; tries < 3 {
			return 0, &ringi.Error{Code: ringi.CodeUnavailable, Message: "away"}
		}
		return tries, nil
	})
	if got != 3 || err != nil {
		t.Errorf("got %d, %v", got, err)
	}
	no := errors.New("no")
	if _, err := insist(t.Context(), func() (int, error) { return 0, &ringi.Error{Code: ringi.CodeForbidden, Err: no} }); !errors.Is(err, no) {
		t.Errorf("a refusal became %v", err)
	}
}
