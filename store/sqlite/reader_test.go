package sqlite_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
	"github.com/ringiflow/ringi/store/sqlite"
)

// W8: a file can be read beside the process that writes it, and only read.
func TestAFileIsReadBesideItsWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ringi.db")
	writer, err := sqlite.Open(t.Context(), sqlite.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	reader, err := sqlite.OpenReading(t.Context(), sqlite.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	d := store.Definition{Tenant: ringi.DefaultTenant, Name: "order", Digest: "d", Source: []byte("{}")}
	if _, _, err := writer.PutDefinition(t.Context(), d, store.AuditRecord{Kind: "publish", Data: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	if got, err := reader.Definition(t.Context(), ringi.DefaultTenant, "order", 0); err != nil || got.Version != 1 {
		t.Errorf("reads %+v, %v", got, err)
	}
	if _, _, err := reader.PutDefinition(t.Context(), d, store.AuditRecord{}); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("writing is %v, want store.ErrUnavailable", err)
	}
	if err := reader.Close(); err != nil {
		t.Error(err)
	}
	if err := reader.Close(); err != nil {
		t.Errorf("closing again: %v", err)
	}
}

// A view that reads a kind of rows for the first time needs no second connection:
// with as many views at once as there are connections, all would wait for ever.
func TestAViewNeedsNoOtherConnection(t *testing.T) {
	s, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "ringi.db"), Readers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	key := store.Key{Tenant: ringi.DefaultTenant, Run: "01890a5d-ac96-774b-bcce-b302099a8057"}
	for range 2 { // the second time the statements are kept
		if _, err := s.Standing(ctx, key); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("the rows of a run that is not there: %v, want store.ErrNotFound", err)
		}
		if x, err := s.Inspect(ctx, key); err != nil || x.Last != 0 {
			t.Errorf("a run that is not there is inspected as %+v, %v", x, err)
		}
	}
}

func TestOnlyADatabaseOfRingiIsRead(t *testing.T) {
	dir := t.TempDir()
	if _, err := sqlite.OpenReading(t.Context(), sqlite.Config{Path: filepath.Join(dir, "missing.db")}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file is %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "missing.db")); err == nil {
		t.Error("the missing file was made")
	}
	other := filepath.Join(dir, "other.db")
	if err := os.WriteFile(other, []byte("not a database at all, but long enough to be read as one"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlite.OpenReading(t.Context(), sqlite.Config{Path: other}); err == nil {
		t.Error("a file that is no database was opened")
	}
}

// A probe is a write: it fails where a write would.
func TestAProbeTellsWhetherTheFileCanBeWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ringi.db")
	writer, err := sqlite.Open(t.Context(), sqlite.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	if err := writer.Probe(t.Context(), 1000); err != nil {
		t.Error(err)
	}
	reader, err := sqlite.OpenReading(t.Context(), sqlite.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if err := reader.Probe(t.Context(), 1000); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("where nothing can be written it is %v, want store.ErrUnavailable", err)
	}
}
