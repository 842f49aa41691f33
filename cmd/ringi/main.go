package main

import (
	"context"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/ringiflow/ringi/cmd/ringi/cli"
)

func main() {
	signals := make(chan os.Signal, 2) // the first drains, the second exits at once
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	p := &cli.Program{
		Name: calledAs(), Args: os.Args[1:], Env: os.Getenv,
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Terminal: cli.Terminal{In: isTerminal(os.Stdin), Out: isTerminal(os.Stdout), Err: isTerminal(os.Stderr)},
		Now:      time.Now, Signals: signals,
	}
	os.Exit(p.Run(context.Background(), rootCommand))
}

// calledAs is what a person types to call this program again: its plain name
// where the shell finds it by that, else the way in which it was called now.
func calledAs() string {
	const plain = "ringi"
	self, err := os.Executable()
	if err != nil {
		return plain
	}
	found, err := exec.LookPath(plain)
	if err != nil {
		return os.Args[0]
	}
	a, aErr := os.Stat(self)
	b, bErr := os.Stat(found)
	if aErr == nil && bErr == nil && os.SameFile(a, b) {
		return plain
	}
	return os.Args[0]
}

// isTerminal reports whether a person is likely to sit at the other end. The
// null device looks like one and is nobody.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}
