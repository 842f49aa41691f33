//go:build !linux

package sqlite

import "os"

// A selfLock would be a lock on the database file itself. Where flock and
// SQLite's own locks are of one kind the two would shut each other out, so that
// the lock file has to do.
type selfLock struct{}

// lockItself makes the database if it is missing.
func lockItself(path string) (*selfLock, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	return &selfLock{}, file.Close()
}

func (l *selfLock) release() error { return nil }
