package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/outbox"
	pgoutbox "github.com/ringiflow/ringi/outbox/postgres"
	"github.com/ringiflow/ringi/store"
	"github.com/ringiflow/ringi/store/postgres"
	"github.com/ringiflow/ringi/store/postgres/pgtest"
)

// watched is a server that writes down every plan and counts what statements read.
var watched struct {
	once   sync.Once
	server *pgtest.Server
	err    error
}

func watchedServer(t *testing.T) *pgtest.Server {
	t.Helper()
	watched.once.Do(func() {
		watched.server, watched.err = pgtest.Start(context.Background(), pgtest.Config{Settings: map[string]string{
			"shared_preload_libraries": "auto_explain,pg_stat_statements", "auto_explain.log_min_duration": "0", "autovacuum": "off",
		}})
		if watched.err == nil {
			watched.err = watched.server.Exec(context.Background(), "postgres", "create extension pg_stat_statements")
		}
	})
	if watched.err != nil {
		t.Fatal(watched.err)
	}
	return watched.server
}

// path runs everything that a node does all day, for a few runs.
func path(t *testing.T, s *postgres.Store, base int, now time.Time) {
	t.Helper()
	for round := range 8 {
		var starts, ready []store.Write
		for i := range 20 {
			line := newLine(base + 1000*round + i)
			starts = append(starts, line.write(0, commitID(base+5000+1000*round+i)))
			w := startOf(base+1000*round+500+i, 10)
			w.Tasks = []store.TaskChange{{Fresh: true, Row: &ringi.TaskRow{
				Step: "a", Attempt: 1, Seq: 1, InputSeq: 1, Queue: "q", ReadyAt: now, GiveUpAt: now, Timeout: time.Minute, Heartbeat: time.Minute,
			}}}
			w.Timers = []store.TimerChange{{ID: "t", Row: &ringi.TimerRow{ID: "t", FireAt: now}}}
			w.Waits = []store.WaitChange{{Step: "w", Row: &ringi.WaitRow{Step: "w", Event: "e", Key: fmt.Sprint("k", base, i), OpenedAt: now}}}
			beside(&w, base+1000*round+i, now)
			ready = append(ready, w)
		}
		mustCommit(t, s, append(starts, ready...)...)
		end := nextOf(starts[0], base+7000+round)
		end.Run = &ringi.RunRow{Status: ringi.Completed, EndedAt: now}
		mustCommit(t, s, end)
		gone := nextOf(ready[0], base+9000+round)
		gone.Waits, gone.Timers = []store.WaitChange{{Step: "w"}}, []store.TimerChange{{ID: "t"}}
		gone.Approvals, gone.Incidents = []store.ApprovalChange{{Step: "a"}}, []store.IncidentChange{{ID: 1}}
		gone.Tasks = []store.TaskChange{{Lane: 0}}
		mustCommit(t, s, gone)
		if _, err := s.Commit(t.Context(), nextOf(starts[0], base+8000+round)); err != nil { // loses: the careful form
			t.Fatal(err)
		}
		if err := sweepOnce(s, now); err != nil {
			t.Fatal(err)
		}
		_, load := s.Load(t.Context(), starts[0].Key, ready[0].Key)
		_, send := s.Send(t.Context(), 1, ringi.SentEvent{ID: fmt.Sprint("e", base, round), Name: "e", Key: fmt.Sprint("n", base, round), SentAt: now}, now)
		_, pairs := s.Pairs(t.Context(), store.PairQuery{Tenant: 1, Name: "e", Key: fmt.Sprint("k", base, round), Limit: 10})
		_, sweep := s.Pairs(t.Context(), store.PairQuery{Limit: 1000})
		_, expire := s.Expire(t.Context(), now, 10)
		relayOnce(t, s.Outbox(), now)
		if err := errors.Join(load, send, pairs, sweep, expire); err != nil {
			t.Fatal(err)
		}
	}
}

// beside gives a start a row of every kind that a run may have, and a message.
func beside(w *store.Write, n int, now time.Time) {
	w.Approvals = []store.ApprovalChange{{Step: "a", Row: &ringi.ApprovalRow{Step: "a", Requester: "carol", OpenedAt: now}}}
	w.Incidents = []store.IncidentChange{{ID: 1, Row: &ringi.Incident{ID: 1, Since: now}}}
	w.Snapshot = &store.Snapshot{Seq: 1, Format: ringi.Format, Body: []byte("state")}
	w.Audit = []store.AuditRecord{{At: now, Actor: "carol", Kind: "start", Run: w.Key.Run, Answer: "accepted", Head: w.Head}}
	w.Messages = []outbox.Message{{
		ID: string(runID(1<<43 + n)), Tenant: 1, AggregateType: "Order", AggregateID: fmt.Sprint("a", n), Type: "t", CreatedAt: now,
	}}
}

// relayOnce delivers what is due, as a relay does.
func relayOnce(t *testing.T, source *pgoutbox.Outbox, now time.Time) {
	t.Helper()
	b, err := source.Claim(t.Context(), outbox.Claim{By: "relay", Now: now, Lease: time.Minute, Limit: 100})
	if err != nil || len(b.Messages) == 0 {
		t.Fatalf("%d messages, %v, want some", len(b.Messages), err)
	}
	var marks []outbox.Mark
	for _, m := range b.Messages {
		marks = append(marks, outbox.Mark{ID: m.ID, Epoch: m.Epoch, Outcome: outbox.MarkDelivered})
	}
	_, err = source.Mark(t.Context(), now, marks)
	if _, prune := source.Prune(t.Context(), now.AddDate(-10, 0, 0), 100); err != nil || prune != nil {
		t.Fatal(err, prune)
	}
}

// W17: with many finished and waiting runs the hot path reads no table from its
// beginning to its end.
func TestTheHotPathScansNoTable(t *testing.T) {
	server := watchedServer(t)
	// An index that is read without a condition is read from its beginning to its end.
	scan := regexp.MustCompile(`Seq Scan on (run|log|snapshot|task|timer|wait|approval|incident|sent_event|audit|outbox|aggregate_head)\b|Index (Only )?Scan using \w+ on (run|log|snapshot|task|timer|wait|approval|incident|sent_event|audit|outbox|aggregate_head)\b[^\n]*\n\s+([^I\s]|I[^n]|->)`)
	now := time.Unix(1_800_000_000, 0).UTC()
	for i, mode := range []string{"", "&default_query_exec_mode=exec"} {
		name := fmt.Sprint("plans", i)
		if err := server.Exec(t.Context(), "postgres", "create database "+name); err != nil {
			t.Fatal(err)
		}
		s := openStore(t, postgres.Config{URL: server.URL(name) + mode})
		// Plans that were made when the tables were empty are kept; they must not scan later.
		path(t, s, 100_000, now)
		fill(connect(t, server.URL(name)), 10_000, 2_000)
		before := len(server.Log())
		path(t, s, 200_000, now)
		plans := server.Log()[before:]
		if n := strings.Count(plans, "Query Text:"); n < 100 {
			t.Fatalf("%d plans were written down, want more than 100", n)
		}
		for _, plan := range strings.Split(plans, "LOG:") {
			if found := scan.FindString(plan); found != "" {
				t.Errorf("mode %q: %s in\n%s", mode, found, plan)
			}
		}
	}
}

// W26: a run of three activities in sequence writes ten rows: one of the log per
// transition, the list row at its ends, one of the task that is updated in
// place.
func TestThreeActivitiesInSequenceWriteTenRows(t *testing.T) {
	url := database(t)
	s := openStore(t, postgres.Config{URL: url})
	const runs = 10
	for n := range runs {
		line := newLine(n + 1)
		for stage := range 4 {
			mustCommit(t, s, line.write(stage, commitID(100*n+stage+1)))
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	watch := connect(t, url)
	count := `select coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0) from pg_stat_user_tables where relname `
	eventually(t, "the counters", func() error {
		if n := watch.one(count + `= 'log'`); n != strconv.Itoa(4*runs) {
			return fmt.Errorf("%s log rows, want %d", n, 4*runs)
		}
		return nil
	})
	if n := watch.one(count + `not in ('meta', 'queue')`); n != strconv.Itoa(10*runs) {
		t.Errorf("%s rows, want %d", n, 10*runs)
	}
}

// TC-85: heartbeats touch no index, and those of many tasks are one statement.
func TestHeartbeatsTouchNoIndex(t *testing.T) {
	url := database(t)
	s := openStore(t, postgres.Config{URL: url})
	now := time.Now().UTC().Truncate(time.Microsecond)
	const tasks, rounds = 20, 10
	var beats []store.Beat
	for n := range tasks {
		w := startOf(n+1, 10)
		row := &ringi.TaskRow{Step: "a", Attempt: 1, Seq: 1, InputSeq: 1, Queue: "q", ReadyAt: now, Timeout: time.Hour, Heartbeat: time.Minute}
		w.Tasks = []store.TaskChange{{Fresh: true, Row: row, Lease: &store.Lease{Worker: "w", At: now, Until: now.Add(5 * time.Second)}}}
		mustCommit(t, s, w)
		beats = append(beats, store.Beat{Key: w.Key, Step: "a", Token: row.Token(1)})
	}
	for round := range rounds {
		for i := range beats {
			beats[i].Now = now.Add(time.Duration(round) * time.Second)
		}
		answers, err := s.Beat(t.Context(), beats...)
		if err != nil || len(answers) != tasks || !answers[0].OK || !answers[tasks-1].OK {
			t.Fatalf("%v, %v", answers, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	watch := connect(t, url)
	var row []string
	eventually(t, "the counters", func() error {
		row = watch.rows(`select n_tup_upd, n_tup_upd - n_tup_hot_upd from pg_stat_user_tables where relname = 'task'`)[0]
		if row[0] != strconv.Itoa(tasks*rounds) {
			return fmt.Errorf("%s updates, want %d", row[0], tasks*rounds)
		}
		return nil
	})
	// A page may be full for a moment, until its old versions are pruned.
	if cold, err := strconv.Atoi(row[1]); err != nil || cold > tasks {
		t.Errorf("%s of %s heartbeats touched an index, want hardly any", row[1], row[0])
	}
}
