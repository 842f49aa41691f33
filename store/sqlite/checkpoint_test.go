package sqlite_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// The log of changes is copied into the database beside the writer, and then used
// from its beginning again: it stops growing at a quarter of the size at which a
// commit would do that itself.
func TestTheLogIsCopiedWithoutACommitThatDoesIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ringi.db")
	s := openStore(t, path)
	size := func() int64 {
		info, err := os.Stat(path + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	const page, most = 4096, 16_000 // as for walMost
	n := 0
	for n < 100 { // of 50 pages
		n++
		mustCommit(t, s, startOf(n, 200_000))
	}
	deadline := time.Now().Add(30 * time.Second)
	for before := int64(0); size() > before; {
		if time.Now().After(deadline) || before > most*page {
			t.Fatalf("the log has %d bytes and still grows", before)
		}
		before = size()
		n++
		mustCommit(t, s, startOf(n, 1000))
	}
	for i := 1; i <= n; i += n / 7 {
		if !stands(t, s, startOf(i, 1)) {
			t.Errorf("run %d is lost", i)
		}
	}
}
