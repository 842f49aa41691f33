package child

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// patience is how long a test waits for what has to happen.
const patience = 2 * time.Minute

// shell is a process that runs a line of shell.
func shell(t *testing.T, life context.Context, line string) (*Process, <-chan error) {
	t.Helper()
	dir, died := t.TempDir(), make(chan error, 1)
	p := &Process{
		Life: life, Name: "shell", Binary: "/bin/sh", Args: []string{"-c", line}, Dir: dir,
		Log: filepath.Join(dir, "shell.log"), Announces: true, Died: func(err error) { died <- err },
	}
	return p, died
}

// W31: a process is killed and comes back as another one.
func TestAProcessIsKilledAndStartedAgain(t *testing.T) {
	p, died := shell(t, t.Context(), "echo here; exec sleep 600")
	var pids []int
	for range 3 {
		line, err := p.Start(t.Context())
		if err != nil || line != "here" {
			t.Fatalf("announced %q, %v", line, err)
		}
		pids = append(pids, p.PID())
		if !p.Kill() || p.Running() {
			t.Fatal("the process was not killed")
		}
	}
	if p.Kill() {
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

// W31: its starter hears of a process that ends by itself, with what it said last.
func TestAProcessThatEndsByItselfIsTold(t *testing.T) {
	p, died := shell(t, t.Context(), "echo here; echo the disk is on fire >&2; exit 3")
	if _, err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-died:
		if p.ExitCode() != 3 {
			t.Errorf("it exits with %d", p.ExitCode())
		}
		if !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "the disk is on fire") {
			t.Errorf("told %q", err)
		}
	case <-time.After(patience):
		t.Error("nobody was told")
	}
	if err := p.Stop(); err != nil {
		t.Errorf("stopping what is gone: %v", err)
	}
}

// W31: a process that ends before it can be called is an error, not a wait.
func TestAProcessThatDoesNotAnnounceItselfFails(t *testing.T) {
	p, _ := shell(t, t.Context(), "echo no port is free >&2; exit 1")
	p.Died = nil
	if _, err := p.Start(t.Context()); err == nil {
		t.Error("it started")
	}
}

// W31: the end of its starter is the end of a process.
func TestAProcessEndsWithItsLife(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p, died := shell(t, ctx, "echo here; exec sleep 600")
	if _, err := p.Start(t.Context()); err != nil {
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

// W31: settings for another server do not reach a process.
func TestTheSettingsOfAnotherServerStayOutside(t *testing.T) {
	got := Environment([]string{"HOME=/h", "RINGI_DATABASE=sqlite:x", "PATH=/bin", "RINGI_KEYS=k"})
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
	tail := LogTail(path)
	if len(tail) > tailBytes || !strings.HasPrefix(tail, "a line of text\n") {
		t.Errorf("%d bytes that begin with %.20q", len(tail), tail)
	}
	if got := LogTail(filepath.Join(t.TempDir(), "none")); !strings.Contains(got, "none") {
		t.Errorf("a log that is missing: %q", got)
	}
}

// A process that is stopped does nothing, goes on afterwards, and can be killed.
func TestAProcessIsStoppedAndContinued(t *testing.T) {
	p, _ := shell(t, t.Context(), "echo here; exec sleep 600")
	if _, err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := p.Freeze(); err != nil {
			t.Fatal(err)
		}
		if err := p.Thaw(); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Freeze(); err != nil {
		t.Fatal(err)
	}
	if !p.Kill() {
		t.Error("a frozen process was not killed")
	}
	if p.Freeze() == nil || p.Thaw() == nil {
		t.Error("what is gone was stopped and continued")
	}
}
