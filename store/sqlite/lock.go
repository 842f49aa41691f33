package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// A databaseLock keeps every other process away from a database: by a lock
// file beside it, which names the holder, and where the kernel can lock the
// database itself without being in SQLite's way by that too, since it may have
// two names and a lock file may be deleted.
type databaseLock struct {
	path string // of the database, without symbolic links
	file fs.FileInfo
	name *fileLock
	self *selfLock
}

// lockDatabase makes the file if it is missing and locks it, or names the
// process that has it.
func lockDatabase(path string) (*databaseLock, error) {
	path, err := resolve(path)
	if err != nil {
		return nil, err
	}
	l := &databaseLock{path: path}
	// The name is locked first: a process that opens a database twice must
	// not come to open its file, see selfLock.
	if l.name, err = lockFile(path + ".lock"); err != nil {
		return nil, err
	}
	if err := l.take(); err != nil {
		return nil, errors.Join(err, l.release())
	}
	return l, nil
}

func (l *databaseLock) take() (err error) {
	// The file is made here and nowhere else: a connection that made it would
	// put an empty database in the place of one that somebody moved away.
	if l.self, err = lockItself(l.path); err != nil {
		return err
	}
	if l.file, err = os.Stat(l.path); err != nil {
		return err
	}
	return l.name.sign()
}

// release gives the locks back. No connection to the database may be open any
// more.
func (l *databaseLock) release() error {
	var err error
	if l.self != nil {
		err = l.self.release()
	}
	return errors.Join(err, l.name.release())
}

// mostLinks is how many symbolic links a path may have, as in the kernel.
const mostLinks = 40

// resolve follows the symbolic links of a path, whose file may be missing.
func resolve(path string) (string, error) {
	for range mostLinks {
		whole, err := filepath.EvalSymlinks(path)
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return whole, err
		}
		target, err := os.Readlink(path)
		switch {
		case err != nil: // no link: what is missing is the file, or its directory
			dir, err := filepath.EvalSymlinks(filepath.Dir(path))
			if err != nil {
				return "", err
			}
			return filepath.Join(dir, filepath.Base(path)), nil
		case filepath.IsAbs(target):
			path = target
		default:
			path = filepath.Join(filepath.Dir(path), target)
		}
	}
	return "", fmt.Errorf("%s has too many symbolic links", path)
}

// pidText is what stands in a lock file.
func pidText() string { return strconv.Itoa(os.Getpid()) + "\n" }
