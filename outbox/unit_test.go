package outbox_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/postgres"
)

const stockTable = `create table stock (id varchar(64) primary key, n integer not null)`

// subject is a unit of work on one database, with the business change of the
// tests: a row of stock.
type subject[T any] struct {
	*outbox.UnitOfWork[T]
	exec func(ctx context.Context, tx T, id string) error
	db   *sql.DB // the same database, to look at
}

// reserve is the business change.
func (s subject[T]) reserve(id string) func(context.Context, T) error {
	return func(ctx context.Context, tx T) error { return s.exec(ctx, tx, id) }
}

// want checks what stands: rows of stock and messages.
func (s subject[T]) want(t *testing.T, stock, messages int) {
	t.Helper()
	var a, b int
	if err := s.db.QueryRow(`select (select count(*) from stock), (select count(*) from outbox)`).Scan(&a, &b); err != nil {
		t.Fatal(err)
	}
	if a != stock || b != messages {
		t.Errorf("%d changes and %d messages stand, want %d and %d", a, b, stock, messages)
	}
}

func execSQL(d dialect) func(ctx context.Context, tx *sql.Tx, id string) error {
	return func(ctx context.Context, tx *sql.Tx, id string) error {
		_, err := tx.ExecContext(ctx, d.places(`insert into stock values ($1, 1)`), id)
		return err
	}
}

// unit makes a unit of work on an empty database.
func (d dialect) unit(t *testing.T) subject[*sql.Tx] {
	db, _ := d.empty(t)
	return newSubject(t, db, &outbox.SQL{DB: db, Insert: d.insert}, execSQL(d))
}

func pgxUnit(t *testing.T) subject[pgx.Tx] {
	url := postgresURL(t)
	db := openPostgres(t, url)
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return newSubject(t, db, postgres.Pool{Pool: pool}, func(ctx context.Context, tx pgx.Tx, id string) error {
		_, err := tx.Exec(ctx, `insert into stock values ($1, 1)`, id)
		return err
	})
}

func newSubject[T any](t *testing.T, db *sql.DB, database outbox.Database[T], exec func(context.Context, T, string) error) subject[T] {
	t.Helper()
	if _, err := db.Exec(stockTable); err != nil {
		t.Fatal(err)
	}
	n := 0
	return subject[T]{
		UnitOfWork: &outbox.UnitOfWork[T]{Database: database, Stamp: outbox.Stamp{
			Now:   func() time.Time { return begin },
			NewID: func(time.Time) string { n++; return id(n) },
		}},
		exec: exec, db: db,
	}
}

// eachUnit runs a test on every database of a unit of work.
func eachUnit(t *testing.T, test func(*testing.T, subject[*sql.Tx]), pgxTest func(*testing.T, subject[pgx.Tx])) {
	for _, d := range []dialect{dialectSQLite, dialectPostgres, dialectMySQL} {
		t.Run(string(d), func(t *testing.T) { test(t, d.unit(t)) })
	}
	t.Run("pgx", func(t *testing.T) { pgxTest(t, pgxUnit(t)) })
}

// reserved is the message about a change, as a program writes it.
func reserved(order string) outbox.Message {
	return outbox.Message{Tenant: 1, AggregateType: "Order", AggregateID: order, Type: "inventory.reserved", Payload: []byte(`{}`)}
}

var errWork = errors.New("out of stock")

func changeAndMessage[T any](t *testing.T, s subject[T]) {
	woken := 0
	s.Wake = func() { woken++ }
	if err := s.Add(t.Context(), reserved("o-1")); err != nil {
		t.Fatal(err)
	}
	if err := s.Do(t.Context(), func(ctx context.Context, tx T) error {
		if err := s.Add(ctx, reserved("o-2"), reserved("o-1")); err != nil {
			return err
		}
		return s.exec(ctx, tx, "a")
	}); err != nil {
		t.Fatal(err)
	}
	s.want(t, 1, 3)
	if s.Pending() != 0 || woken != 1 {
		t.Errorf("%d messages wait after the commit, the relay was woken %d times", s.Pending(), woken)
	}
	if err := s.Do(t.Context(), s.reserve("b")); err != nil { // no message: none is repeated
		t.Fatal(err)
	}
	s.want(t, 2, 3)
	var seqs string
	if err := s.db.QueryRow(`select concat((select max(seq) from outbox where aggregateid = 'o-1'), '/', (select max(seq) from outbox where aggregateid = 'o-2'))`).Scan(&seqs); err != nil || seqs != "2/1" {
		t.Errorf("numbers %s, %v, want 2/1", seqs, err)
	}
}

func TestAChangeAndItsMessagesCommitTogether(t *testing.T) { // O1, O4
	eachUnit(t, changeAndMessage, changeAndMessage)
}

func failedWork[T any](t *testing.T, s subject[T]) {
	if err := s.Add(t.Context(), reserved("o-1")); err != nil {
		t.Fatal(err)
	}
	for name, work := range map[string]func(context.Context, T) error{
		"the work fails": func(ctx context.Context, tx T) error {
			return errors.Join(s.exec(ctx, tx, "a"), s.Add(ctx, reserved("o-2")), errWork)
		},
		"the work panics": func(ctx context.Context, tx T) error {
			panic(errors.Join(s.exec(ctx, tx, "a"), s.Add(ctx, reserved("o-2")), errWork))
		},
		"the context ends": func(ctx context.Context, tx T) error {
			ended, cancel := context.WithCancel(ctx)
			cancel()
			return s.exec(ended, tx, "a")
		},
	} {
		func() {
			defer func() {
				if p := recover(); (p != nil) != strings.Contains(name, "panics") {
					t.Errorf("%s: recovered %v", name, p)
				}
			}()
			if err := s.Do(t.Context(), work); err == nil {
				t.Errorf("%s: no error", name)
			}
		}()
		s.want(t, 0, 0)
		if s.Pending() != 1 {
			t.Errorf("%s: %d messages wait, want the one that was added before", name, s.Pending())
		}
	}
	if err := s.Do(t.Context(), s.reserve("a")); err != nil { // and it can be tried again
		t.Fatal(err)
	}
	s.want(t, 1, 1)
}

func TestWorkThatFailsLeavesNothing(t *testing.T) { // O1, O4
	eachUnit(t, failedWork, failedWork)
}

func failedMessage[T any](t *testing.T, s subject[T]) {
	if err := s.Add(t.Context(), reserved("o-1")); err != nil {
		t.Fatal(err)
	}
	if err := s.Do(t.Context(), s.reserve("a")); err != nil {
		t.Fatal(err)
	}
	m := reserved("o-1")
	m.ID = id(1)
	if err := s.Add(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	// As after a commit whose answer was lost: the same message comes again.
	if err := s.Do(t.Context(), s.reserve("b")); !errors.Is(err, outbox.ErrDuplicate) {
		t.Errorf("got %v", err)
	}
	s.want(t, 1, 1)
	if err := s.Add(t.Context(), reserved("o-2")); err != nil {
		t.Fatal(err)
	}
	if err := s.Do(t.Context(), s.reserve("b")); !errors.Is(err, outbox.ErrDuplicate) { // among several, too
		t.Errorf("got %v", err)
	}
	s.want(t, 1, 1)
	s.Forget()
	if err := s.Do(t.Context(), s.reserve("b")); err != nil {
		t.Fatal(err)
	}
	s.want(t, 2, 1)
}

func TestAMessageThatFailsTakesTheChangeWithIt(t *testing.T) { // O1, O-14
	eachUnit(t, failedMessage, failedMessage)
}

func joined[T any](t *testing.T, s subject[T]) {
	if err := s.Add(t.Context(), reserved("o-1")); err != nil {
		t.Fatal(err)
	}
	for _, commit := range []bool{false, true} {
		tx, err := s.Database.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Join(t.Context(), tx, s.reserve("a")); err != nil {
			t.Fatal(err)
		}
		if s.Pending() != 1 {
			t.Error("the message was forgotten before the commit")
		}
		end := s.Database.Rollback
		if commit {
			end = s.Database.Commit
		}
		if err := end(t.Context(), tx); err != nil {
			t.Fatal(err)
		}
	}
	s.Forget()
	s.want(t, 1, 1)
}

func TestAUnitJoinsTheTransactionOfItsCaller(t *testing.T) { // O4
	eachUnit(t, joined, joined)
}

func nested[T any](t *testing.T, s subject[T]) {
	if err := s.Add(t.Context(), reserved("o-1")); err != nil {
		t.Fatal(err)
	}
	begun := func(ctx context.Context, tx T) error {
		return errors.Join(s.Do(ctx, s.reserve("inner")), s.exec(ctx, tx, "outer"))
	}
	if err := s.Do(t.Context(), begun); !errors.Is(err, outbox.ErrNested) {
		t.Errorf("Do inside Do: %v", err)
	}
	again := func(ctx context.Context, tx T) error { return s.Join(ctx, tx, nil) }
	if err := s.Do(t.Context(), again); !errors.Is(err, outbox.ErrNested) {
		t.Errorf("Join inside Do: %v", err)
	}
	s.want(t, 0, 0)
	if s.Pending() != 1 {
		t.Errorf("%d messages wait, want the one that was added before", s.Pending())
	}
	forgets := func(context.Context, T) error { s.Forget(); return errWork }
	if err := s.Do(t.Context(), forgets); !errors.Is(err, errWork) {
		t.Errorf("work that forgets: %v", err)
	}
	if err := s.Do(t.Context(), s.reserve("a")); err != nil { // no lock is left behind
		t.Fatal(err)
	}
	s.want(t, 1, 0)
}

func TestAUnitInsideItsOwnWorkCommitsNothing(t *testing.T) { // O1, O4
	eachUnit(t, nested, nested)
}

type traceKey struct{}

func TestAMessageIsCompleteWhenItIsAdded(t *testing.T) {
	s := outbox.Stamp{
		Trace: func(ctx context.Context) map[string]string {
			return map[string]string{"traceparent": ctx.Value(traceKey{}).(string), "x": "trace"}
		},
		Routes: outbox.Routes{
			{AggregateType: "Order", Type: "audit.*", Destination: "archive"},
			{Type: "inventory.reserved", Destination: "events", MostBytes: 100},
			{AggregateType: "None", Destination: "nowhere"},
		},
	}
	ctx := context.WithValue(t.Context(), traceKey{}, "00-aa-bb-01")
	m := reserved("o-1")
	m.Headers = map[string]string{"x": "mine"}
	if err := s.Apply(ctx, &m); err != nil {
		t.Fatal(err)
	}
	if m.Headers["traceparent"] != "00-aa-bb-01" || m.Headers["x"] != "mine" || m.Destination != "events" || m.CreatedAt.IsZero() || m.ID[14] != '7' {
		t.Errorf("got %+v", m)
	}
	first := m.ID
	if err := s.Apply(ctx, &m); err != nil || m.ID != first { // O-14
		t.Errorf("the id changed: %s, %v", m.ID, err)
	}
	large := reserved("o-1")
	large.Payload = make([]byte, 90)
	if err := s.Apply(ctx, &large); err == nil || !strings.Contains(err.Error(), `"events" takes at most 100`) { // O-23
		t.Errorf("a message too large for its destination: %v", err)
	}
	large.Payload = make([]byte, 5<<20) // O-23
	large.Type = "audit.log"
	if err := s.Apply(ctx, &large); err == nil || large.Destination != "archive" {
		t.Errorf("5 MB for %q: %v", large.Destination, err)
	}
	plain := reserved("o-1")
	plain.Type, plain.Destination = "other", "as before"
	if err := s.Apply(ctx, &plain); err != nil || plain.Destination != "as before" {
		t.Errorf("got %q, %v", plain.Destination, err)
	}
	if got := outbox.Topic(&plain); got != "outbox.event.Order" { // O8
		t.Errorf("topic %s", got)
	}
}

func TestNewIDsAreUUIDsOfVersion7(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		m := order(1, "a")
		m.ID = outbox.NewID(begin)
		if err := m.Check(); err != nil || seen[m.ID] || m.ID[14] != '7' || !strings.HasPrefix(m.ID, fmt.Sprintf("%08x", begin.UnixMilli()>>16)) {
			t.Fatalf("%s: %v", m.ID, err)
		}
		seen[m.ID] = true
	}
}

// O5: a hint is never waited for, and one that nobody took is not given twice.
func TestAHintIsKeptOnce(t *testing.T) {
	wake, hints := outbox.Waker()
	wake()
	wake()
	<-hints
	select {
	case <-hints:
		t.Error("two hints were kept")
	default:
	}
}
