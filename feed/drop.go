package feed

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ringiflow/ringi/inbox"
)

// dropSchema is the table of what was dropped, beside the tables of the inbox. at is
// in microseconds since 1970.
const dropSchema = `
create table if not exists feed_drop (
  at      bigint not null,
  feed    text   not null,
  message text   not null,
  reason  text   not null
);
create index if not exists feed_drop_at on feed_drop (at);
`

// MostReason is the longest reason of a drop, in bytes.
const MostReason = 1024

// A Dropped is a message that a person has dropped, and why.
type Dropped struct {
	At                time.Time
	Feed, ID, Because string
}

// Drop forgets a message that a feed has set aside, for good, and keeps the reason in
// the same transaction. The error is inbox.ErrNotPoison when there is no such message.
func Drop(ctx context.Context, db *sql.DB, why Dropped) error {
	if strings.TrimSpace(why.Because) == "" || len(why.Because) > MostReason || !utf8.ValidString(why.Because) || strings.ContainsRune(why.Because, 0) {
		return fmt.Errorf("feed: the reason is to be a text of 1 to %d bytes; say why in short", MostReason)
	}
	box, err := inbox.NewConsumer(inbox.Config{DB: db, Name: boxPrefix + why.Feed})
	if err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("feed: begin: %w", err)
	}
	if err := box.DropIn(ctx, tx, why.ID); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	if _, err := tx.ExecContext(ctx, `insert into feed_drop (at, feed, message, reason) values ($1, $2, $3, $4)`, why.At.UnixMicro(), why.Feed, why.ID, why.Because); err != nil {
		return errors.Join(fmt.Errorf("feed: keep the reason: %w", err), tx.Rollback())
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("feed: commit: %w", err)
	}
	return nil
}

// Drops lists what was dropped, the newest first, at most MostListed.
func Drops(ctx context.Context, db *sql.DB) (list []Dropped, err error) {
	rows, err := db.QueryContext(ctx, `select at, feed, message, reason from feed_drop order by at desc, message limit $1`, MostListed)
	if err != nil {
		return nil, fmt.Errorf("feed: list what was dropped: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var at int64
		var d Dropped
		if err := rows.Scan(&at, &d.Feed, &d.ID, &d.Because); err != nil {
			return nil, err
		}
		d.At = time.UnixMicro(at).UTC()
		list = append(list, d)
	}
	return list, rows.Err()
}
