package postgres_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
	"github.com/ringiflow/ringi/store/postgres"
	"github.com/ringiflow/ringi/store/postgres/pgtest"
)

// A churn is a queue through which tasks pass, with all that stands beside
// them. What is alive at the end of a round is what came in it.
type churn struct {
	t    *testing.T
	s    *postgres.Store
	now  time.Time
	n    int
	open []store.Write
}

// perRound is how many runs come and go in a round.
const perRound = 100

// fat makes rows of which few fit on a page, so that whoever walks over dead
// ones reads as many blocks.
// constant: only read
var fat = strings.Repeat("x", 1500)

// round is a second of the test's time: runs come, their tasks are claimed,
// heartbeats arrive, timers fire, checks move, events come and are too old, and
// the runs of the round before end.
func (c *churn) round() {
	c.t.Helper()
	c.now = c.now.Add(time.Second)
	var writes, open []store.Write
	for range perRound {
		c.n++
		w := startOf(c.n, 10)
		w.Tasks = []store.TaskChange{{Fresh: true, Row: &ringi.TaskRow{
			Step: fat, Attempt: 1, Seq: 1, InputSeq: 1, Queue: "q", ReadyAt: c.now, GiveUpAt: c.now.Add(time.Second), Timeout: time.Minute, Heartbeat: time.Minute,
		}}}
		w.Timers = []store.TimerChange{{ID: fat, Row: &ringi.TimerRow{ID: fat, FireAt: c.now}}}
		w.Waits = []store.WaitChange{{Step: fat, Row: &ringi.WaitRow{Step: fat, Event: "e", Key: fmt.Sprint(c.n), OpenedAt: c.now}}}
		w.Approvals = []store.ApprovalChange{{Step: "a", Row: &ringi.ApprovalRow{Step: "a", OpenedAt: c.now}}}
		open, writes = append(open, w), append(writes, w)
	}
	for i, w := range c.open {
		end := nextOf(w, 1<<40+c.n+i)
		end.Run = &ringi.RunRow{Status: ringi.Completed, EndedAt: c.now}
		end.Tasks, end.Timers = []store.TaskChange{{}}, []store.TimerChange{{ID: fat}}
		end.Waits, end.Approvals = []store.WaitChange{{Step: fat}}, []store.ApprovalChange{{Step: "a"}}
		writes = append(writes, end)
	}
	c.open = open
	mustCommit(c.t, c.s, writes...)
	c.sweep()
}

func (c *churn) sweep() {
	c.t.Helper()
	ctx, s := c.t.Context(), c.s
	must := func(what string, got int, err error, want int) {
		c.t.Helper()
		if err != nil || got != want {
			c.t.Fatalf("%s: %d, %v, want %d", what, got, err, want)
		}
	}
	claim := store.Claim{Tenant: 1, Queue: "q", Max: perRound, Now: c.now, Handover: time.Hour}
	claimed, err := s.Claim(ctx, claim)
	must("claimed tasks", len(claimed), err, perRound)
	var beats []store.Beat
	for _, t := range claimed {
		beats = append(beats, store.Beat{Key: t.Key, Step: fat, Token: t.Token, Now: c.now})
	}
	_, err = s.Beat(ctx, beats...)
	must("heartbeats", 0, err, 0)
	timers, err := s.DueTimers(ctx, c.now, c.now.Add(time.Hour), perRound)
	must("claimed timers", len(timers), err, perRound)
	due, err := s.DueTasks(ctx, c.now.Add(2*time.Second), 10*perRound)
	must("tasks that are looked at", len(due), err, perRound)
	var settle store.Settlement
	for _, d := range due {
		settle.Checks = append(settle.Checks, store.Check{Key: d.Key, Lane: d.Row.Lane, Token: d.Token, At: c.now.Add(time.Hour)})
	}
	must("checks", 0, s.Settle(ctx, settle), 0)
	for i := range 10 {
		id := fmt.Sprint(c.n, "-", i)
		_, err = s.Send(ctx, 1, ringi.SentEvent{ID: id, Name: "none", Key: id, Data: []byte(`"` + fat + `"`), SentAt: c.now}, c.now.Add(time.Second))
		must("events", 0, err, 0)
	}
	pairs, err := s.Pairs(ctx, store.PairQuery{Limit: 1000})
	must("pairs", len(pairs), err, 0)
	_, err = s.Expire(ctx, c.now, 1000)
	must("expiry", 0, err, 0)
	none, err := s.Claim(ctx, claim)
	must("claimed tasks of an empty queue", len(none), err, 0)
}

func (c *churn) rounds(n int) {
	c.t.Helper()
	for range n {
		c.round()
	}
}

// TC-86: with a transaction open all the while, no claim and no sweep of a
// churning queue reads more at the end than at the beginning: the dead entries
// beside it are not walked again.
func TestClaimsAndSweepsStayFlatBesideALongTransaction(t *testing.T) {
	server := watchedServer(t)
	for _, text := range []string{"create database churn", "alter database churn set auto_explain.log_min_duration = -1"} {
		if err := server.Exec(t.Context(), "postgres", text); err != nil {
			t.Fatal(err)
		}
	}
	url := server.URL("churn")
	c := &churn{t: t, s: openStore(t, postgres.Config{URL: url}), now: time.Unix(1_800_000_000, 0).UTC()}
	watch, long := connect(t, server.URL("postgres")), connect(t, url)
	long.exec("begin transaction isolation level repeatable read; select count(*) from task")
	c.rounds(36) // until the floors follow
	costs(watch, "churn")
	c.rounds(5)
	early := costs(watch, "churn")
	c.rounds(40)
	costs(watch, "churn")
	c.rounds(5)
	late := costs(watch, "churn")
	swept := 0
	for id, x := range late {
		for _, part := range []string{"with c as materialized", "with d as materialized", "select t.tenant, t.run", "with x as materialized", "with k as materialized"} {
			if !strings.Contains(x.text, part) {
				continue
			}
			t.Logf("%5.0f -> %5.0f blocks: %s", early[id].blocks, x.blocks, x.text)
			if swept++; x.blocks > 1.5*early[id].blocks+16 {
				t.Errorf("reads %.0f blocks after %d tasks, %.0f before: it walks over what it left behind: %s", x.blocks, c.n, early[id].blocks, x.text)
			}
		}
	}
	if swept < 5 {
		t.Errorf("%d claims and sweeps were measured, want 5: %v", swept, late)
	}
}

// W26: the tables that churn keep their size: their own settings have them vacuumed
// after some hundred dead rows, and with a vacuum that often they do not grow.
func TestTablesThatChurnKeepTheirSize(t *testing.T) {
	server, err := pgtest.Start(t.Context(), pgtest.Config{Settings: map[string]string{"autovacuum": "off"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	c := &churn{t: t, s: openStore(t, postgres.Config{URL: server.URL("postgres")}), now: time.Unix(1_800_000_000, 0).UTC()}
	watch := connect(t, server.URL("postgres"))
	const between = 5 // rounds between two vacuums
	for _, table := range []string{"task", "timer"} {
		var threshold, scale float64
		row := watch.one(`select coalesce(max(option_value) filter (where option_name = 'autovacuum_vacuum_threshold'), '50') || ' ' ||
			coalesce(max(option_value) filter (where option_name = 'autovacuum_vacuum_scale_factor'), '0.2')
			from pg_class, pg_options_to_table(reloptions) where relname = '` + table + `'`)
		if _, err := fmt.Sscan(row, &threshold, &scale); err != nil {
			t.Fatal(err)
		}
		if threshold > between*perRound || scale > 0.02 {
			t.Errorf("table %s is vacuumed after %.0f dead rows and %v of all: a large one would wait for long", table, threshold, scale)
		}
	}
	size := func(vacuums int) (bytes int) {
		for range vacuums {
			c.rounds(between)
			watch.exec("vacuum task")
			watch.exec("vacuum timer")
		}
		row := watch.one(`select sum(pg_total_relation_size(relid)) from pg_stat_user_tables where relname in ('task', 'timer')`)
		if _, err := fmt.Sscan(row, &bytes); err != nil {
			t.Fatal(err)
		}
		return bytes
	}
	first := size(2)
	for range 3 {
		if again := size(3); again > first*3/2 {
			t.Errorf("tables of %d tasks had %d bytes after 2 vacuums and have %d", 2*perRound, first, again)
		}
	}
	if err := c.s.Close(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes; updates, of which touched no index: %v", first, watch.rows(`select relname, n_tup_upd, n_tup_hot_upd, n_dead_tup from pg_stat_user_tables where n_tup_upd > 0`))
}
