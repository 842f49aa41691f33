package postgres_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
	"github.com/ringiflow/ringi/store/postgres"
)

// A planNode is a part of a plan as EXPLAIN tells it.
type planNode struct {
	Type  string     `json:"Node Type"`
	Table string     `json:"Relation Name"`
	Index string     `json:"Index Name"`
	Cond  string     `json:"Index Cond"`
	Plans []planNode `json:"Plans"`
}

// walks names the tables that a plan reads from their beginning to their end,
// by itself or along an index without a condition.
func (n planNode) walks() (list []string) {
	if n.Table != "" && n.Cond == "" && strings.Contains(n.Type, "Scan") {
		list = append(list, n.Type+" of "+n.Table)
	}
	for _, p := range n.Plans {
		list = append(list, p.walks()...)
	}
	return list
}

// W17: there is no statement that reads a table from its beginning to its end,
// whatever its arguments are, but those that are asked for everything.
func TestEveryStatementFindsItsRowsByAnIndex(t *testing.T) {
	all := map[string]string{
		"textQueues": "counts all tasks, for metrics and people",
		"textMeta":   "a table of four rows",
		"textForget": "a row for each server",
		"textSeen":   "a row for each server",
		"textRaise":  "a row for each server",
		"textUnsee":  "a row for each worker that was seen lately",
	}
	statements := postgres.Statements()
	declared := regexp.MustCompile(`(?m)^(?:const |var |\t)(text[A-Z]\w*) +(?:statement +=|= (?:statement\(|func\(\) statement))`)
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range sources {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range declared.FindAllStringSubmatch(string(text), -1) {
			if statements[m[1]] == "" {
				t.Errorf("%s: %s is not among the statements that are looked at; put it into export_test.go", file, m[1])
			}
		}
	}
	c := connect(t, emptyTables(t))
	fill(c, 300, 100)
	c.exec(`set plan_cache_mode = force_generic_plan; set enable_seqscan = off; set enable_hashjoin = off; set enable_mergejoin = off; set enable_bitmapscan = off`)
	for _, name := range slices.Sorted(maps.Keys(statements)) {
		text := statements[name]
		most := 0
		for _, m := range regexp.MustCompile(`\$(\d+)`).FindAllStringSubmatch(text, -1) {
			n, err := strconv.Atoi(m[1])
			if err != nil {
				t.Fatal(err)
			}
			most = max(most, n)
		}
		run := "x"
		if most > 0 {
			run += "(" + strings.Join(slices.Repeat([]string{"null"}, most), ", ") + ")"
		}
		var plans []struct{ Plan planNode }
		if err := json.Unmarshal([]byte(c.one(`prepare x as `+text+`; explain (format json) execute `+run)), &plans); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		c.exec(`deallocate x`)
		for _, p := range plans {
			if walks := p.Plan.walks(); len(walks) > 0 && all[name] == "" {
				t.Errorf("%s: %s\n%s", name, strings.Join(walks, ", "), text)
			}
		}
	}
}

// emptyTables is the address of a database of ringi's that is empty.
func emptyTables(t *testing.T) string {
	t.Helper()
	address := database(t)
	openStore(t, postgres.Config{URL: address})
	return address
}

// The sizes of a database that has run for long. make hot has a million.
var (
	manyFinished = flag.Int("finished", 10_000, "how many finished runs the hot path is measured beside")
	manyWaiting  = flag.Int("waiting", 1_000, "how many runs that wait it is measured beside")
)

// cost is what a statement reads and takes, on average.
type cost struct {
	calls, blocks, micros float64
	text                  string
}

// costs are those since the last time, by statement.
func costs(c sqlConn, database string) map[string]cost {
	of := map[string]cost{}
	for _, row := range c.rows(`select queryid, calls, (shared_blks_hit + shared_blks_read)::float / calls, 1000 * mean_exec_time, regexp_replace(left(query, 110), '\s+', ' ', 'g')
		from pg_stat_statements where dbid = (select oid from pg_database where datname = '` + database + `')
		and query not like 'create%' and query not like '%pg_stat%' and query ~ 'log|run|task|timer|wait|event|outbox|queue'`) {
		var x cost
		for i, to := range []*float64{&x.calls, &x.blocks, &x.micros} {
			n, err := strconv.ParseFloat(row[i+1], 64)
			if err != nil {
				c.t.Fatal(err)
			}
			*to = n
		}
		x.text = row[4]
		of[row[0]] = x
	}
	c.exec(`select pg_stat_statements_reset()`)
	return of
}

// W17: beside many finished runs and many that wait, no statement of the hot
// path reads more than beside none: an index grows by a level or two, and of one
// that is small, as that of messages on their way, all pages may be read.
func TestTheHotPathCostsTheSameBesideManyRuns(t *testing.T) {
	server := watchedServer(t)
	if err := server.Exec(context.Background(), "postgres", "create database many; alter database many set auto_explain.log_min_duration = -1"); err != nil {
		if err = server.Exec(context.Background(), "postgres", "create database many"); err != nil {
			t.Fatal(err)
		}
	}
	s := openStore(t, postgres.Config{URL: server.URL("many")})
	watch, within := connect(t, server.URL("postgres")), connect(t, server.URL("many"))
	now := time.Unix(1_800_000_000, 0).UTC()
	path(t, s, 100_000, now)
	costs(watch, "many")
	path(t, s, 200_000, now.Add(2*time.Minute))
	few := costs(watch, "many")
	fill(within, *manyFinished, *manyWaiting)
	within.exec(`vacuum analyze`)
	path(t, s, 300_000, now.Add(4*time.Minute))
	costs(watch, "many")
	path(t, s, 400_000, now.Add(6*time.Minute))
	many := costs(watch, "many")
	if len(many) < 20 {
		t.Fatalf("%d statements were measured, want more than 20", len(many))
	}
	var table strings.Builder
	for _, id := range slices.SortedFunc(maps.Keys(many), func(a, b string) int { return strings.Compare(many[a].text, many[b].text) }) {
		before, after := few[id], many[id]
		fmt.Fprintf(&table, "%6.0f calls, blocks %7.1f -> %7.1f, µs %7.0f -> %7.0f  %s\n", after.calls, before.blocks, after.blocks, before.micros, after.micros, after.text)
		if after.blocks > 3*before.blocks+64 && before.calls > 0 {
			t.Errorf("reads %.0f blocks beside %d finished runs and %d that wait, %.0f beside none: %s", after.blocks, *manyFinished, *manyWaiting, before.blocks, after.text)
		}
	}
	t.Logf("each statement, beside few runs and beside many:\n%s", table.String())
}

// S-16, TC-46: the sweep for events and waits that missed each other looks at
// what is new, and at what it has seen and nobody delivered, however old that is.
func TestAPairIsSeenUntilItIsDelivered(t *testing.T) {
	s := openStore(t, postgres.Config{URL: database(t)})
	now := time.Unix(1_800_000_000, 0).UTC()
	see := func(after time.Duration) int {
		t.Helper()
		now = now.Add(after)
		if _, err := s.DueTimers(t.Context(), now, now, 1); err != nil { // so that the store knows the time
			t.Fatal(err)
		}
		list, err := s.Pairs(t.Context(), store.PairQuery{Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	pair := func(n int, waitFirst bool) store.Write {
		w := startOf(n, 10)
		w.Waits = []store.WaitChange{{Step: "w", Row: &ringi.WaitRow{Step: "w", Event: "paid", Key: fmt.Sprint(n), OpenedAt: now}}}
		send := func() {
			if _, err := s.Send(t.Context(), 1, ringi.SentEvent{ID: fmt.Sprint(n), Name: "paid", Key: fmt.Sprint(n), SentAt: now}, now.AddDate(0, 0, 1)); err != nil {
				t.Fatal(err)
			}
		}
		if waitFirst {
			mustCommit(t, s, w)
		}
		if now = now.Add(5 * time.Minute); see(0) != 0 {
			t.Error("a pair before its second half came")
		}
		if send(); !waitFirst {
			w.Waits[0].Row.OpenedAt = now
			mustCommit(t, s, w)
		}
		return w
	}
	for n, waitFirst := range []bool{true, false} {
		w := pair(n+1, waitFirst)
		for range 4 {
			if got := see(4 * time.Minute); got != 1 {
				t.Errorf("wait first %v: %d pairs, want 1", waitFirst, got)
			}
		}
		gone := nextOf(w, 100+n)
		gone.Waits = []store.WaitChange{{Step: "w"}}
		mustCommit(t, s, gone)
		if got := see(time.Minute); got != 0 {
			t.Errorf("%d pairs after the delivery, want none", got)
		}
	}
}
