//go:build crashpoints && unix

package crash

import (
	"os"
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
	signal := syscall.SIGKILL
	if point == Publishing {
		signal = syscall.SIGSTOP
	}
	// The signal to oneself cannot fail; what follows runs only after a stop.
	_ = syscall.Kill(os.Getpid(), signal)
}
