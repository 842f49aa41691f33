//go:build unix

// Command fetch brings what the Java servers of package servertest are made of
// onto this machine, through Maven, before tests need it side by side.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/ringiflow/ringi/servertest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := servertest.FetchJava(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		stop()
		os.Exit(1)
	}
}
