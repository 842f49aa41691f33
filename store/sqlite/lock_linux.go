package sqlite

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// A selfLock is a lock on the database file itself. SQLite locks the same file
// by fcntl, which on Linux knows nothing of flock. But closing any descriptor
// of a file drops all fcntl locks that the process has on it, so that this one
// is closed after SQLite's, and a plain number: an os.File closes by itself.
type selfLock struct{ fd int }

// lockItself opens the database, making it if it is missing, and locks it, or
// names the process that has it.
func lockItself(path string) (*selfLock, error) {
	fd, err := syscall.Open(path, syscall.O_CREAT|syscall.O_RDWR|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	err = syscall.Flock(fd, syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		// The descriptor stays open, see above: it may be this very process
		// that has the database, under another name.
		return nil, &InUseError{Lock: path, PID: flockHolder(fd)}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), syscall.Close(fd))
	}
	return &selfLock{fd}, nil
}

func (l *selfLock) release() error { return syscall.Close(l.fd) }

// flockHolder is the process that has the file locked, as the kernel lists it;
// "" when it does not, as across the border of a container.
func flockHolder(fd int) string {
	var stat syscall.Stat_t
	list, err := os.Open("/proc/locks")
	if err != nil {
		return ""
	}
	defer list.Close()
	if err := syscall.Fstat(fd, &stat); err != nil {
		return ""
	}
	for lines := bufio.NewScanner(list); lines.Scan(); {
		// 1: FLOCK  ADVISORY  WRITE 4711 08:01:123456 0 EOF
		f := strings.Fields(lines.Text())
		if len(f) > 5 && f[1] == "FLOCK" && strings.HasSuffix(f[5], fmt.Sprintf(":%d", stat.Ino)) && f[4] != "0" {
			return f[4]
		}
	}
	return ""
}
