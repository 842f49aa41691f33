//go:build !unix

package bench

import (
	"runtime"
	"runtime/metrics"
	"time"
)

// CPU is the processor time that this process has used, as Go's runtime
// estimates it at the end of a garbage collection.
func CPU() time.Duration {
	runtime.GC()
	s := []metrics.Sample{{Name: "/cpu/classes/total:cpu-seconds"}, {Name: "/cpu/classes/idle:cpu-seconds"}}
	metrics.Read(s)
	return time.Duration((s[0].Value.Float64() - s[1].Value.Float64()) * float64(time.Second))
}
