//go:build unix

package bench

import (
	"syscall"
	"time"
)

// CPU is the processor time that this process has used, in user mode and in
// the kernel.
func CPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0 // it fails for no argument of ours
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
