package bench

import (
	"errors"
	"os"
	"slices"
	"time"
)

// unknownFileSystem is the name of one that cannot be asked: of another
// machine, or of a system that this program does not know how to ask.
const unknownFileSystem = "unknown"

const (
	fsyncs     = 100  // that are measured
	fsyncBytes = 4096 // written before each: a page
)

// volatile reports whether a file system is memory.
func volatile(fs string) bool { return fs == "tmpfs" || fs == "ramfs" }

// fsyncTimes measures, in order of length, how long appending a page to a file
// of a directory and waiting for the disk takes.
func fsyncTimes(dir string, now func() time.Time) (_ []time.Duration, err error) {
	f, err := os.CreateTemp(dir, "ringi_bench_fsync_")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	page := make([]byte, fsyncBytes)
	times := make([]time.Duration, 0, fsyncs)
	for range fsyncs {
		begun := now()
		if _, err := f.Write(page); err != nil {
			return nil, err
		}
		if err := f.Sync(); err != nil {
			return nil, err
		}
		times = append(times, now().Sub(begun))
	}
	slices.Sort(times)
	return times, nil
}
