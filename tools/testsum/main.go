// Command testsum runs go test and says in its last line how it went:
//
//	N passed, N failed, 0 skipped
//
// It exists because go test counts packages and hides skipped tests, and this
// project promises that nothing is skipped. Every test and every subtest is
// counted once, as go test -v names them. A package that does not build, a test
// that never ended (panic, time-out, os.Exit) and a go command that fails for
// any other reason count as failures. The exit code is 0 only if at least one
// test passed, none failed and none was skipped; it is 2 for wrong flags.
//
// Usage:
//
//	testsum [-dirs .,tools] [-limit 30m] [--] [GO TEST ARGUMENTS]
//
// The arguments are handed to go test -json, once in each directory of -dirs,
// so that several modules make one sum. The output of passing tests is dropped;
// of a failing or skipped test everything is printed.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run is the program without the process: it returns the exit code.
func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("testsum", flag.ContinueOnError)
	flags.SetOutput(stderr)
	dirs := flags.String("dirs", ".", "directories, comma-separated, in which to run go test")
	limit := flags.Duration("limit", 30*time.Minute, "longest time for everything; what still runs then has failed")
	if err := flags.Parse(args); err != nil {
		return 2
	}

	interrupted, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(interrupted, *limit)
	defer cancel()

	began := time.Now()
	sum := newTally(stdout)
	for _, dir := range strings.Split(*dirs, ",") {
		if err := goTest(ctx, dir, flags.Args(), sum, stdout, stderr); err != nil {
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				err = fmt.Errorf("stopped after the limit of %v: make the slowest package faster, or raise -limit", *limit)
			}
			sum.commandFailed(dir, err)
		}
	}
	return sum.finish(time.Since(began))
}

// goTest runs go test once in dir and adds its events to sum. Lines that are
// not events are passed on to out, what the go command complains about to
// stderr, which may be written to at the same time as out. The error is that of
// the go command itself, which also fails when a test does.
func goTest(ctx context.Context, dir string, args []string, sum *tally, out, stderr io.Writer) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-json"}, args...)...)
	cmd.Dir = dir
	cmd.Stderr = stderr
	// A killed go command leaves its test binaries behind and the pipe open:
	// the whole group has to go, and Wait must not hang on what is left.
	killGroup(cmd)
	cmd.WaitDelay = 10 * time.Second
	events, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("go test did not start (is Go installed and on PATH?): %w", err)
	}
	readErr := read(events, sum, out)
	sum.endOfRun()
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("go test: %w", err)
	}
	return readErr
}

// read adds every event of a go test -json stream to sum.
func read(stream io.Reader, sum *tally, out io.Writer) error {
	lines := bufio.NewReader(stream)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var ev event
			if json.Unmarshal(line, &ev) == nil && ev.Action != "" {
				sum.add(ev)
			} else {
				fmt.Fprintf(out, "%s", line)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the output of go test: %w", err)
		}
	}
}
