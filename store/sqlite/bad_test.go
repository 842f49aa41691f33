package sqlite_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
	"github.com/ringiflow/ringi/store/sqlite"
)

// hex is a run id as a literal of SQL.
func hex(id ringi.RunID) string { return "x'" + strings.ReplaceAll(string(id), "-", "") + "'" }

// edit changes rows by hand, as nobody should.
func edit(t *testing.T, s *sqlite.Store, statement string) {
	t.Helper()
	if err := s.Exec(statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// full starts a run with an approval, an incident, a task and a timer.
func full(n int) store.Write {
	w := startOf(n, 10)
	at := time.Unix(int64(1000+n), 0).UTC()
	w.Tasks = []store.TaskChange{{Row: &ringi.TaskRow{Queue: "q", Seq: 1, InputSeq: 1, ReadyAt: at}, Fresh: true}}
	w.Timers = []store.TimerChange{{ID: "t", Row: &ringi.TimerRow{ID: "t", FireAt: at}}}
	w.Approvals = []store.ApprovalChange{{Step: "ask", Row: &ringi.ApprovalRow{Step: "ask", OpenedAt: at, Approval: ringi.Approval{ExpiresAt: at.Add(time.Hour)}}}}
	w.Incidents = []store.IncidentChange{{ID: 1, Row: &ringi.Incident{ID: 1, Since: at}}}
	w.Snapshot = &store.Snapshot{Seq: 1, Format: 1, Body: []byte("{}")}
	return w
}

// named fails the test unless err names exactly one row of the run.
func named(t *testing.T, err error, table string, run ringi.RunID) {
	t.Helper()
	var u *store.Unreadable
	if !errors.As(err, &u) || errors.Is(err, store.ErrUnavailable) || len(u.Rows) == 0 ||
		slices.ContainsFunc(u.Rows, func(b store.BadRow) bool { return b.Table != table || b.Key.Run != run }) {
		t.Errorf("answer %v, want *Unreadable about %s of run %s and nothing else", err, table, run)
	}
}

// TC-80: rows of one run that cannot be read hide no others, and are named.
func TestARowThatCannotBeReadIsLeftOutAndNamed(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "ringi.db"))
	for n := 1; n <= 5; n++ {
		mustCommit(t, s, full(n))
	}
	bad := full(3).Key
	edit(t, s, "update approval set body = 'x' where run = "+hex(bad.Run))
	edit(t, s, "update incident set body = 'x' where run = "+hex(bad.Run))
	edit(t, s, "update run set labels = 'x' where id = "+hex(bad.Run))

	var asked, stuck, listed []ringi.RunID
	for after := ""; ; {
		list, next, err := s.Approvals(t.Context(), ringi.ApprovalQuery{Tenant: 1, After: after, Limit: 2})
		for _, a := range list {
			asked = append(asked, a.Run)
		}
		if after != "" {
			named(t, err, "approval", bad.Run)
		}
		if after = next; next == "" {
			break
		}
	}
	for after, pages := "", 0; ; pages++ {
		list, next, err := s.Incidents(t.Context(), ringi.IncidentQuery{Tenant: 1, After: after, Limit: 4})
		for _, a := range list {
			stuck = append(stuck, a.Run)
		}
		named(t, err, "incident", bad.Run)
		if len(list) != 4 {
			t.Errorf("a page of 4 has %d", len(list))
		}
		if after = next; next == "" || pages > 1 {
			break
		}
	}
	runs, _, err := s.Runs(t.Context(), ringi.RunQuery{Tenant: 1})
	named(t, err, "list", bad.Run)
	for _, r := range runs {
		listed = append(listed, r.Key.Run)
	}
	want := []ringi.RunID{full(1).Key.Run, full(2).Key.Run, full(4).Key.Run, full(5).Key.Run}
	if !slices.Equal(asked, want) || !slices.Equal(stuck, want) || len(listed) != 5 {
		t.Errorf("approvals of %v, incidents of %v, want %v; runs %v, want all five", asked, stuck, want, listed)
	}
	rows, err := s.Standing(t.Context(), bad)
	if len(rows.Tasks) != 1 || len(rows.Timers) != 1 || len(rows.Approvals)+len(rows.Incidents) != 0 || err == nil {
		t.Errorf("standing %+v, %v, want what can be read and an error that names the rest", rows, err)
	}
	if got, err := s.Run(t.Context(), bad); got.Definition != "order" || err == nil {
		t.Errorf("run %+v, %v, want the rest of the row and an error that names it", got, err)
	}
}

// W8: what replay reads shows every row that is not as ringi writes it.
func TestInspectNamesWhatContradictsItself(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "ringi.db"))
	mustCommit(t, s, full(1), full(2))
	bad := full(1).Key
	for _, c := range []struct{ statement, table string }{
		{"update run set status = 99", "list"},
		{"update run set repair_of = x'00'", "list"},
		{"update run set key = ''", "list"},
		{"update run set labels = '[]'", "list"},
		{"update approval set body = '{'", "approval"},
		{"update incident set body = '{'", "incident"},
		{"update incident set id = 9", "incident"},
		{"update incident set since = since + 1", "incident"},
	} {
		key := " where run = " + hex(bad.Run)
		if c.table == "list" {
			key = " where id = " + hex(bad.Run)
		}
		words := strings.Fields(c.statement)
		table, name := words[1], words[3]
		was, err := s.Cell(fmt.Sprintf("select quote(%s) from %s%s", name, table, key))
		if err != nil {
			t.Fatal(err)
		}
		edit(t, s, c.statement+key)
		x, err := s.Inspect(t.Context(), bad)
		if err != nil || len(x.Bad) != 1 || x.Bad[0].Table != c.table || x.Bad[0].Key != bad {
			t.Errorf("after %q: %v, %v, want one bad row of %s", c.statement, x.Bad, err, c.table)
		}
		edit(t, s, fmt.Sprintf("update %s set %s = %s%s", table, name, was, key))
		if x, err := s.Inspect(t.Context(), bad); err != nil || len(x.Bad) != 0 {
			t.Fatalf("%q was not undone: %v, %v", c.statement, x.Bad, err)
		}
	}
}

// W8: leftover rows are found whatever table they are in, also those that name
// no run.
func TestEveryTableLeavesATrace(t *testing.T) {
	tables := map[string]string{
		"log": "run", "run": "id", "snapshot": "run", "task": "run", "timer": "run", "wait": "run", "approval": "run", "incident": "run",
	}
	s := openStore(t, filepath.Join(t.TempDir(), "ringi.db"))
	w := full(1)
	w.Waits = []store.WaitChange{{Step: "w", Row: &ringi.WaitRow{Step: "w", Event: "e"}}}
	mustCommit(t, s, w)
	n := 1
	for table, column := range tables {
		n++
		left := startOf(n, 0).Key
		edit(t, s, fmt.Sprintf("update %s set %s = %s", table, column, hex(left.Run)))
		keys, err := s.Traces(t.Context(), store.Key{}, 100)
		if err != nil || !slices.Contains(keys, left) {
			t.Errorf("a row of %s under another run: traces %v, %v", table, keys, err)
		}
		edit(t, s, fmt.Sprintf("update %s set %s = x'00ff'", table, column))
		strays, err := s.Strays(t.Context(), 100)
		if err != nil || len(strays) != 1 || strays[0].Key.Run != "" || !strings.Contains(strays[0].String(), "00FF") {
			t.Errorf("a row of %s under no run: %v, %v", table, strays, err)
		}
		edit(t, s, fmt.Sprintf("update %s set %s = %s", table, column, hex(w.Key.Run)))
	}
}

// W5: a commit id only tells repeats; without one the log is still the truth.
func TestALogRowWithoutACommitIDIsRead(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "ringi.db"))
	w := startOf(1, 10)
	mustCommit(t, s, w)
	edit(t, s, "update log set commit_id = x'0102'")
	loaded, err := s.Load(t.Context(), w.Key)
	if err != nil || loaded[0].Err != nil || len(loaded[0].Rows) != 1 || loaded[0].Rows[0].Commit != (store.CommitID{}) {
		t.Errorf("loaded %+v, %v, want the row and no commit id", loaded, err)
	}
}
