package feed

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	_ "github.com/jackc/pgx/v5/stdlib" // PostgreSQL
	_ "modernc.org/sqlite"             // SQLite

	"github.com/ringiflow/ringi/inbox"
)

// boxPrefix is how the consumers of feeds begin in an inbox, which others may share.
const boxPrefix = "feed:"

// MostListed is how many messages that were set aside are listed at once, of each feed.
const MostListed = 1000

// busyTimeout is how long a statement waits in SQLite for another process, in
// milliseconds.
const busyTimeout = 10_000

// OpenBox opens the database in which messages are set aside, sqlite:PATH (which is
// made) or postgres://…, and makes the tables of an inbox in it. The caller closes it.
func OpenBox(ctx context.Context, database string) (*sql.DB, error) {
	var db *sql.DB
	var err error
	if path, isFile := strings.CutPrefix(database, "sqlite:"); isFile {
		if path, err = filepath.Abs(path); err != nil {
			return nil, err
		}
		query := url.Values{"_txlock": {"immediate"}, "_pragma": {"journal_mode(wal)", fmt.Sprintf("busy_timeout(%d)", busyTimeout)}}
		if db, err = sql.Open("sqlite", "file:"+(&url.URL{Path: filepath.ToSlash(path)}).EscapedPath()+"?"+query.Encode()); err == nil {
			db.SetMaxOpenConns(1) // writers of one file wait for each other best at one connection
		}
	} else {
		db, err = sql.Open("pgx", database)
	}
	if err != nil {
		return nil, fmt.Errorf("feed: open the database of the inbox: %w", err)
	}
	if _, err := db.ExecContext(ctx, inbox.Schema+dropSchema); err != nil {
		return nil, errors.Join(fmt.Errorf("feed: make the tables of the inbox: %w", err), db.Close())
	}
	return db, nil
}

// An AsideMessage is a message that was set aside.
type AsideMessage struct {
	Feed string
	inbox.Poison
}

// Aside lists messages that feeds have set aside, whatever their files say now.
func Aside(ctx context.Context, db *sql.DB) (all []AsideMessage, err error) {
	names, err := feedsIn(ctx, db)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		box, err := inbox.NewConsumer(inbox.Config{DB: db, Name: boxPrefix + name})
		if err != nil {
			return nil, err
		}
		list, err := box.Poison(ctx, "", MostListed)
		if err != nil {
			return nil, err
		}
		for _, p := range list {
			all = append(all, AsideMessage{name, p})
		}
	}
	return all, nil
}

// feedsIn are the feeds that have set something aside.
func feedsIn(ctx context.Context, db *sql.DB) (names []string, err error) {
	rows, err := db.QueryContext(ctx, `select distinct consumer from inbox_poison where poisoned_at is not null and consumer like $1 order by consumer`, boxPrefix+"%")
	if err != nil {
		return nil, fmt.Errorf("feed: list what is set aside: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		names = append(names, strings.TrimPrefix(name, boxPrefix))
	}
	return names, rows.Err()
}
