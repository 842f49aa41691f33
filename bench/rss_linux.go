package bench

import (
	"fmt"
	"os"
)

// resident is how much of this process is in memory, in bytes.
func resident() (int64, error) {
	raw, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, err
	}
	var size, pages int64
	if _, err := fmt.Sscan(string(raw), &size, &pages); err != nil {
		return 0, fmt.Errorf("bench: read the memory of this process: %w", err)
	}
	return pages * int64(os.Getpagesize()), nil
}
