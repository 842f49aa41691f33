// Package sqlite keeps runs in one SQLite file. It is the default store and
// needs nothing but the file: one process, one writer connection that commits
// batches with an fsync each, and a few connections that only read.
//
// The file is in WAL mode with synchronous=FULL: what was answered survives
// the power. Beside it stand FILE-wal and FILE-shm, which belong to it (copy
// them together, with the process stopped, or use a tool that knows SQLite's
// backup), and FILE.lock, which names the process that has it open; a second
// one is refused, also through another name of the file. A clean stop brings
// FILE-wal into FILE.
//
// Every write begins with BEGIN IMMEDIATE. A batch is tried with its
// conditions folded into the statements that write; when one fails, which is
// rare, the transaction is rolled back, the conditions of all writes are read
// one by one, and the winners alone are applied. The rejected alternative, a
// savepoint per write, costs two statements per write for a case that hardly
// happens.
//
// A full disk, a read-only file or a lock that another program holds are
// store.ErrUnavailable, and over when their cause is. Any other error of COMMIT
// itself is store.ErrDoubt. A file that was replaced or removed under the
// process stops all writing until it is put back or the process restarted:
// which of two files is the right one is not for this package to guess.
package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/ringiflow/ringi"
	sqliteoutbox "github.com/ringiflow/ringi/outbox/sqlite"
	"github.com/ringiflow/ringi/store"
)

// The defaults of Config.
const (
	DefaultBusyTimeout = 2 * time.Second // as lock_timeout elsewhere: callers are answered within seconds
	DefaultReaders     = 4               // lists and loads beside each other; more only compete for the disk
)

// Config configures a Store. Only Path must be set.
type Config struct {
	// Path is the database file; it is made if it is missing, its directory is not.
	Path string
	// Now is the clock that Commit answers with; nil is the machine's.
	Now func() time.Time
	// BusyTimeout is how long to wait for a lock that another program holds;
	// 0 is DefaultBusyTimeout.
	BusyTimeout time.Duration
	// Readers is the number of reading connections; 0 is DefaultReaders.
	Readers int
}

// Store is an open database. It fulfils all contracts of package store
// and is safe for concurrent use.
type Store struct {
	path        string
	now         func() time.Time
	lock        *databaseLock // nil: only reading
	file        fs.FileInfo   // of the database, to notice another file in its place
	incarnation string
	writer      *sql.DB // one connection; whoever has it is the only one that writes
	readers     *sql.DB
	texts       sync.Map      // text of a read → *sql.Stmt of the readers
	kept        *conn         // the writer's statements; belongs to whoever has its connection
	turn        ringi.Tenant  // that the last claim began with; belongs likewise
	checkpoints *checkpointer // nil: only reading
	news        news

	mu     sync.Mutex
	closed bool
}

var (
	_ store.Store   = (*Store)(nil)
	_ store.Records = (*Store)(nil)
	_ store.Catalog = (*Store)(nil)
	_ store.Events  = (*Store)(nil)

	_ store.Inspector = (*Store)(nil)
)

// InUseError says that another process has the database open.
type InUseError struct {
	Lock string // what it has locked: the lock file, or the database itself
	PID  string // its process id; "" when that is not known
}

// Error names the process and what to do.
func (e *InUseError) Error() string {
	who := "process " + e.PID
	if e.PID == "" {
		who = "another process"
	}
	return fmt.Sprintf("the database is in use by %s (it holds %s): stop that process, or name another file", who, e.Lock)
}

func (c *Config) setDefaults() {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.BusyTimeout == 0 {
		c.BusyTimeout = DefaultBusyTimeout
	}
	if c.Readers == 0 {
		c.Readers = DefaultReaders
	}
}

// Open locks the file, makes or migrates it, and returns the store. Errors
// say what to do; *InUseError is one of them.
func Open(ctx context.Context, c Config) (*Store, error) {
	c.setDefaults()
	if c.Path == "" {
		return nil, errors.New("sqlite: no file is named; give a path such as ringi.db")
	}
	path, err := filepath.Abs(c.Path)
	if err != nil {
		return nil, fmt.Errorf("sqlite: %w", err)
	}
	lock, err := lockDatabase(path)
	if err != nil {
		return nil, fmt.Errorf("sqlite: open %s: %w", path, err)
	}
	s := &Store{path: lock.path, file: lock.file, now: c.Now, lock: lock}
	if err := s.open(ctx, c); err != nil {
		return nil, errors.Join(fmt.Errorf("sqlite: open %s: %w", path, err), s.Close())
	}
	return s, nil
}

func (s *Store) open(ctx context.Context, c Config) error {
	var err error
	if s.writer, err = openPool(s.path, c.BusyTimeout, 1, false); err != nil {
		return err
	}
	if s.readers, err = openPool(s.path, c.BusyTimeout, c.Readers, true); err != nil {
		return err
	}
	if err := s.transact(ctx, func(t *tx) error { return t.migrate(ctx, s.path) }); err != nil {
		return err
	}
	if err := s.writer.QueryRowContext(ctx, statementText[stmtIncarnation]).Scan(&s.incarnation); err != nil {
		return err
	}
	return s.startCheckpoints(ctx, c)
}

// Outbox returns the messages of the committed writes, for a relay and for
// people. It shares the writer's connection.
func (s *Store) Outbox() *sqliteoutbox.Outbox { return sqliteoutbox.New(s.writer) }

// Committers is how many batches an engine had best have in the making: one, since a
// commit is the engine's own work, and waits for the disk only.
func (s *Store) Committers() int { return 1 }

// Close waits for calls under way, closes the file and gives its lock back.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	var err error
	s.texts.Range(func(_, stmt any) bool {
		err = errors.Join(err, stmt.(*sql.Stmt).Close())
		return true
	})
	if s.checkpoints != nil {
		err = errors.Join(err, s.checkpoints.close())
	}
	if s.readers != nil {
		err = errors.Join(err, s.readers.Close())
	}
	if s.writer != nil {
		if s.lock != nil {
			s.fold()
		}
		err = errors.Join(err, s.writer.Close())
	}
	if s.lock != nil { // after SQLite has closed the file
		err = errors.Join(err, s.lock.release())
	}
	return err
}

// closeTime bounds what Close does beside closing: copying a few megabytes.
const closeTime = 5 * time.Second

// fold brings the write-ahead log into the database file, so that after a clean
// stop the file alone is everything. Without it nothing is lost either: what
// stays in the log is durable there, and the next process brings it in.
func (s *Store) fold() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	sc, err := s.writer.Conn(ctx)
	if err != nil {
		return
	}
	defer sc.Close()
	// A kept statement would keep its connection from closing.
	_ = (&tx{s, sc}).raw(func(c *conn) error {
		c.forget()
		return nil
	})
	_, _ = sc.ExecContext(ctx, `pragma wal_checkpoint(truncate)`)
}

// usable refuses a call on a closed store and under a context that has ended.
func (s *Store) usable(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fmt.Errorf("%w: it is closed", store.ErrUnavailable)
	}
	return nil
}

// inPlace refuses to write when another file, or none, is where ours was.
func (s *Store) inPlace() error {
	at, err := os.Stat(s.path)
	if err == nil && os.SameFile(at, s.file) {
		return nil
	}
	if err == nil {
		err = errors.New("another file is in its place")
	}
	return fmt.Errorf("%w: %s was replaced or removed under this process (%w): put the file back, or restart the process to use what is there now",
		store.ErrUnavailable, s.path, err)
}

// tx is a write transaction under way.
type tx struct {
	s  *Store
	sc *sql.Conn
}

// transact runs do in an immediate transaction and commits it. What do returns
// rolls it back and is returned as it is, if it is an answer of ours, else as
// store.ErrUnavailable. An error of the commit is store.ErrDoubt, unless it says
// that the commit was not even written.
func (s *Store) transact(ctx context.Context, do func(*tx) error) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	if err := s.inPlace(); err != nil {
		return err
	}
	sc, err := s.writer.Conn(ctx)
	if err != nil {
		return away(err)
	}
	defer sc.Close()
	t := &tx{s, sc}
	if err := t.exec(stmtBegin); err != nil {
		if !keepsConnection(err) {
			t.drop()
		}
		return away(err)
	}
	if err := do(t); err != nil {
		t.leave(err)
		return away(err)
	}
	if err := t.exec(stmtCommit); err != nil {
		t.leave(err)
		if neverWritten(err) {
			return away(err)
		}
		return fmt.Errorf("%w: %w", store.ErrDoubt, err)
	}
	t.committed()
	return nil
}

// committed tells how much the log has grown.
func (t *tx) committed() {
	if t.s.checkpoints == nil { // it is being opened
		return
	}
	// It is committed, whatever becomes of this.
	_ = t.raw(func(c *conn) error {
		t.s.checkpoints.grew(c.written())
		return nil
	})
}

// away makes an error of the database store.ErrUnavailable and leaves our own
// answers alone, no error among them.
func away(err error) error {
	if err == nil {
		return nil
	}
	var bad *store.BadWrite
	var known *store.EventKnown
	if errors.As(err, &bad) || errors.As(err, &known) || errors.Is(err, store.ErrUnavailable) || errors.Is(err, errCondition) || errors.Is(err, store.ErrNotFound) {
		return err
	}
	return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
}

// raw hands the driver's connection over.
func (t *tx) raw(do func(*conn) error) error {
	return t.sc.Raw(func(dc any) error {
		raw, ok := dc.(driver.Conn)
		if !ok {
			return fmt.Errorf("the driver's connection is a %T", dc)
		}
		if t.s.kept == nil || t.s.kept.raw != raw {
			t.s.kept = &conn{raw: raw}
		}
		return do(t.s.kept)
	})
}

func (t *tx) exec(s statement) error {
	return t.raw(func(c *conn) error {
		_, err := c.exec(s)
		return err
	})
}

// leave ends a transaction that failed. A connection whose error may have left
// it apart from the file is thrown away, and so is one that cannot roll back:
// some errors have rolled back already, and asking which is not worth it.
func (t *tx) leave(cause error) {
	if err := t.exec(stmtRollback); err != nil || !keepsConnection(cause) {
		t.drop()
	}
}

// drop closes the connection instead of giving it back to the pool.
func (t *tx) drop() {
	// The error is the one asked for: Raw drops the connection for it.
	_ = t.raw(func(c *conn) error {
		c.forget()
		return driver.ErrBadConn
	})
}
