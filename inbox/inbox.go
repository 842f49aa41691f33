package inbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// MaxName is the longest consumer or message id in bytes.
const MaxName = 256

// Schema creates the tables inbox and inbox_poison, in SQLite and PostgreSQL
// alike, and MySQLSchema in MariaDB and MySQL; it may run again on a database that has them. Times are microseconds
// since 1970 in UTC.
const Schema = `
create table if not exists inbox (
  consumer   text   not null,
  message    text   not null,
  handled_at bigint not null,
  primary key (consumer, message)
);
create index if not exists inbox_handled on inbox (consumer, handled_at);
create table if not exists inbox_poison (
  consumer    text   not null,
  message     text   not null,
  failures    bigint not null,
  failed_at   bigint not null,
  last_error  text   not null,
  poisoned_at bigint,
  body        text,
  headers     text,
  primary key (consumer, message)
);
`

const insertID = `insert into inbox (consumer, message, handled_at) values ($1, $2, $3) on conflict do nothing`

// Tx is what Handle needs of a transaction. *sql.Tx fulfils it, and so does a
// *sql.Conn on which the caller has begun one.
type Tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// Handle does the work of a message in the caller's open transaction, unless the
// consumer has handled it already: then it returns false and does nothing.
// After any error, and when it returned true, it is the caller's to roll back or
// to commit; only after the commit may the message be acknowledged.
//
// In MariaDB and MySQL it is MySQL.Handle.
//
// Two consumers with different names each get the message. The name and the id
// are at most MaxName bytes of UTF-8 without NUL.
func Handle(ctx context.Context, tx Tx, consumer, messageID string, work func(ctx context.Context) error) (fresh bool, err error) {
	return Standard.Handle(ctx, tx, consumer, messageID, work)
}

func (d Dialect) handle(ctx context.Context, tx Tx, consumer, messageID string, at time.Time, work func(ctx context.Context) error) (bool, error) {
	if err := checkName("consumer", consumer); err != nil {
		return false, err
	}
	if err := checkName("message id", messageID); err != nil {
		return false, err
	}
	res, err := tx.ExecContext(ctx, d.statements().insertID, consumer, messageID, at.UnixMicro())
	if err != nil {
		return false, fmt.Errorf("inbox: message %s for %s: %w", messageID, consumer, err)
	}
	n, err := res.RowsAffected()
	if err != nil {
		return false, fmt.Errorf("inbox: message %s for %s: %w", messageID, consumer, err)
	}
	if n == 0 {
		return false, nil
	}
	return true, work(ctx)
}

// checkName refuses what a key cannot hold.
func checkName(what, s string) error {
	switch {
	case s == "":
		return errors.New("inbox: " + what + " is empty; every message needs an id that is the same at each delivery, every consumer a name")
	case len(s) > MaxName:
		return fmt.Errorf("inbox: %s has %d bytes, at most %d are allowed; use a digest of it", what, len(s), MaxName)
	case !utf8.ValidString(s) || strings.IndexByte(s, 0) >= 0:
		return errors.New("inbox: " + what + " is not UTF-8 without NUL; encode it")
	}
	return nil
}
