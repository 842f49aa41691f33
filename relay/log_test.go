package relay_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/wal"
	"github.com/ringiflow/ringi/relay"
)

func TestOnlyPostgresHasALog(t *testing.T) {
	for _, database := range []string{"sqlite:shop.db", "mysql://shop:secret@db/shop"} {
		if _, err := relay.OpenLog(database, relay.LogConfig{}); !errors.Is(err, relay.ErrNoLog) || strings.Contains(err.Error(), "secret") {
			t.Errorf("of %s: %v", database, err)
		}
	}
	log, err := relay.OpenLog("postgres://nobody@127.0.0.1:1/shop", relay.LogConfig{}) // opens nothing yet
	if err != nil {
		t.Fatal(err)
	}
	if log.Feed() == nil {
		t.Error("it tells nobody")
	}
	if err := log.Close(); err != nil {
		t.Error(err)
	}
	var none *relay.Log
	none.Begin(t.Context())()
	if none.Feed() != nil || none.Close() != nil {
		t.Error("no log is not nothing")
	}
}

// What lasts is told once, however often it is reported.
func TestTheStateOfALogIsToldOnce(t *testing.T) { // O-31
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var text strings.Builder
	j := &relay.LogJournal{Journal: &relay.Journal{Log: slog.New(slog.NewTextHandler(&text, nil))}}
	for _, tc := range []struct {
		name string
		r    wal.Report
		want string // empty: nothing
	}{
		{"a reason", wal.Report{State: wal.Polling, Err: errors.New("outbox/wal: wal_level")}, "found by polling"},
		{"the same", wal.Report{State: wal.Polling, Err: errors.New("outbox/wal: wal_level")}, ""},
		{"another", wal.Report{State: wal.Polling, Err: errors.New("outbox/wal: no privilege")}, "no privilege"},
		{"it begins", wal.Report{State: wal.Starting}, ""},
		{"it is slow", wal.Report{At: at.Add(time.Minute), State: wal.Starting}, "waits for transactions"},
		{"it still is", wal.Report{At: at.Add(time.Minute), State: wal.Starting}, ""},
		{"it reads", wal.Report{State: wal.Streaming}, "log is read"},
		{"all is well", wal.Report{State: wal.Streaming, Retained: 1, Bound: 100}, ""},
		{"half of the bound", wal.Report{State: wal.Streaming, Retained: 50, Bound: 100, Near: true}, "keeps much"},
		{"more", wal.Report{State: wal.Streaming, Retained: 60, Bound: 100, Near: true}, ""},
		{"less again", wal.Report{State: wal.Streaming, Retained: 6, Bound: 100}, ""},
		{"half once more", wal.Report{State: wal.Streaming, Retained: 50, Bound: 100, Near: true}, "keeps much"},
		{"no room", wal.Report{State: wal.Streaming, Overflow: 7}, "messages=7"},
		{"no room either", wal.Report{State: wal.Streaming, Overflow: 7}, ""},
		{"it ends", wal.Report{State: wal.Polling, Err: errors.New("outbox/wal: no privilege")}, "found by polling"},
		{"an hour later", wal.Report{At: at.Add(2 * time.Hour), State: wal.Polling, Err: errors.New("outbox/wal: no privilege")}, "found by polling"},
	} {
		text.Reset()
		if tc.r.At.IsZero() {
			tc.r.At = at
		}
		j.Observe(tc.r)
		if got := text.String(); !strings.Contains(got, tc.want) || tc.want == "" && got != "" {
			t.Errorf("%s: the log says %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestMetricsOfALogBeginWithItsFirstReport(t *testing.T) {
	m := relay.NewMetrics(func(context.Context) ([]outbox.Depth, error) { return nil, nil }, time.Now)
	if got := scrape(t, m); strings.Contains(got, "ringi_outbox_log") {
		t.Errorf("without a log: %s", got)
	}
	m.ObserveLog(wal.Report{State: wal.Streaming, Retained: 5, Bound: 9, Overflow: 2, Waiting: 3, Behind: 2 * time.Second})
	m.ObserveLog(wal.Report{State: wal.Streaming, Retained: 6, Bound: 9, Overflow: 2, Waiting: 3, Behind: 2 * time.Second})
	got := scrape(t, m)
	for _, want := range []string{"log_streaming 1", "log_retained_bytes 6", "log_bound_bytes 9", "log_overflow_total 4", "log_waiting 3", "log_behind_seconds 2"} {
		if !strings.Contains(got, "ringi_outbox_"+want+"\n") {
			t.Errorf("%s is missing in\n%s", want, got)
		}
	}
}
