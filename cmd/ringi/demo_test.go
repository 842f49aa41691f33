package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite" // to spoil a book

	"github.com/ringiflow/ringi/cmd/ringi/cli"
	"github.com/ringiflow/ringi/examples/demo"
	"github.com/ringiflow/ringi/examples/order"
)

// demoLimit is how long the small demo of the test may take: ten times what it
// takes on a machine with two cores that does nothing else.
const demoLimit = 10 * time.Minute

// patience is how long a test waits for what has to happen: far longer than on
// the slowest machine, since only a test that fails waits for so long.
const patience = 2 * time.Minute

// demoBinary builds the program: the demo starts its own file several times,
// and the file of a test is another program.
func demoBinary(t *testing.T) string {
	t.Helper()
	return buildProgram(t, "-buildvcs=false")
}

// buildProgram builds the program with these flags.
func buildProgram(t *testing.T, flags ...string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "ringi")
	build := exec.CommandContext(t.Context(), "go", append(append([]string{"build"}, flags...), "-o", binary, ".")...)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the program: %v\n%s", err, out)
	}
	return binary
}

// verify runs ringi demo verify and returns its exit code and what it said.
func verify(t *testing.T, dir string, flags ...string) (code int, data, said string) {
	t.Helper()
	var out, err bytes.Buffer
	p := &cli.Program{Args: append([]string{"demo", "verify", dir}, flags...), Stdout: &out, Stderr: &err}
	code = p.Run(t.Context(), rootCommand)
	return code, out.String(), err.String()
}

// S2, S5, W11, W14, W31: orders come to their end through kill -9, and their
// books tell when they do not balance.
func TestASmallDemoComesThroughKills(t *testing.T) {
	t.Parallel() // it waits most of its time
	ctx, cancel := context.WithTimeout(t.Context(), demoLimit)
	defer cancel()
	dir := filepath.Join(t.TempDir(), "kept")
	var out, story bytes.Buffer
	run := exec.CommandContext(ctx, demoBinary(t), "demo", "--orders", "25", "--seed", "11", "--json", "--keep", dir)
	run.Stdout, run.Stderr = &out, &story
	if err := run.Run(); err != nil {
		t.Fatalf("the demo: %v\n%s", err, story.String())
	}
	var r demo.Result
	dec := json.NewDecoder(&out)
	dec.DisallowUnknownFields()
	if err := dec.Decode(&r); err != nil || dec.More() {
		t.Fatalf("--json did not end with one object: %v\n%s", err, out.String())
	}
	if f := r.Failings(); len(f) > 0 || r.Orders != 25 || r.Seed != 11 || r.Approvals == 0 || r.Seconds <= 0 {
		t.Errorf("%+v\n%q\n%s", r, f, story.String())
	}

	t.Run("the books balance", func(t *testing.T) { // S2
		code, data, said := verify(t, dir)
		if code != cli.ExitOK || !strings.Contains(data, order.BookRefused.Title()) || !strings.Contains(said, "25 of 25 orders") {
			t.Errorf("exit %d\n%s\n%s", code, data, said)
		}
	})
	t.Run("one spoilt row is found", func(t *testing.T) { // S3
		spoil(t, order.BookPath(dir, order.Payment), `UPDATE calls SET effect = 0 WHERE rowid = (SELECT min(rowid) FROM calls WHERE op = 'charge' AND effect = 1)`)
		code, _, said := verify(t, dir)
		if code != cli.ExitFailed || !strings.Contains(said, "24 of 25 orders") || !strings.Contains(said, "charge had an effect never, expected once") {
			t.Errorf("exit %d\n%s", code, said)
		}
		code, data, _ := verify(t, dir, "--json")
		var report order.Report
		if err := json.Unmarshal([]byte(data), &report); err != nil || code != cli.ExitFailed || report.AsExpected != 24 {
			t.Errorf("exit %d, %v\n%s", code, err, data)
		}
	})
}

// W31: the directory of a demo has to be there, with all that is read.
func TestVerifyOfADirectoryWithoutBooks(t *testing.T) {
	if code, _, said := verify(t, t.TempDir()); code != cli.ExitNotFound || !strings.Contains(said, "--keep") {
		t.Errorf("exit %d: %s", code, said)
	}
}

// W31: a demo overwrites nothing.
func TestADemoKeepsNothingInADirectoryThatIsNotEmpty(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	p := &cli.Program{Args: []string{"demo", "--keep", dir}, Stderr: &said}
	if code := p.Run(t.Context(), rootCommand); code != cli.ExitUsage || !strings.Contains(said.String(), "not empty") {
		t.Errorf("exit %d: %s", code, said.String())
	}
}

// spoil changes a book by hand.
func spoil(t *testing.T, path, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	result, err := db.ExecContext(t.Context(), statement)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := result.RowsAffected(); n != 1 || err != nil {
		t.Fatalf("%d rows spoilt, %v", n, err)
	}
}
