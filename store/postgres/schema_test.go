package postgres_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/store"
	"github.com/ringiflow/ringi/store/postgres"
)

// W31: nodes that start at once on an empty database find one another's tables.
func TestNodesThatStartAtOnceMakeTheTablesOnce(t *testing.T) {
	url := database(t)
	var wg sync.WaitGroup
	for n := range 6 {
		wg.Go(func() {
			s, err := postgres.Open(t.Context(), postgres.Config{URL: url})
			if err != nil {
				t.Errorf("node %d: %v", n, err)
				return
			}
			if _, err := s.Commit(t.Context(), startOf(n+1, 10)); err != nil {
				t.Errorf("node %d: %v", n, err)
			}
			if err := s.Close(); err != nil {
				t.Errorf("node %d: %v", n, err)
			}
		})
	}
	wg.Wait()
	if n := connect(t, url).one("select count(*) from log"); n != "6" {
		t.Errorf("%s runs, want 6", n)
	}
}

// The number of a database's schema says which migrations it has, so that no two
// have one number.
func TestMigrationsAreNumberedInTheirOrder(t *testing.T) {
	files, err := filepath.Glob("migrations/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d migrations, %v", len(files), err)
	}
	for i, file := range files {
		if want := fmt.Sprintf("%03d_", i+1); !strings.HasPrefix(filepath.Base(file), want) {
			t.Errorf("migration %s: its name must begin with %s", file, want)
		}
	}
}

// Nodes of different versions: a newer schema is refused only when this program
// would harm it.
func TestAnotherSchemaIsRefusedOnlyWhenThisProgramWouldHarmIt(t *testing.T) {
	url := database(t)
	openStore(t, postgres.Config{URL: url})
	beside := connect(t, url)
	open := func(schema, oldest int) (serve, read error) {
		beside.exec(fmt.Sprintf("update meta set value = case key when 'schema' then '%d' else '%d' end where key in ('schema', 'oldest')", schema, oldest))
		for err, open := range map[*error]func() (*postgres.Store, error){
			&serve: func() (*postgres.Store, error) { return postgres.Open(t.Context(), postgres.Config{URL: url}) },
			&read:  func() (*postgres.Store, error) { return postgres.OpenReading(t.Context(), postgres.Config{URL: url}) },
		} {
			s, failed := open()
			if *err = failed; failed == nil {
				*err = s.Close()
			}
		}
		return serve, read
	}
	if serve, read := open(99, 1); serve != nil || read != nil {
		t.Errorf("a newer schema that only adds: %v, %v", serve, read)
	}
	if serve, read := open(99, 98); serve == nil || read == nil || !strings.Contains(serve.Error(), "schema 99") || !strings.Contains(read.Error(), "run the newer ringi") {
		t.Errorf("a newer schema that this program would harm: %v, %v, want a refusal that says what to do", serve, read)
	}
}

func TestWhatIsNoDatabaseOfRingiIsRefused(t *testing.T) {
	foreign, latin, empty := database(t), "latin", database(t)
	connect(t, foreign).exec("create table log (line text)")
	if err := server(t).Exec(t.Context(), "postgres", "create database latin encoding latin1 template template0"); err != nil {
		t.Fatal(err)
	}
	latin = server(t).URL(latin)
	for url, want := range map[string]string{
		foreign: "search_path", latin: "encoding UTF8", "": "give postgres://", "postgres://x:y": "parse", empty + "&default_query_exec_mode=odd": "leave it out",
		server(t).URL("nowhere"): "does not exist",
	} {
		if _, err := postgres.Open(t.Context(), postgres.Config{URL: url}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", url, err, want)
		}
	}
	if _, err := postgres.OpenReading(t.Context(), postgres.Config{URL: empty}); err == nil || !strings.Contains(err.Error(), "no tables of ringi's") {
		t.Errorf("reading an empty database: %v", err)
	}
	if n := connect(t, empty).one("select count(*) from pg_stat_user_tables"); n != "0" {
		t.Errorf("reading made %s tables", n)
	}
	connect(t, foreign).exec("create schema ringi")
	s := openStore(t, postgres.Config{URL: foreign + "&search_path=ringi"})
	mustCommit(t, s, startOf(1, 10))
}

func TestReadingChangesNothing(t *testing.T) {
	url := database(t)
	s := openStore(t, postgres.Config{URL: url})
	w := startOf(1, 10)
	mustCommit(t, s, w)
	r, err := postgres.OpenReading(t.Context(), postgres.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if !stands(t, r, w) {
		t.Error("the run is not read")
	}
	if _, err := r.Commit(t.Context(), nextOf(w, 2)); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("a commit: %v, want ErrUnavailable", err)
	}
}

// A batch that does not fit into one message, and a write that alone does not.
func TestABatchOfAnySizeIsOneTransaction(t *testing.T) { // TC-79
	for _, mode := range []string{"", "&default_query_exec_mode=exec"} {
		url := database(t)
		s := openStore(t, postgres.Config{URL: url + mode})
		var writes []store.Write
		for n := range 60 {
			writes = append(writes, startOf(n+1, 10_000))
		}
		writes[7] = startOf(8, 1<<20)
		writes[9] = writes[8]
		writes[9].Key.Run = "0197e000-0000-7000-8000-000000000001"
		writes[9].Start = &store.StartRow{Definition: "order", Title: "\x00"}
		var bad *store.BadWrite
		if _, err := s.Commit(t.Context(), writes...); !errors.As(err, &bad) || bad.Index != 9 {
			t.Fatalf("answer %v, want BadWrite 9", err)
		}
		watch := connect(t, url)
		if n := watch.one("select count(*) from log"); n != "0" {
			t.Errorf("%s rows of a batch that was refused", n)
		}
		writes = append(writes[:9], writes[10:]...)
		mustCommit(t, s, writes...)
		mustCommit(t, s, writes...)
		if n := watch.one("select count(*) || ' in ' || count(distinct xmin::text) from log"); n != "59 in 1" {
			t.Errorf("%s transactions, want 59 in 1", n)
		}
		loaded, err := s.Load(t.Context(), writes[7].Key)
		if err != nil || len(loaded[0].Rows) != 1 || len(loaded[0].Rows[0].Body) != 1<<20+8 {
			t.Errorf("the large write came back as %d rows, %v", len(loaded[0].Rows), err)
		}
	}
}

func TestAServerThatMayLoseAnswersIsWarnedOf(t *testing.T) {
	url := database(t)
	connect(t, url).exec("alter database " + url[strings.LastIndex(url, "/")+1:strings.Index(url, "?")] + " set synchronous_commit = local")
	var told []string
	s := openStore(t, postgres.Config{URL: url, Warn: func(text string) { told = append(told, text) }})
	mustCommit(t, s, startOf(1, 10))
	if len(told) != 1 || !strings.Contains(told[0], "synchronous_commit is local") {
		t.Errorf("told %q, want one warning", told)
	}
}

// A server's database of an earlier version has the tables of that version's
// outbox too.
func TestAnOutboxOfAnEarlierVersionIsBroughtUpToDate(t *testing.T) {
	url := database(t)
	if err := openStore(t, postgres.Config{URL: url}).Close(); err != nil {
		t.Fatal(err)
	}
	older, err := os.ReadFile("../../outbox/testdata/schema_before_lease_end.postgres.sql")
	if err != nil {
		t.Fatal(err)
	}
	connect(t, url).exec("drop table outbox, outbox_change; " + string(older) + "; update meta set value = '4' where key = 'schema'")
	s := openStore(t, postgres.Config{URL: url})
	if _, err := s.Outbox().Changes(t.Context(), 1); err != nil {
		t.Error(err)
	}
	if _, err := s.Outbox().Claim(t.Context(), outbox.Claim{By: "r", Now: time.Unix(1, 0), Lease: time.Second, Limit: 1}); err != nil {
		t.Error(err)
	}
}
