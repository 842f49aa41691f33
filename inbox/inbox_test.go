package inbox_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/ringiflow/ringi/inbox"
	"github.com/ringiflow/ringi/inbox/postgres"
	"github.com/ringiflow/ringi/servertest"
	"github.com/ringiflow/ringi/store/postgres/pgtest"
)

// begin is the first moment of every virtual clock in these tests.
var begin = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

// The PostgreSQL and the MariaDB that the tests share.
var (
	server *pgtest.Server
	maria  *servertest.Server
)

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if server, err = pgtest.Start(context.Background(), pgtest.Config{}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer server.Close()
		if maria, err = servertest.MariaDB(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer maria.Close()
		return m.Run()
	}())
}

var schemas atomic.Int64

// postgresURL returns the address of an empty schema.
func postgresURL(t *testing.T) string {
	t.Helper()
	schema := fmt.Sprint("t", schemas.Add(1))
	if err := server.Exec(t.Context(), "postgres", "create schema "+schema); err != nil {
		t.Fatal(err)
	}
	return server.SocketURL("postgres") + "&search_path=" + schema
}

// open opens an empty inbox beside a table of effects.
func open(t *testing.T, driver, url string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	for range 2 { // a schema may run again
		for _, statement := range dialectOf(db).Schema() {
			if _, err := db.Exec(statement); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := db.Exec(`create table effect (message text not null)`); err != nil {
		t.Fatal(err)
	}
	return db
}

// eachDatabase runs a test on every database.
func eachDatabase(t *testing.T, test func(t *testing.T, db *sql.DB)) {
	t.Run("sqlite", func(t *testing.T) {
		test(t, open(t, "sqlite", "file:"+filepath.Join(t.TempDir(), "inbox.db")+"?_txlock=immediate&_pragma=journal_mode(wal)&_pragma=busy_timeout(10000)"))
	})
	t.Run("postgres", func(t *testing.T) { test(t, open(t, "pgx", postgresURL(t))) })
	t.Run("mysql", func(t *testing.T) { test(t, open(t, "mysql", mysqlURL(t))) })
}

// dialectOf tells the dialect by the driver.
func dialectOf(db *sql.DB) inbox.Dialect {
	if _, is := db.Driver().(*mysql.MySQLDriver); is {
		return inbox.MySQL
	}
	return inbox.Standard
}

// mysqlURL returns the address of an empty database.
func mysqlURL(t *testing.T) string {
	t.Helper()
	db, err := sql.Open("mysql", "root@tcp("+maria.Address()+")/")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	name := fmt.Sprint("t", schemas.Add(1))
	if _, err := db.Exec("create database " + name); err != nil {
		t.Fatal(err)
	}
	return "root@tcp(" + maria.Address() + ")/" + name
}

// effect is the work of the tests.
func effect(id string) func(context.Context, *sql.Tx) error {
	return func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `insert into effect values ('`+id+`')`)
		return err
	}
}

func wantEffects(t *testing.T, db *sql.DB, want int) {
	t.Helper()
	var n int
	if err := db.QueryRow(`select count(*) from effect`).Scan(&n); err != nil || n != want {
		t.Errorf("%d effects, %v, want %d", n, err, want)
	}
}

// clock is the virtual clock of a consumer.
type clock struct{ now time.Time }

func consumer(t *testing.T, db *sql.DB, change func(*inbox.Config)) (*inbox.Consumer, *clock) {
	t.Helper()
	c := &clock{begin}
	cfg := inbox.Config{DB: db, Dialect: dialectOf(db), Name: "billing", Attempts: 3, Now: func() time.Time { return c.now }}
	if change != nil {
		change(&cfg)
	}
	made, err := inbox.NewConsumer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return made, c
}

var errWork = errors.New("no such customer")

// received checks what became of a delivery.
func received(t *testing.T, got inbox.Outcome, err error, want inbox.Outcome, wantErr error) {
	t.Helper()
	if got != want || !errors.Is(err, wantErr) || (err != nil) != (wantErr != nil) {
		t.Errorf("outcome %d, %v, want %d, %v", got, err, want, wantErr)
	}
}

func TestARepeatDoesNothing(t *testing.T) { // O9, O-11
	eachDatabase(t, func(t *testing.T, db *sql.DB) {
		for i := range 3 {
			tx, err := db.Begin()
			if err != nil {
				t.Fatal(err)
			}
			fresh, err := dialectOf(db).Handle(t.Context(), tx, "billing", "m-1", func(ctx context.Context) error { return effect("m-1")(ctx, tx) })
			if err != nil || fresh != (i == 0) {
				t.Errorf("delivery %d: fresh %v, %v", i, fresh, err)
			}
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
		}
		wantEffects(t, db, 1)
	})
}

func TestEachConsumerGetsTheMessage(t *testing.T) { // O-38
	eachDatabase(t, func(t *testing.T, db *sql.DB) {
		for _, name := range []string{"billing", "shipping"} {
			c, _ := consumer(t, db, func(cfg *inbox.Config) { cfg.Name = name })
			got, err := c.Receive(t.Context(), inbox.Delivery{ID: "m-1"}, effect("m-1"))
			received(t, got, err, inbox.Handled, nil)
		}
		wantEffects(t, db, 2)
	})
}

// Case and spaces at the end make another message, and another consumer.
func TestIdsAreComparedByteByByte(t *testing.T) { // O-35
	eachDatabase(t, func(t *testing.T, db *sql.DB) {
		for _, name := range []string{"billing", "Billing", "billing "} {
			c, _ := consumer(t, db, func(cfg *inbox.Config) { cfg.Name = name })
			for _, id := range []string{"m", "M", "m "} {
				got, err := c.Receive(t.Context(), inbox.Delivery{ID: id}, effect("x"))
				received(t, got, err, inbox.Handled, nil)
			}
		}
		wantEffects(t, db, 9)
	})
}

func TestTwoCopiesAtTheSameMomentHaveOneEffect(t *testing.T) { // O-35
	eachDatabase(t, func(t *testing.T, db *sql.DB) {
		c, _ := consumer(t, db, nil)
		var handled, repeated atomic.Int64
		for n := range 10 {
			id := fmt.Sprint("m-", n)
			var both sync.WaitGroup
			for range 4 {
				both.Go(func() {
					got, err := c.Receive(t.Context(), inbox.Delivery{ID: id}, effect(id))
					switch {
					case err != nil:
						t.Error(err)
					case got == inbox.Handled:
						handled.Add(1)
					case got == inbox.Repeated:
						repeated.Add(1)
					}
				})
			}
			both.Wait()
		}
		wantEffects(t, db, 10)
		if handled.Load() != 10 || repeated.Load() != 30 {
			t.Errorf("%d handled, %d repeated", handled.Load(), repeated.Load())
		}
	})
}

func TestWorkThatFailsLeavesNoTraceAndComesAgain(t *testing.T) { // O9
	eachDatabase(t, func(t *testing.T, db *sql.DB) {
		c, _ := consumer(t, db, nil)
		got, err := c.Receive(t.Context(), inbox.Delivery{ID: "m-1"}, func(ctx context.Context, tx *sql.Tx) error {
			return errors.Join(effect("m-1")(ctx, tx), errWork)
		})
		received(t, got, err, inbox.Failed, errWork)
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic was swallowed")
				}
			}()
			_, err := c.Receive(t.Context(), inbox.Delivery{ID: "m-1"}, func(ctx context.Context, tx *sql.Tx) error {
				panic(effect("m-1")(ctx, tx))
			})
			t.Error("it came back", err)
		}()
		wantEffects(t, db, 0)
		got, err = c.Receive(t.Context(), inbox.Delivery{ID: "m-1"}, effect("m-1"))
		received(t, got, err, inbox.Handled, nil)
		wantEffects(t, db, 1)
	})
}

func TestAMessageThatFailsTooOftenIsSetAsideWhole(t *testing.T) { // O-26
	eachDatabase(t, func(t *testing.T, db *sql.DB) {
		c, _ := consumer(t, db, nil)
		fails := func(context.Context, *sql.Tx) error { return errWork }
		d := inbox.Delivery{ID: "m-1", Body: []byte{0, 255, '{'}, Headers: map[string]string{"type": "order.placed"}}
		for _, want := range []inbox.Outcome{inbox.Failed, inbox.Failed, inbox.Poisoned} {
			got, err := c.Receive(t.Context(), d, fails)
			received(t, got, err, want, errWork)
		}
		got, err := c.Receive(t.Context(), d, effect("m-1"))
		received(t, got, err, inbox.Poisoned, nil)
		list, err := c.Poison(t.Context(), "", 10)
		if err != nil || len(list) != 1 || string(list[0].Body) != string(d.Body) || list[0].Headers["type"] != "order.placed" ||
			list[0].Failures != 3 || list[0].LastError != errWork.Error() || !list[0].PoisonedAt.Equal(begin) {
			t.Errorf("got %+v, %v", list, err)
		}
		again := func(fail error) func(context.Context, *sql.Tx, inbox.Poison) error {
			return func(ctx context.Context, tx *sql.Tx, p inbox.Poison) error {
				return errors.Join(effect(p.ID)(ctx, tx), fail)
			}
		}
		got, err = c.Retry(t.Context(), "m-1", again(errWork))
		received(t, got, err, inbox.Failed, errWork)
		wantEffects(t, db, 0)
		got, err = c.Retry(t.Context(), "m-1", again(nil))
		received(t, got, err, inbox.Handled, nil)
		got, err = c.Retry(t.Context(), "m-1", again(nil))
		received(t, got, err, inbox.Failed, inbox.ErrNotPoison)
		got, err = c.Receive(t.Context(), d, effect("m-1"))
		received(t, got, err, inbox.Repeated, nil)
		wantEffects(t, db, 1)
	})
}

func TestAMessageThatKillsTheConsumerIsSetAside(t *testing.T) { // O-17
	eachDatabase(t, func(t *testing.T, db *sql.DB) {
		c, _ := consumer(t, db, nil)
		got, err := c.Receive(t.Context(), inbox.Delivery{ID: "m-1", Attempt: 4}, effect("m-1")) // three before left no word
		if got != inbox.Poisoned || err == nil {
			t.Errorf("outcome %d, %v", got, err)
		}
		wantEffects(t, db, 0)
		if err := c.Drop(t.Context(), "m-1"); err != nil {
			t.Fatal(err)
		}
		if err := c.Drop(t.Context(), "m-1"); !errors.Is(err, inbox.ErrNotPoison) {
			t.Errorf("dropped twice: %v", err)
		}
	})
}

func TestAMessageWhoseWorkPanicsIsSetAside(t *testing.T) { // O-17
	eachDatabase(t, func(t *testing.T, db *sql.DB) {
		c, _ := consumer(t, db, nil)
		for range 3 { // as after three starts, with a broker that does not count
			func() {
				defer func() { _ = recover() }()
				got, err := c.Receive(t.Context(), inbox.Delivery{ID: "m-1"}, func(context.Context, *sql.Tx) error { panic("nil map") })
				t.Error("the panic was swallowed", got, err)
			}()
		}
		got, err := c.Receive(t.Context(), inbox.Delivery{ID: "m-1"}, effect("m-1"))
		received(t, got, err, inbox.Poisoned, nil)
		if list, err := c.Poison(t.Context(), "", 10); err != nil || len(list) != 1 || !strings.Contains(list[0].LastError, "nil map") {
			t.Errorf("got %+v, %v", list, err)
		}
	})
}

func TestALateFailureOfAnotherCopyLeavesWhatWasSetAside(t *testing.T) { // O-26, O-35
	eachDatabase(t, func(t *testing.T, db *sql.DB) {
		one, _ := consumer(t, db, nil)
		d := inbox.Delivery{ID: "m-1", Body: []byte("{}")}
		fails := func(context.Context, *sql.Tx) error { return errWork }
		got, err := one.Receive(t.Context(), d, fails)
		received(t, got, err, inbox.Failed, errWork)
		failed := false
		slow, _ := consumer(t, db, func(cfg *inbox.Config) {
			cfg.Now = func() time.Time {
				if failed { // it is about to write its failure down, its second look at the clock
					failed = false
					for _, want := range []inbox.Outcome{inbox.Failed, inbox.Poisoned} {
						got, err := one.Receive(t.Context(), d, fails)
						received(t, got, err, want, errWork)
					}
				}
				return begin
			}
		})
		got, err = slow.Receive(t.Context(), d, func(context.Context, *sql.Tx) error {
			failed = true
			return errWork
		})
		received(t, got, err, inbox.Failed, errWork)
		got, err = one.Receive(t.Context(), d, effect("m-1"))
		received(t, got, err, inbox.Poisoned, nil)
		if list, err := one.Poison(t.Context(), "", 10); err != nil || len(list) != 1 || string(list[0].Body) != "{}" {
			t.Errorf("got %+v, %v", list, err)
		}
	})
}

func TestSomeConsumersSetNothingAside(t *testing.T) { // O-8
	eachDatabase(t, func(t *testing.T, db *sql.DB) {
		c, _ := consumer(t, db, func(cfg *inbox.Config) { cfg.Attempts = -1 })
		for range 30 {
			got, err := c.Receive(t.Context(), inbox.Delivery{ID: "m-1", Attempt: 99}, func(context.Context, *sql.Tx) error { return errWork })
			received(t, got, err, inbox.Failed, errWork)
		}
	})
}

func TestAShutdownIsNoFailureOfTheMessage(t *testing.T) {
	eachDatabase(t, func(t *testing.T, db *sql.DB) {
		c, _ := consumer(t, db, func(cfg *inbox.Config) { cfg.Attempts = 1 })
		ctx, cancel := context.WithCancel(t.Context())
		got, err := c.Receive(ctx, inbox.Delivery{ID: "m-1"}, func(ctx context.Context, tx *sql.Tx) error {
			cancel()
			return effect("m-1")(ctx, tx)
		})
		received(t, got, err, inbox.Failed, context.Canceled)
		got, err = c.Receive(t.Context(), inbox.Delivery{ID: "m-1"}, effect("m-1"))
		received(t, got, err, inbox.Handled, nil)
	})
}

func TestIdsGoAfterTheirRetention(t *testing.T) { // O-37
	eachDatabase(t, func(t *testing.T, db *sql.DB) {
		c, clock := consumer(t, db, func(cfg *inbox.Config) { cfg.Retention = time.Hour })
		for n := range 5 {
			got, err := c.Receive(t.Context(), inbox.Delivery{ID: fmt.Sprint("m-", n)}, effect("x"))
			received(t, got, err, inbox.Handled, nil)
			clock.now = clock.now.Add(time.Minute)
		}
		got, err := c.Receive(t.Context(), inbox.Delivery{ID: "bad"}, func(context.Context, *sql.Tx) error { return errWork })
		received(t, got, err, inbox.Failed, errWork)
		clock.now = begin.Add(time.Hour + 3*time.Minute)
		for _, want := range []int{2, 1, 0} {
			if n, err := c.Prune(t.Context(), 2); n != want || err != nil {
				t.Errorf("pruned %d, %v, want %d", n, err, want)
			}
		}
		got, err = c.Receive(t.Context(), inbox.Delivery{ID: "m-3"}, effect("x"))
		received(t, got, err, inbox.Repeated, nil)
	})
}

func TestAConsumerRefusesWhatCannotWork(t *testing.T) {
	db := open(t, "sqlite", "file:"+filepath.Join(t.TempDir(), "inbox.db"))
	for name, cfg := range map[string]inbox.Config{
		"no database":         {Name: "a"},
		"no name":             {DB: db},
		"a name too long":     {DB: db, Name: strings.Repeat("a", inbox.MaxName+1)},
		"too short a memory":  {DB: db, Name: "a", Retention: time.Hour, Redelivery: 2 * time.Hour},
		"less than no memory": {DB: db, Name: "a", Retention: -1},
	} {
		if _, err := inbox.NewConsumer(cfg); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	c, _ := consumer(t, db, nil)
	for _, id := range []string{"", "a\x00b", "\xff", strings.Repeat("a", inbox.MaxName+1)} {
		if got, err := c.Receive(t.Context(), inbox.Delivery{ID: id}, effect("x")); got != inbox.Failed || err == nil {
			t.Errorf("id %.10q: %d, %v", id, got, err)
		}
	}
	wantEffects(t, db, 0)
}

func TestPgxHandlesAMessageOnce(t *testing.T) { // O9
	url := postgresURL(t)
	db := open(t, "pgx", url)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for i := range 2 {
		err := pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error {
			fresh, err := postgres.Handle(t.Context(), tx, "billing", "m-1", func(ctx context.Context) error {
				_, err := tx.Exec(ctx, `insert into effect values ('m-1')`)
				return err
			})
			if fresh != (i == 0) {
				t.Errorf("delivery %d: fresh %v", i, fresh)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	wantEffects(t, db, 1)
}
