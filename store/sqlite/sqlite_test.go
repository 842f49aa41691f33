package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/ringiflow/ringi/store/sqlite"
	"github.com/ringiflow/ringi/store/storetest"
)

func openStore(t testing.TB, path string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// harness hands a store over to the suite of all drivers.
func harness(s *sqlite.Store, path string) storetest.Harness {
	return storetest.Harness{
		Store: s, Records: s, Catalog: s, Events: s, Outbox: s.Outbox(), Inspector: s,
		Traits: storetest.Traits{Durable: true},
		Reopen: func(t *testing.T) storetest.Harness {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			return harness(openStore(t, path), path)
		},
	}
}

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		path := filepath.Join(t.TempDir(), "ringi.db")
		return harness(openStore(t, path), path)
	})
}
