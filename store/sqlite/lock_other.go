//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// fileLock is the lock file beside a database. Where the kernel cannot hold a
// lock for us the file itself is the lock; after a crash a person deletes it.
type fileLock struct{ path string }

// lockFile creates the lock file or names the process that did.
func lockFile(path string) (*fileLock, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrExist) {
		holder, _ := os.ReadFile(path) // nothing written yet is no reason to fail
		return nil, &InUseError{Lock: path, PID: strings.TrimSpace(string(holder))}
	}
	if err != nil {
		return nil, fmt.Errorf("lock file: %w", err)
	}
	return &fileLock{path}, file.Close()
}

// sign writes this process into the file.
func (l *fileLock) sign() error {
	if err := os.WriteFile(l.path, []byte(pidText()), 0o600); err != nil {
		return fmt.Errorf("lock file: %w", err)
	}
	return nil
}

// release deletes the lock file.
func (l *fileLock) release() error { return os.Remove(l.path) }
