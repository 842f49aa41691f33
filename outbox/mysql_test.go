package outbox_test

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	_ "github.com/go-sql-driver/mysql"

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
