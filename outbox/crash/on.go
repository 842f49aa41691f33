//go:build crashpoints && unix

package crash

import (
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// passes counts how often the chosen place was passed.
// constant: only a build for crash tests has it, and that process dies of it
var passes atomic.Int64

// At kills the process, as a power cut would, when RINGI_CRASHPOINT says so.
// At the place where a lease is to be lost it stops instead, until somebody
// sends SIGCONT.
func At(point string) {
	name, count, _ := strings.Cut(os.Getenv("RINGI_CRASHPOINT"), ":")
	if name != point {
		return
	}
	at, err := strconv.ParseInt(count, 10, 64)
	if err != nil {
		at = 1
	}
	if passes.Add(1) != at {
		return
	}
	if point != Publishing {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // to oneself it cannot fail
		select {}
	}
	// The signal stops all threads, and this one perhaps last: what follows must not
	// begin before the process was woken.
	woken := make(chan os.Signal, 1)
	signal.Notify(woken, syscall.SIGCONT)
	_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	<-woken
	signal.Stop(woken)
}
