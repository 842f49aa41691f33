package postgres_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/ringiflow/ringi/store"
	"github.com/ringiflow/ringi/store/postgres"
	"github.com/ringiflow/ringi/store/postgres/pgtest"
)

// W6, W31: a standby that lost the last commits is promoted under a running
// store: what was written on the lost history applies to no other, and the
// answers say that it is another database.
func TestAPromotedStandbyIsAnotherHistory(t *testing.T) {
	primary, err := pgtest.Start(t.Context(), pgtest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer primary.Close()
	standby, err := primary.Standby(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer standby.Close()
	s := openStore(t, postgres.Config{URL: fmt.Sprintf("postgres://ringi@/postgres?host=127.0.0.1,127.0.0.1&port=%d,%d&sslmode=disable", standby.Port(), primary.Port())})
	first := startOf(1, 10)
	before := mustCommit(t, s, first)
	eventually(t, "the standby to follow", func() error {
		r, err := postgres.OpenReading(t.Context(), postgres.Config{URL: standby.URL("postgres")})
		if err != nil {
			return err
		}
		loaded, err := r.Load(t.Context(), first.Key)
		if err == nil && len(loaded[0].Rows) == 0 {
			err = errors.New("not yet")
		}
		return errors.Join(err, r.Close())
	})
	if err := standby.Stop(); err != nil {
		t.Fatal(err)
	}
	lost, started := nextOf(first, 2), startOf(3, 10)
	started.Start.StartKey = "k"
	mustCommit(t, s, lost, started)
	if err := errors.Join(primary.Crash(), standby.Resume(t.Context())); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Commit(t.Context(), nextOf(lost, 4)); err == nil {
		t.Error("a commit without a primary")
	}
	if err := standby.Exec(t.Context(), "postgres", "select pg_promote()"); err != nil {
		t.Fatal(err)
	}
	var after store.Committed
	eventually(t, "the store to find the new primary", func() (err error) {
		after, err = s.Commit(t.Context())
		return err
	})
	if after.Incarnation == before.Incarnation {
		t.Errorf("the incarnation is still %s", after.Incarnation)
	}
	other := nextOf(first, 5) // another history of the same length
	again := startOf(6, 10)
	again.Start.StartKey = "k"
	if c := mustCommit(t, s, other, again); c.Incarnation != after.Incarnation {
		t.Errorf("incarnations %s and %s of one database", c.Incarnation, after.Incarnation)
	}
	c, err := s.Commit(t.Context(), nextOf(lost, 7), nextOf(started, 8))
	if err != nil || len(c.Lost) != 2 || c.Lost[0].What != store.CondSequence || c.Lost[1].What != store.CondSequence {
		t.Errorf("writes on the lost history: lost %+v, %v, want both on %s", c.Lost, err, store.CondSequence)
	}
	claim := store.Write{Key: first.Key, First: lost.Last + 1, Prev: lost.Head}
	if c, err = s.Commit(t.Context(), claim); err != nil || len(c.Lost) != 1 {
		t.Errorf("an answer from the lost history: lost %+v, %v, want it lost", c.Lost, err)
	}
}
