package outbox_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/mysql"
	"github.com/ringiflow/ringi/servertest"
)

// maria is the MariaDB that the tests of this package share; it is started by the
// first that asks.
var maria struct {
	once      sync.Once
	server    *servertest.Server
	err       error
	databases atomic.Int64
}

// mysqlURL returns the address of an empty database of its own, as the driver of
// database/sql is given it.
func mysqlURL(t testing.TB) string {
	t.Helper()
	maria.once.Do(func() { maria.server, maria.err = servertest.MariaDB(context.Background()) })
	if maria.err != nil {
		t.Fatal(maria.err)
	}
	return newMySQL(t, maria.server)
}

// newMySQL makes an empty database.
func newMySQL(t testing.TB, server *servertest.Server) string {
	t.Helper()
	db, err := sql.Open("mysql", "root@tcp("+server.Address()+")/")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	name := fmt.Sprint("t", maria.databases.Add(1))
	if _, err := db.Exec("create database " + name); err != nil {
		t.Fatal(err)
	}
	return "root@tcp(" + server.Address() + ")/" + name + "?interpolateParams=true"
}

// openMySQL opens an empty outbox in MariaDB.
func openMySQL(t testing.TB, url string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	for range 2 { // a schema may run again
		if err := mysql.Migrate(t.Context(), db); err != nil {
			t.Fatal(err)
		}
	}
	return db
}

// insertMySQL returns an insert that begins and commits a transaction of its own.
func insertMySQL(db *sql.DB) func(...outbox.Message) error {
	return func(msgs ...outbox.Message) error {
		tx, err := db.Begin()
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if err := mysql.Insert(context.Background(), tx, msgs...); err != nil {
			return err
		}
		return tx.Commit()
	}
}

func mysqlFixture(db *sql.DB) fixture { return fixture{mysql.New(db), insertMySQL(db)} }

// A program may open its connections as it likes: without strictness, in another
// time zone, with statements that are prepared.
func TestSettingsOfASessionChangeNothing(t *testing.T) { // O3
	address, _, _ := strings.Cut(mysqlURL(t), "?")
	db := openMySQL(t, address+"?parseTime=true&loc=Asia%2FTokyo&clientFoundRows=true&sql_mode='ANSI_QUOTES,PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES'&time_zone='%2B09:00'")
	src := mysql.New(db)
	f := mysqlFixture(db)
	m := order(1, `o'"\1`)
	m.CreatedAt = time.Now().Truncate(time.Microsecond)
	f.put(t, m, order(2, "b"))
	if err := f.insert(order(1, "c")); !errors.Is(err, outbox.ErrDuplicate) {
		t.Errorf("an id twice: %v", err)
	}
	held, err := src.Hold(t.Context(), outbox.Hold{By: "r", Lease: time.Minute})
	if err != nil || time.Since(held.Now).Abs() > time.Hour {
		t.Fatalf("the time is %v, %v", held.Now, err)
	}
	b, err := src.Claim(t.Context(), outbox.Claim{By: "r", Partitions: held.Partitions, Now: held.Now, Lease: time.Minute, Limit: 10})
	if err != nil || len(b.Messages) != 2 {
		t.Fatalf("claimed %+v, %v", b, err)
	}
	var marks []outbox.Mark
	for _, c := range b.Messages {
		if c.ID == m.ID && (c.AggregateID != m.AggregateID || !c.CreatedAt.Equal(m.CreatedAt)) {
			t.Errorf("got %+v", c.Message)
		}
		marks = append(marks, outbox.Mark{ID: c.ID, Epoch: c.Epoch, Fence: c.Fence})
	}
	for _, want := range []int{2, 0} { // a repeat changes nothing
		if n, err := src.Mark(t.Context(), held.Now, marks); err != nil || n != want {
			t.Errorf("marked %d, %v, want %d", n, err, want)
		}
	}
}

// Two transactions that wait for each other: the database gives one up, and its
// owner hears that nothing is wrong with it.
func TestADeadlockIsToldAsWhatMayBeDoneAgain(t *testing.T) { // O1
	db, _ := dialectMySQL.empty(t)
	f := mysqlFixture(db)
	f.put(t, order(1, "a"), order(2, "b"))
	unit := func(n int, aggregate string) *outbox.UnitOfWork[*sql.Tx] {
		u := &outbox.UnitOfWork[*sql.Tx]{Database: &outbox.SQL{DB: db, Insert: mysql.Insert}}
		if err := u.Add(t.Context(), order(n, aggregate)); err != nil {
			t.Fatal(err)
		}
		return u
	}
	one, two := dialectMySQL.opened(t, db, order(3, "a")), dialectMySQL.opened(t, db, order(4, "b"))
	errs := make(chan error, 1)
	go func() {
		err := unit(5, "b").Join(context.Background(), one, nil)
		errs <- errors.Join(err, one.Rollback())
	}()
	until(t, "the first waits for the second", func() bool {
		n, err := dialectMySQL.waiting(db)
		return err == nil && n > 0
	})
	err := errors.Join(unit(6, "a").Join(t.Context(), two, nil), two.Rollback())
	other := <-errs
	if given := errors.Is(err, mysql.ErrAgain); given == errors.Is(other, mysql.ErrAgain) {
		t.Fatalf("one of the two was given up: %v and %v", err, other)
	}
	f.put(t, order(7, "a")) // nothing of either stands
	wantNames(t, f.claim(t, begin, 10), "a/1 a/2 b/1")
}

// A server that takes less than a message has is an error where it is written.
func TestAMessageLargerThanThePacketIsRefusedWhenItIsWritten(t *testing.T) { // O-23
	server, err := servertest.MariaDB(t.Context(), "--max-allowed-packet=64K")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	address, _, _ := strings.Cut(newMySQL(t, server), "?")
	if err := driver.SetLogger(&driver.NopLogger{}); err != nil { // which connections break is the point here
		t.Fatal(err)
	}
	for _, settings := range []string{"interpolateParams=true", "", "maxAllowedPacket=0"} {
		db := openMySQL(t, address+"?"+settings)
		f := mysqlFixture(db)
		if _, err := db.Exec("delete from outbox"); err != nil {
			t.Fatal(err)
		}
		m := order(1, "a")
		m.Payload = bytes.Repeat([]byte("x"), 200<<10)
		if err := f.insert(m); err == nil || !strings.Contains(err.Error(), "max_allowed_packet") {
			t.Errorf("%q: %v", settings, err)
		}
		m.Payload = m.Payload[:40<<10]
		f.put(t, m)
		if st, err := f.Stats(t.Context()); err != nil || st.Pending != 1 {
			t.Errorf("%q: %+v, %v", settings, st, err)
		}
	}
}

// Many large messages of one transaction are more than one packet.
func TestAnInsertIsSplitWhereAPacketEnds(t *testing.T) { // O-23
	db, _ := dialectMySQL.empty(t)
	f := mysqlFixture(db)
	var msgs []outbox.Message
	for n := range 80 { // 20 MiB; a packet has 16 MiB here
		m := order(n, fmt.Sprint("a", n%3))
		m.Payload = bytes.Repeat([]byte("x"), outbox.MaxPayload)
		msgs = append(msgs, m)
	}
	f.put(t, msgs...)
	got := f.claim(t, begin, 100)
	if len(got) != 80 || len(got[79].Payload) != outbox.MaxPayload {
		t.Errorf("%d came out", len(got))
	}
}
