package sqlite_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// killedEnv names the database for the process that is killed.
const killedEnv = "RINGI_TEST_KILLED_DB"

// TestHelperProcess is not a test: with the variable set it is the process
// that commits, says so, and is killed.
func TestHelperProcess(t *testing.T) {
	path := os.Getenv(killedEnv)
	if path == "" {
		return
	}
	s := openStore(t, path)
	for n := 0; ; n++ {
		mustCommit(t, s, startOf(n, 2000))
		fmt.Println("done", n)
	}
}

// S5: what was answered survives kill -9, and the next process takes over the
// lock that the killed one held.
func TestWhatWasAnsweredSurvivesKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ringi.db")
	last := -1
	for round := range 2 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestHelperProcess$")
		cmd.Env = append(os.Environ(), killedEnv+"="+path+strconv.Itoa(round))
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		last = -1
		for lines := bufio.NewScanner(out); last < 20 && lines.Scan(); {
			if n, err := strconv.Atoi(strings.TrimPrefix(lines.Text(), "done ")); err == nil {
				last = n
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // it says that it was killed
		s := openStore(t, path+strconv.Itoa(round))
		for n := range last + 1 {
			if !stands(t, s, startOf(n, 0)) {
				t.Errorf("round %d: run %d was answered and is lost", round, n)
			}
		}
		mustCommit(t, s, startOf(1_000_000, 10))
	}
	if last < 20 {
		t.Errorf("only %d commits before the kill", last+1)
	}
}
