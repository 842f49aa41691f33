package sqlite_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ringiflow/ringi/store/sqlite"
)

// S5: one database, one process, whatever name it is called by.
func TestASecondOpeningIsRefusedUnderEveryName(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "ringi.db")
	s := openStore(t, path)
	mustCommit(t, s, startOf(1, 10))
	name := func(n string, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, n)
	}
	other := filepath.Join(dir, "other")
	for what, second := range map[string]string{
		"symbolic link":           name("link.db", os.Symlink("ringi.db", filepath.Join(dir, "link.db"))),
		"link to a link":          name("more.db", os.Symlink("link.db", filepath.Join(dir, "more.db"))),
		"link to the directory":   filepath.Join(name("other", os.Symlink(dir, other)), "ringi.db"),
		"hard link":               name("hard.db", os.Link(path, filepath.Join(dir, "hard.db"))),
		"its own name, unlinked":  path,
		"its own name, as it was": path,
	} {
		if strings.HasSuffix(what, "unlinked") { // the lock file is gone
			if err := os.Remove(path + ".lock"); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
		}
		_, err := sqlite.Open(t.Context(), sqlite.Config{Path: second})
		var used *sqlite.InUseError
		if !errors.As(err, &used) || used.PID != fmt.Sprint(os.Getpid()) {
			t.Errorf("%s: %v, want InUseError of process %d", what, err, os.Getpid())
		}
	}
	mustCommit(t, s, startOf(2, 10))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again := openStore(t, filepath.Join(dir, "more.db"))
	if !stands(t, again, startOf(1, 0)) || !stands(t, again, startOf(2, 0)) {
		t.Error("through a link it is another database")
	}
}

func TestADatabaseIsMadeWhereALinkPoints(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink(filepath.Join("data", "ringi.db"), filepath.Join(dir, "ringi.db")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	openStore(t, filepath.Join(dir, "ringi.db"))
	if _, err := os.Stat(filepath.Join(dir, "data", "ringi.db.lock")); err != nil {
		t.Errorf("the lock file is not beside the database: %v", err)
	}
}
