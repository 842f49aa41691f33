//go:build !linux

package bench

import "runtime/metrics"

// resident is how much memory Go's runtime has taken for this process, in bytes:
// what else is in memory this program knows how to ask for on Linux only.
func resident() (int64, error) {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64()), nil
}
