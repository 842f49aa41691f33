//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package sqlite

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

// fileLock is the lock file beside a database. The kernel releases it with the
// process, however that ends, so that it is never stale.
type fileLock struct{ file *os.File }

// lockFile takes the lock file or names the process that has it.
func lockFile(path string) (*fileLock, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock file: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer file.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock file %s: %w", path, err)
		}
		holder, _ := io.ReadAll(io.LimitReader(file, 64)) // nothing written yet is no reason to fail
		return nil, &InUseError{Lock: path, PID: strings.TrimSpace(string(holder))}
	}
	return &fileLock{file}, nil
}

// sign writes this process into the file.
func (l *fileLock) sign() error {
	err := l.file.Truncate(0)
	if err == nil {
		_, err = l.file.WriteAt([]byte(pidText()), 0)
	}
	if err != nil {
		return fmt.Errorf("lock file: %w", err)
	}
	return nil
}

// release gives the lock back. The file stays: deleting it would let a process
// lock a file that the next one no longer sees.
func (l *fileLock) release() error { return l.file.Close() }
