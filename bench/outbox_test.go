package bench_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ringiflow/ringi/bench"
	"github.com/ringiflow/ringi/relay"
	"github.com/ringiflow/ringi/store/postgres/pgtest"
)

// The numbers are for people; that everything was measured and nothing is left
// behind is for the test.
func TestTheOutboxIsMeasuredBesideItsFloorAndLeavesNothing(t *testing.T) {
	for _, kind := range []string{"sqlite", "postgres"} {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			database := "sqlite:" + filepath.Join(dir, "shop.db")
			if kind == "postgres" {
				server, err := pgtest.Start(t.Context(), pgtest.Config{})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() {
					if err := server.Close(); err != nil {
						t.Error(err)
					}
				})
				database = server.URL("postgres")
			}
			events := filepath.Join(t.TempDir(), "events.ndjson")
			var told []string
			got, err := bench.Outbox(t.Context(), bench.OutboxConfig{
				Database: database, Sink: "file:" + events, Messages: 700, Batch: 100, Now: time.Now,
				Told: func(text string) { told = append(told, text) },
			})
			if err != nil {
				t.Fatal(err)
			}
			if got.Name != "outbox" || got.Store != kind || got.Sink != "file:"+events || got.Messages != 700 {
				t.Errorf("measured %+v", got)
			}
			if got.Seconds <= 0 || got.MessagesPerSecond <= 0 || got.FloorMessagesPerSecond <= 0 || got.P50MS <= 0 || got.P99MS < got.P50MS {
				t.Errorf("measured %+v", got)
			}
			lines := idsOf(t, events)
			if len(lines) != 700+700+200 || len(told) < 2 || !strings.HasPrefix(told[0], "a business transaction with a message takes ") {
				t.Errorf("%d events, told %q", len(lines), told)
			}
			leftovers(t, kind, dir, database)
		})
	}
}

func idsOf(t *testing.T, events string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(events)
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		var e struct{ ID string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		ids[e.ID] = true
	}
	return ids
}

func leftovers(t *testing.T, kind, dir, database string) {
	t.Helper()
	if kind == "sqlite" {
		if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
		return
	}
	db, err := sql.Open("pgx", database)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var n int
	if err := db.QueryRow(`select count(*) from pg_namespace where nspname like 'ringi%'`).Scan(&n); err != nil || n != 0 {
		t.Errorf("%d schemas are left behind, %v", n, err)
	}
}

func TestAMeasurementThatWouldNotBeOneIsRefused(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []bench.OutboxConfig{
		{Database: "mysql:x", Sink: "file:" + filepath.Join(dir, "a")},
		{Database: "sqlite:" + filepath.Join(dir, "missing", "x.db"), Sink: "file:" + filepath.Join(dir, "a")},
		{Database: "sqlite:" + filepath.Join(dir, "x.db"), Sink: "stdout"},
		{Database: "sqlite:" + filepath.Join(dir, "x.db"), Sink: ""},
		{Database: "sqlite:" + filepath.Join(dir, "x.db"), Sink: "a=file:" + filepath.Join(dir, "a")},
		{Database: "sqlite:" + filepath.Join(dir, "x.db"), Sink: "kafka://127.0.0.1:1", Messages: 1},
	} {
		c.Now, c.Open = time.Now, relay.Opener{}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // for the broker that is not there
		if got, err := bench.Outbox(ctx, c); err == nil {
			t.Errorf("%+v: measured %+v", c, got)
		}
		cancel()
	}
	if left, err := filepath.Glob(filepath.Join(dir, "x.db*")); err != nil || len(left) != 0 {
		t.Error(fmt.Sprint("left behind: ", left, err))
	}
}
