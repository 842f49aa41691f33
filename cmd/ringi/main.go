package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	signals := make(chan os.Signal, 2) // the first drains, the second exits at once
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	p := &Program{
		Args: os.Args[1:], Env: os.Getenv,
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Terminal: Terminal{In: isTerminal(os.Stdin), Out: isTerminal(os.Stdout), Err: isTerminal(os.Stderr)},
		Now:      time.Now, Signals: signals,
	}
	os.Exit(p.Run(context.Background()))
}

// isTerminal reports whether a person is likely to sit at the other end.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
