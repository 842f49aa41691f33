package command_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/worker/command"
)

// asWorker makes the test binary a worker that runs one program in its directory.
const asWorker = "RINGI_TEST_AS_WORKER"

func TestMain(m *testing.M) {
	if os.Getenv(asWorker) == "" {
		os.Exit(m.Run())
	}
	r, err := command.New(command.Config{Program: []string{"sh", "-c", os.Getenv(asWorker)}, Activities: []string{"a"}})
	if err != nil {
		panic(err)
	}
	_, _ = r.Queue().Activities[0].Call(context.Background(), ringi.Task{Input: json.RawMessage(`{}`)})
}

// A worker that is killed takes its programs along, and what those have started:
// nobody would hear what they say, and the engine gives the task to another.
func TestAProgramDiesWithItsWorker(t *testing.T) { // W31
	for name, c := range map[string]struct {
		script string
		pids   []string // files with the processes that must die
	}{
		"the program itself": {"echo $$ > program; exec sleep 1000", []string{"program"}},
		"what it started": {
			`sh -c 'trap "" TERM HUP PIPE; echo $$ > nested; sleep 1000 & echo $! > deep; wait' & echo $! > child; echo $$ > program; wait`,
			[]string{"program", "child", "nested", "deep"},
		},
		"what it started and did not wait for": {
			"(sleep 1000 > /dev/null 2>&1 & echo $! > child); echo $$ > program; exec sleep 1000", []string{"child", "program"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			pids := killWorker(t, dir, c.script, c.pids)
			for _, pid := range pids {
				if !await(func() bool { return gone(pid) }) {
					t.Errorf("process %d of %v outlives its worker", pid, pids)
				}
			}
		})
	}
}

// A guard watches, it is not needed: without it, or when it is killed, programs run
// as before.
func TestAProgramRunsWithoutAGuard(t *testing.T) {
	config := shell(`for p in /proc/[0-9]*; do grep -qs ^ringi-guard $p/cmdline && grep -qs "^PPid:.$PPID\$" $p/status && kill -9 ${p#/proc/}; done; cat`)
	if out, f := run(t, t.Context(), config, `5`); f != nil || out != `5` {
		t.Errorf("with a guard that was killed: %s %v", out, f)
	}
	if left := childrenOf(t, os.Getpid()); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
	cat, err := exec.LookPath("cat")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", t.TempDir())
	var log lockedBuffer
	config = command.Config{Program: []string{cat}, Activities: []string{"a"}, Log: slog.New(slog.NewTextHandler(&log, nil))}
	if out, f := run(t, t.Context(), config, `5`); f != nil || out != `5` {
		t.Errorf("without a shell: %s %v", out, f)
	}
	if !strings.Contains(log.String(), "lives on when the worker is killed") {
		t.Errorf("the log does not say that nothing watches: %s", log.String())
	}
}

// killWorker runs a script under a worker, and kills that when the processes of all
// files are there. It returns those, and the children of the worker: the program
// and its guard.
func killWorker(t *testing.T, dir, script string, files []string) (pids []int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), asWorker+"="+script)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		pid := pidIn(dir, file)
		if pid == 0 {
			t.Fatalf("%s does not start", file)
		}
		pids = append(pids, pid)
	}
	children := childrenOf(t, cmd.Process.Pid)
	if len(children) != 2 {
		t.Errorf("the worker has the children %v, want a program and a guard", children)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	return append(pids, children...)
}

func childrenOf(t *testing.T, parent int) (pids []int) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended meanwhile
		}
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if fields[1] == strconv.Itoa(parent) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, pid)
		}
	}
	return pids
}
