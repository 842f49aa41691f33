package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	modernc "modernc.org/sqlite"
)

// This is the only file that knows which SQLite driver is used. Another one
// must offer: a connector for database/sql, result codes in its errors, and
// prepared statements that stay prepared.

// openPool opens a pool of connections to a file that exists. Connections of
// a reading pool cannot write.
func openPool(path string, busy time.Duration, size int, reading bool) (*sql.DB, error) {
	// fsync also waits for the time of the last change of the file, which nobody
	// needs after a crash; fdatasync is as durable in half the time. Where the
	// system has none, fsync stays.
	if _, err := modernc.Fdatasync(true); err != nil && !errors.Is(err, modernc.ErrFdatasyncUnavailable) {
		return nil, err
	}
	pragmas := []string{
		fmt.Sprintf("busy_timeout(%d)", busy.Milliseconds()),
		"journal_mode(wal)", "synchronous(full)", "fullfsync(1)", "checkpoint_fullfsync(1)",
		fmt.Sprintf("wal_autocheckpoint(%d)", walMost),
	}
	if reading {
		pragmas = []string{pragmas[0], "query_only(1)"}
	}
	slashed := filepath.ToSlash(path)
	if !strings.HasPrefix(slashed, "/") {
		slashed = "/" + slashed // a path with a drive letter
	}
	query := url.Values{"mode": {"rw"}, "_pragma": pragmas}
	connector, err := modernc.NewConnector("file:" + (&url.URL{Path: slashed}).EscapedPath() + "?" + query.Encode())
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	return db, nil
}

// fault is what an error of the database means.
type fault int

const (
	faultAway fault = iota // nothing can be done now; later perhaps
	faultBad               // the statement or its values can never work
)

// The result codes of SQLite that are asked for by name; its other codes mean
// that the database is away.
const (
	codeBusy       = 5
	codeLocked     = 6
	codeFull       = 13
	codeTooBig     = 18
	codeConstraint = 19
	codeMismatch   = 20
	codeRange      = 25
)

// faultOf tells a bad statement from a database that is away.
func faultOf(err error) fault {
	var e *modernc.Error
	if !errors.As(err, &e) {
		return faultAway
	}
	switch e.Code() & 0xff {
	case codeConstraint, codeTooBig, codeMismatch, codeRange:
		return faultBad
	}
	return faultAway
}

// keepsConnection reports whether a connection is good after an error: after
// one of the disk or of memory it may hold what the file does not.
func keepsConnection(err error) bool {
	var e *modernc.Error
	if !errors.As(err, &e) {
		return true
	}
	switch e.Code() & 0xff {
	case codeBusy, codeLocked, codeConstraint, codeTooBig, codeMismatch, codeRange:
		return true
	}
	return false
}

// neverWritten reports whether an error of COMMIT says that the transaction is
// certainly not in the file. Without the lock nothing was written; and where
// the disk was full the last frame is missing, which alone would make the
// others count, since it is written last and synced after that.
func neverWritten(err error) bool {
	var e *modernc.Error
	if !errors.As(err, &e) {
		return false
	}
	return e.Code()&0xff == codeFull || e.Code()&0xff == codeBusy
}

// conn is the raw connection of the writer with its kept statements. Going
// around database/sql saves a third of what a small statement costs.
type conn struct {
	raw   driver.Conn
	stmts [statements]driver.Stmt
	args  []driver.NamedValue // reused
	row   []any               // likewise, by those who put arguments together
}

// written is how many pages the connection has written since it was last asked.
func (c *conn) written() (pages int) {
	if status, ok := c.raw.(modernc.DBStatus); ok {
		// The only error is for a counter that does not exist.
		pages, _, _ = status.Status(modernc.DBStatusCacheWrite, true)
	}
	return pages
}

// prepared returns a kept statement.
func (c *conn) prepared(s statement) (driver.Stmt, error) {
	if c.stmts[s] == nil {
		stmt, err := c.raw.Prepare(statementText[s])
		if err != nil {
			return nil, fmt.Errorf("prepare %q: %w", statementText[s], err)
		}
		c.stmts[s] = stmt
	}
	return c.stmts[s], nil
}

// forget closes the kept statements, before their connection is closed.
func (c *conn) forget() {
	for i, stmt := range c.stmts {
		if stmt != nil {
			_ = stmt.Close() // repeats the error of its last use
			c.stmts[i] = nil
		}
	}
}

// named fills the reused list of arguments: int64, string, []byte or nil.
func (c *conn) named(args []any) []driver.NamedValue {
	c.args = c.args[:0]
	for i, a := range args {
		c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: a})
	}
	return c.args
}

// exec runs a statement and returns how many rows it changed. It has no
// context on purpose: watching one costs more than the statement.
func (c *conn) exec(s statement, args ...any) (int64, error) {
	stmt, err := c.prepared(s)
	if err != nil {
		return 0, err
	}
	execer, ok := stmt.(driver.StmtExecContext)
	if !ok {
		return 0, errors.New("the driver's statements cannot be executed")
	}
	res, err := execer.ExecContext(context.Background(), c.named(args))
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// query runs a statement and hands over each row. The cells belong to the
// callee.
func (c *conn) query(s statement, do func(cells) error, args ...any) (err error) {
	stmt, err := c.prepared(s)
	if err != nil {
		return err
	}
	queryer, ok := stmt.(driver.StmtQueryContext)
	if !ok {
		return errors.New("the driver's statements cannot be queried")
	}
	rows, err := queryer.QueryContext(context.Background(), c.named(args))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	values := make([]driver.Value, len(rows.Columns()))
	for {
		if err := rows.Next(values); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		row := make(cells, len(values))
		for i, v := range values {
			row[i] = v
		}
		if err := do(row); err != nil {
			return err
		}
	}
}
