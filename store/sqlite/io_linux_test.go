package sqlite_test

import (
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/ringiflow/ringi/store"
)

// A file may not grow: every write to the log of the database fails, in the
// middle of a commit, as on a disk that gives up.
func TestADiskThatFailsLeavesDoubtThatSendingAgainSettles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ringi.db")
	s := openStore(t, path)
	first, second := startOf(1, 1000), startOf(2, 200_000)
	mustCommit(t, s, first)
	wal, err := os.Stat(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	limit := func(l syscall.Rlimit) {
		t.Helper()
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &l); err != nil {
			t.Fatal(err)
		}
	}
	limit(syscall.Rlimit{Cur: uint64(wal.Size()) + 20_000, Max: before.Max})
	for range 2 {
		if _, err := s.Commit(t.Context(), second); !errors.Is(err, store.ErrDoubt) && !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("answer %v, want ErrDoubt or ErrUnavailable", err)
		}
	}
	limit(before)
	if !stands(t, s, first) {
		t.Error("what was answered is lost")
	}
	mustCommit(t, s, second)
	mustCommit(t, s, second)
	mustCommit(t, s, startOf(3, 1000))
	rows, err := s.Log(t.Context(), second.Key, 0, 1<<30)
	if err != nil || len(rows) != 1 || len(rows[0].Body) != len(second.Body) {
		t.Errorf("%d log rows, %v, want the one that was sent", len(rows), err)
	}
}
