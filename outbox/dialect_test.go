package outbox_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ringiflow/ringi/inbox"
	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/mysql"
	"github.com/ringiflow/ringi/outbox/postgres"
	"github.com/ringiflow/ringi/outbox/sqlite"
)

// dialect is a database that the suites of this package run on.
type dialect string

const (
	dialectSQLite   dialect = "sqlite"
	dialectPostgres dialect = "postgres"
	dialectMySQL    dialect = "mysql"
)

// empty makes an empty outbox and says how another process opens it.
func (d dialect) empty(t *testing.T) (db *sql.DB, url string) {
	switch d {
	case dialectSQLite:
		path := filepath.Join(t.TempDir(), "shop.db")
		return openSQLite(t, path), "file:" + path + "?_txlock=immediate&_pragma=busy_timeout(10000)"
	case dialectPostgres:
		url = postgresURL(t)
		return openPostgres(t, url), url
	}
	url = mysqlURL(t)
	return openMySQL(t, url), url
}

// driver names what opens it with database/sql.
func (d dialect) driver() string {
	if d == dialectPostgres {
		return "pgx"
	}
	return string(d)
}

func (d dialect) insert(ctx context.Context, tx outbox.Tx, msgs ...outbox.Message) error {
	switch d {
	case dialectSQLite:
		return sqlite.Insert(ctx, tx, msgs...)
	case dialectPostgres:
		return postgres.InsertSQL(ctx, tx, msgs...)
	}
	return mysql.Insert(ctx, tx, msgs...)
}

func (d dialect) migrate(ctx context.Context, db outbox.Migrator) error {
	switch d {
	case dialectSQLite:
		return sqlite.Migrate(ctx, db)
	case dialectPostgres:
		return postgres.Migrate(ctx, db)
	}
	return mysql.Migrate(ctx, db)
}

// crashable is a source of a database with all that it can do.
type crashable interface {
	outbox.Source
	outbox.Desk
}

func (d dialect) source(db *sql.DB) crashable {
	switch d {
	case dialectSQLite:
		return sqlite.New(db)
	case dialectPostgres:
		return postgres.New(db)
	}
	return mysql.New(db)
}

// inserter returns an insert that begins and commits a transaction of its own.
func (d dialect) inserter(db *sql.DB) func(...outbox.Message) error {
	return func(msgs ...outbox.Message) error {
		tx, err := db.Begin()
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if err := d.insert(context.Background(), tx, msgs...); err != nil {
			return err
		}
		return tx.Commit()
	}
}

// fixture is the outbox of a database under test.
func (d dialect) fixture(db *sql.DB) fixture {
	return fixture{Source: d.source(db), insert: d.inserter(db)}
}

// inbox is how the database writes the statements of an inbox.
func (d dialect) inbox() inbox.Dialect {
	if d == dialectMySQL {
		return inbox.MySQL
	}
	return inbox.Standard
}

// time is a point in time as a parameter of a statement.
func (d dialect) time(at time.Time) any {
	if d == dialectPostgres {
		return at
	}
	return at.UnixMicro()
}

// places writes the places of a statement's parameters, $1 and so on in their order,
// as the database has them.
func (d dialect) places(statement string) string {
	if d == dialectMySQL {
		for _, place := range []string{"$1", "$2", "$3"} {
			statement = strings.Replace(statement, place, "?", 1)
		}
	}
	return statement
}

// waiting counts the transactions that wait for a lock of another one.
func (d dialect) waiting(db *sql.DB) (n int, err error) {
	query := `select count(*) from pg_stat_activity where wait_event_type = 'Lock'`
	if d == dialectMySQL {
		query = `select variable_value from information_schema.global_status where variable_name = 'Innodb_row_lock_current_waits'`
	}
	err = db.QueryRow(query).Scan(&n)
	return n, err
}

// eachServer runs a test on every database that several processes share.
func eachServer(t *testing.T, test func(t *testing.T, d dialect)) {
	for _, d := range []dialect{dialectPostgres, dialectMySQL} {
		t.Run(string(d), func(t *testing.T) { test(t, d) })
	}
}
