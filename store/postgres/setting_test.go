package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
	"github.com/ringiflow/ringi/store/postgres"
	"github.com/ringiflow/ringi/store/postgres/pgtest"
)

// W14, W31: on a server that answers before it flushes, whatever is answered is
// flushed nevertheless: an event and a definition as well as a commit.
func TestWhatIsAnsweredIsFlushedWhateverTheServerIsSetTo(t *testing.T) {
	server, err := pgtest.Start(t.Context(), pgtest.Config{Settings: map[string]string{
		"synchronous_commit": "off", "wal_writer_delay": "10s", "wal_writer_flush_after": "0", "autovacuum": "off",
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	crash := func() {
		t.Helper()
		if err := errors.Join(server.Crash(), server.Resume(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	own := openStore(t, postgres.Config{URL: server.URL("postgres")})
	pooled := openStore(t, postgres.Config{URL: server.URL("postgres") + "&default_query_exec_mode=exec"})
	now := time.Now()
	event := ringi.SentEvent{ID: "e", Name: "n", SentAt: now}
	if created, err := own.Send(t.Context(), 1, event, now.Add(time.Hour)); err != nil || !created {
		t.Fatalf("send: %v, %v", created, err)
	}
	crash()
	eventually(t, "the event to be there", func() error {
		created, err := own.Send(context.Background(), 1, event, now.Add(time.Hour))
		if err == nil && created {
			t.Error("an event that was answered is lost")
		}
		return err
	})
	d := store.Definition{Tenant: 1, Name: "d", Digest: "x", Source: []byte("y"), PublishedAt: now, PublishedBy: "p"}
	said := store.AuditRecord{At: now, Actor: "p", Kind: "publish", Answer: "accepted"}
	eventually(t, "the definition to be stored", func() error {
		_, _, err := pooled.PutDefinition(context.Background(), d, said)
		return err
	})
	crash()
	eventually(t, "the definition to be there", func() error {
		_, err := pooled.Definition(context.Background(), 1, "d", 1)
		if errors.Is(err, store.ErrNotFound) {
			t.Error("a definition that was answered is lost")
			return nil
		}
		return err
	})
}

// W6: whatever isolation the role is set to, a write waits for another one and
// then sees what it did; behind a pooler, where that cannot be set, it is said.
func TestAStricterIsolationOfTheRoleMakesNothingFail(t *testing.T) {
	admin, url := role(t, -1)
	name := url[strings.LastIndex(url, "/")+1 : strings.Index(url, "?")]
	admin.exec("alter role " + name + " set default_transaction_isolation = 'repeatable read'")
	var told []string
	warn := func(text string) { told = append(told, text) }
	s := openStore(t, postgres.Config{URL: url, Warn: warn})
	if err := s.Probe(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	other := connect(t, url)
	other.exec("begin; update meta set value = 'y' where key = 'probe'")
	done := make(chan error, 1)
	go func() { done <- s.Probe(context.Background(), 1) }()
	eventually(t, "the write to wait", func() error {
		if n := admin.one("select count(*) from pg_stat_activity where datname = '" + name + "' and wait_event_type = 'Lock'"); n != "1" {
			return fmt.Errorf("%s wait", n)
		}
		return nil
	})
	other.exec("commit")
	if err := <-done; err != nil {
		t.Errorf("a write that had to wait for another one: %v", err)
	}
	if len(told) != 0 {
		t.Errorf("told %q, want nothing", told)
	}
	openStore(t, postgres.Config{URL: url + "&default_query_exec_mode=exec", Warn: warn})
	if len(told) != 1 || !strings.Contains(told[0], "default_transaction_isolation is repeatable read") {
		t.Errorf("told %q, want one warning", told)
	}
}

// W14: what a role or an address says of the encoding of texts changes none of
// ours: a start key that is stored as another text makes a second run.
func TestTextsAreStoredAsTheyAre(t *testing.T) {
	admin, url := role(t, -1)
	name := url[strings.LastIndex(url, "/")+1 : strings.Index(url, "?")]
	admin.exec("alter role " + name + " set client_encoding = 'LATIN1'")
	for i, params := range []string{"", "&default_query_exec_mode=exec", "&client_encoding=LATIN1"} {
		s := openStore(t, postgres.Config{URL: url + params})
		w := startOf(i+1, 10)
		w.Start.StartKey = fmt.Sprint("żółw ", i)
		mustCommit(t, s, w)
	}
	want := "{\"żółw 0\",\"żółw 1\",\"żółw 2\"}"
	if got := connect(t, url+"&client_encoding=UTF8").one("select array_agg(key order by key) from run"); got != want {
		t.Errorf("stored %s, want %s", got, want)
	}
}
