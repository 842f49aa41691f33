package main

import (
	"bytes"
	"database/sql"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/cmd/ringi/cli"
	"github.com/ringiflow/ringi/cmd/ringi/trial"
)

// process is the program as a process of its own: the test binary again.
type process struct {
	*exec.Cmd
	out, err *safeBuffer
}

func (w *desk) process(args ...string) process {
	w.t.Helper()
	self, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	return w.processOf(self, args...)
}

// processOf is a program in a file as a process of its own.
func (w *desk) processOf(binary string, args ...string) process {
	w.t.Helper()
	p := process{exec.CommandContext(w.t.Context(), binary, args...), &safeBuffer{}, &safeBuffer{}}
	p.Dir, p.Stdout, p.Stderr = w.dir, p.out, p.err
	p.Env = append(os.Environ(), asProgram+"=1")
	for name, value := range w.env {
		p.Env = append(p.Env, name+"="+value)
	}
	if err := p.Start(); err != nil {
		w.t.Fatal(err)
	}
	return p
}

// server is a server as a process of its own, which answers already.
func (w *desk) server(args ...string) process {
	w.t.Helper()
	return w.listening(w.process(append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...))
}

// listening waits until a server answers, and makes it the one that the desk's
// commands speak to.
func (w *desk) listening(p process) process {
	w.t.Helper()
	eventually(w.t, "the server", func() bool {
		_, rest, found := strings.Cut(p.err.String(), "msg=listening url=")
		if found && strings.Contains(rest, " ") {
			w.env["RINGI_SERVER"], _, _ = strings.Cut(rest, " ")
		}
		return found && strings.Contains(rest, " ")
	})
	return p
}

// exit waits for the end and returns the exit code.
func (p process) exit() int {
	_ = p.Wait() // the code says it all
	return p.ProcessState.ExitCode()
}

func TestASignalDrainsAServerAndExitsWith0(t *testing.T) {
	for _, signal := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		w := newDesk(t)
		p := w.server()
		w.ok(nil, "runs")
		if err := p.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if code := p.exit(); code != cli.ExitOK || !strings.Contains(p.err.String(), "draining") {
			t.Errorf("after %v it exits with %d: %s", signal, code, p.err)
		}
	}
}

// W31: what was answered is there after kill -9, and the database is free again.
func TestRunsSurviveKill9(t *testing.T) {
	w := newDesk(t)
	p := w.server()
	if got := w.runWith(paidDefinition, "publish", "-"); got.code != cli.ExitOK {
		t.Fatalf("publish: %+v", got)
	}
	var runs []ringi.RunID
	for i := range 20 {
		runs = append(runs, w.begin("paid", "-i", fmt.Sprintf("order=A-%d", i)).Run)
	}
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.exit()
	if got := w.run("runs"); got.code != cli.ExitUnreachable {
		t.Errorf("without a server: %+v", got)
	}
	w.server()
	for i, run := range runs {
		if s := w.show(run); s.Status != ringi.Waiting {
			t.Errorf("run %d is %+v", i, s)
		}
	}
	w.ok(nil, "replay", "--all")
}

// A second signal does not wait for the request that holds the drain up.
// A standard input from the null device is nobody who could answer a question.
func TestTheNullDeviceIsNobody(t *testing.T) {
	w := newDesk(t)
	p := w.process("approve", "01a22ccb-9bd7-76c4-83b7-b3a944c13ad1", "approve") // exec gives it the null device
	if code := p.exit(); code != cli.ExitUsage || !strings.Contains(p.err.String(), "nobody is here") {
		t.Errorf("exits with %d: %s", code, p.err)
	}
}

func TestDevSuggestsTheProgramThatWasCalled(t *testing.T) {
	w := newDesk(t)
	w.env["PATH"] = w.dir // no ringi is found there
	p := w.process("dev", "--listen", "127.0.0.1:0")
	eventually(t, "the suggestions", func() bool { return strings.Contains(p.out.String(), "  "+trial.ShellWord(p.Args[0])+" start ") })
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.exit(); code != cli.ExitOK {
		t.Errorf("exits with %d: %s", code, p.err)
	}
}

func TestASecondSignalExitsAtOnce(t *testing.T) {
	w := newDesk(t)
	p := w.server()
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.env["RINGI_SERVER"], "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	key, err := cli.ReadKey(filepath.Join(w.dir, "ringi.db.key"))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "POST /v1/runs HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{", key)
	w.ok(nil, "runs") // a later request was answered, so the one before is under way
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the drain", func() bool { return strings.Contains(p.err.String(), "draining") })
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.exit(); code != cli.ExitInterrupted {
		t.Errorf("exits with %d: %s", code, p.err)
	}
}

func TestASignalEndsAWatchWith130(t *testing.T) {
	w := served(t, paidDefinition)
	run := w.begin("paid", "-i", "order=A")
	p := w.process("show", string(run.Run), "--watch", "--json")
	eventually(t, "the first line", func() bool { return strings.Contains(p.out.String(), "\n") })
	if err := p.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := p.exit(); code != cli.ExitInterrupted {
		t.Errorf("exits with %d: %s", code, p.err)
	}
}

// A database that is locked by somebody else: 503, and on again in the same
// process, with nothing answered that is not durable.
func TestALockedDatabaseIsUnavailableUntilItIsFree(t *testing.T) {
	w := newDesk(t)
	r := w.start("serve")
	w.write("paid.yaml", paidDefinition)
	w.ok(nil, "publish", "paid.yaml")
	db, err := sql.Open("sqlite", filepath.Join(w.dir, "ringi.db")+"?_pragma=busy_timeout(30000)") // the server may be writing right now
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(t.Context(), "begin immediate"); err != nil {
		t.Fatal(err)
	}
	w.exits(cli.ExitUnreachable, nil, "start", "paid", "-i", "order=A", "--key", "A")
	eventually(t, "a readiness of 503", func() bool { return statusOf(t, r.url+"/readyz") == http.StatusServiceUnavailable })
	if code := statusOf(t, r.url+"/healthz"); code != http.StatusOK {
		t.Errorf("the process itself is %d", code)
	}
	if _, err := db.ExecContext(t.Context(), "rollback"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "readiness", func() bool { return statusOf(t, r.url+"/readyz") == http.StatusOK })
	if run := w.begin("paid", "-i", "order=A", "--key", "A"); run.Status != ringi.Waiting {
		t.Errorf("afterwards: %+v", run)
	}
	for _, said := range []string{"the database is away", "the database is back"} {
		if n := strings.Count(r.err.String(), said); n != 1 {
			t.Errorf("the log says %d times that %s:\n%s", n, said, r.err)
		}
	}
}

func statusOf(t *testing.T, url string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, bytes.NewReader(nil))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}
