package relay_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/ringiflow/ringi/relay"
	"github.com/ringiflow/ringi/servertest"
)

// maria is the MariaDB that the tests of this package share.
var maria struct {
	once   sync.Once
	server *servertest.Server
	err    error
	made   int
}

// mysqlPassword is one that a URL, and the driver's own form of an address, could
// take for something else.
const mysqlPassword = "p@ss:w/o?rd&#%"

// mysqlURL returns the address of an empty database with a user of its own.
func mysqlURL(t *testing.T) string {
	t.Helper()
	maria.once.Do(func() { maria.server, maria.err = servertest.MariaDB(context.Background()) })
	if maria.err != nil {
		t.Fatal(maria.err)
	}
	db, err := sql.Open("mysql", "root@tcp("+maria.server.Address()+")/")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	maria.made++
	name := fmt.Sprint("shop", maria.made)
	for _, statement := range []string{
		"create database " + name,
		"create user " + name + " identified by '" + mysqlPassword + "'",
		"grant all on " + name + ".* to " + name,
	} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	u := url.URL{Scheme: "mysql", User: url.UserPassword(name, mysqlPassword), Host: maria.server.Address(), Path: "/" + name}
	return u.String()
}

// A relay that is stopped in the middle of a transaction must not keep its locks.
func TestATransactionOfARelayCannotStandStill(t *testing.T) { // O-16
	db := made(t, mysqlURL(t))
	var seconds int
	if err := db.DB.QueryRow("select @@idle_transaction_timeout").Scan(&seconds); err != nil || seconds != 10 {
		t.Errorf("%d seconds, %v", seconds, err)
	}
}

func TestADatabaseOfMySQLIsNamedByItsURL(t *testing.T) {
	for name, want := range map[string]string{
		"mysql://shop:secret@db.internal/shop":                      "mysql://db.internal:3306/shop",
		"mysql://shop:secret@[::1]:3307/shop?tls=skip-verify":       "mysql://[::1]:3307/shop",
		"mysql://shop@db/shop?timeout=5s&readTimeout=30s&tls=false": "mysql://db:3306/shop",
	} {
		db, err := relay.Connect(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if db.Name != want || db.Dialect != relay.MySQL || db.Fleet == nil {
			t.Errorf("%s is %s, in %s", name, db.Name, db.Dialect)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"mysql://", "mysql://u:secret@host", "mysql://u:secret@host/", "mysql://u:secret@host/a/b", "mysql://u:secret@host/a?tls=secret", "mysql://u:secret@ho st/a"} {
		if _, err := relay.OpenLog("mysql://u:secret@host/a", relay.LogConfig{}); !errors.Is(err, relay.ErrNoLog) || strings.Contains(err.Error(), "secret") {
			t.Error(err)
		}
		if _, err := relay.Connect(name); err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "mysql://user") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
