package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

// each runs a read on one of the reading connections and hands over each row.
// The text is kept prepared, so it must be one of a few. Errors of the
// database are store.ErrUnavailable.
func (s *Store) each(ctx context.Context, text string, do func(cells) error, args ...any) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	stmt, err := s.reading(ctx, text)
	if err != nil {
		return away(err)
	}
	rows, err := stmt.QueryContext(ctx, args...)
	if err != nil {
		return away(err)
	}
	return away(scan(rows, do))
}

// reading returns the kept statement of a text.
func (s *Store) reading(ctx context.Context, text string) (*sql.Stmt, error) {
	if stmt, ok := s.texts.Load(text); ok {
		return stmt.(*sql.Stmt), nil
	}
	stmt, err := s.readers.PrepareContext(ctx, text)
	if err != nil {
		return nil, fmt.Errorf("prepare %q: %w", text, err)
	}
	if first, loaded := s.texts.LoadOrStore(text, stmt); loaded {
		return first.(*sql.Stmt), stmt.Close()
	}
	return stmt, nil
}

// scan hands over each row and closes the rows.
func scan(rows *sql.Rows, do func(cells) error) (err error) {
	defer func() { err = errors.Join(err, rows.Close()) }()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	for rows.Next() {
		row := make(cells, len(columns))
		into := make([]any, len(columns))
		for i := range row {
			into[i] = &row[i]
		}
		if err := rows.Scan(into...); err != nil {
			return err
		}
		if err := do(row); err != nil {
			return err
		}
	}
	return rows.Err()
}

// view is a reading transaction: all its reads see one moment.
type view struct {
	ctx  context.Context
	s    *Store
	tx   *sql.Tx
	news *[]string // texts that are not kept prepared yet
}

// view runs do on one moment of the database.
func (s *Store) view(ctx context.Context, do func(view) error) (err error) {
	if err := s.usable(ctx); err != nil {
		return err
	}
	tx, err := s.readers.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return away(err)
	}
	var news []string
	defer func() {
		_ = tx.Rollback() // it only read
		for _, text := range news {
			_, _ = s.reading(ctx, text) // the next view would prepare it anew otherwise, and nothing more
		}
	}()
	return away(do(view{ctx, s, tx, &news}))
}

// each is each of the store inside the view. A text that is not kept is prepared
// on the view's own connection: to wait for another one while holding this one
// would stop all views for ever once each of them did.
func (v view) each(text string, do func(cells) error, args ...any) error {
	var rows *sql.Rows
	var err error
	if stmt, ok := v.s.texts.Load(text); ok {
		rows, err = v.tx.StmtContext(v.ctx, stmt.(*sql.Stmt)).QueryContext(v.ctx, args...)
	} else {
		*v.news = append(*v.news, text)
		rows, err = v.tx.QueryContext(v.ctx, text, args...)
	}
	if err != nil {
		return err
	}
	return scan(rows, do)
}

// The reads of Load.
const (
	textSnapshot = `select seq, format, body from snapshot where tenant = ?1 and run = ?2
		and seq <= (select last from log where tenant = ?1 and run = ?2 order by seq desc limit 1)`
	textLogAfter = `select seq, last, commit_id, head, body from log where tenant = ? and run = ? and last > ? and seq >= ? order by seq`
	textLogHead  = `select head from log where tenant = ? and run = ? order by seq desc limit 1`
	// textLogFrom is where the row begins that holds the event after a sequence.
	textLogFrom = `select seq from log where tenant = ? and run = ? and seq <= ? order by seq desc limit 1`
)

// Load implements store.Store. The snapshot is read before the log: a log only
// grows and a snapshot only moves on, so that what is read fits together.
func (s *Store) Load(ctx context.Context, keys ...store.Key) ([]store.Loaded, error) {
	loaded := make([]store.Loaded, len(keys))
	for i, key := range keys {
		var err error
		if loaded[i], err = s.load(ctx, key); err != nil {
			return nil, err
		}
	}
	return loaded, nil
}

func (s *Store) load(ctx context.Context, key store.Key) (store.Loaded, error) {
	l := store.Loaded{Key: key}
	run := runBlob(key.Run)
	if run == nil {
		return l, nil
	}
	var after int64
	err := s.each(ctx, textSnapshot, func(row cells) error {
		after = row.num(0)
		l.Snapshot = &store.Snapshot{Seq: after, Format: int(row.num(1)), Body: row.blob(2)}
		return nil
	}, int64(key.Tenant), run)
	if err != nil {
		return l, err
	}
	if l.Rows, err = s.logAfter(ctx, key, after, -1); err != nil {
		return l, err
	}
	if n := len(l.Rows); n > 0 {
		l.Head = l.Rows[n-1].Head
		return l, nil
	}
	err = s.each(ctx, textLogHead, func(row cells) error {
		l.Head = row.blob(0)
		return nil
	}, int64(key.Tenant), run)
	return l, err
}

// errEnough ends a read before its last row.
var errEnough = errors.New("sqlite: enough rows were read")

// logAfter reads log rows whose last event is after a sequence, until maxBytes
// of bodies are passed; below 0 is no limit.
func (s *Store) logAfter(ctx context.Context, key store.Key, after int64, maxBytes int) ([]store.LogRow, error) {
	run := runBlob(key.Run)
	from := int64(1)
	if after > 0 {
		err := s.each(ctx, textLogFrom, func(row cells) error {
			from = row.num(0)
			return nil
		}, int64(key.Tenant), run, after+1)
		if err != nil {
			return nil, err
		}
	}
	var list []store.LogRow
	size := 0
	err := s.each(ctx, textLogAfter, func(row cells) error {
		l := store.LogRow{First: row.num(0), Last: row.num(1), Head: row.blob(3), Body: row.blob(4)}
		if id := row.blob(2); len(id) == len(l.Commit) {
			l.Commit = store.CommitID(id)
		}
		if maxBytes >= 0 && len(list) > 0 && size+len(l.Body) > maxBytes {
			return errEnough
		}
		size += len(l.Body)
		list = append(list, l)
		return nil
	}, int64(key.Tenant), run, after, from)
	if err != nil && !errors.Is(err, errEnough) {
		return nil, err
	}
	return list, nil
}

// Log implements store.Records.
func (s *Store) Log(ctx context.Context, key store.Key, after int64, maxBytes int) ([]store.LogRow, error) {
	return s.logAfter(ctx, key, after, max(maxBytes, 0))
}

// Standing implements store.Records.
func (s *Store) Standing(ctx context.Context, key store.Key) (ringi.Rows, error) {
	var rows ringi.Rows
	var x store.Inspected
	tenant, run := int64(key.Tenant), runBlob(key.Run)
	err := s.view(ctx, func(v view) error {
		found := false
		err := v.each(`select status, waits_for, waits_step, ended_at from run where tenant = ? and id = ?`, func(row cells) error {
			found = true
			rows.Run = ringi.RunRow{Status: statusOf(row.num(0)), WaitsFor: row.text(1), WaitsStep: row.text(2), EndedAt: row.time(3)}
			return nil
		}, tenant, run)
		if err != nil {
			return err
		}
		if !found {
			return store.ErrNotFound
		}
		return v.beside(&x, key)
	})
	if err != nil {
		return ringi.Rows{}, err
	}
	for _, t := range x.Tasks {
		rows.Tasks = append(rows.Tasks, t.Row)
	}
	for _, t := range x.Timers {
		rows.Timers = append(rows.Timers, t.TimerRow)
	}
	rows.Waits, rows.Approvals, rows.Incidents = x.Waits, x.Approvals, x.Incidents
	return rows, unreadable(x.Bad)
}

// Run implements store.Records.
func (s *Store) Run(ctx context.Context, key store.Key) (store.RunRecord, error) {
	list, bad, err := s.readRuns(ctx, textRunOf, int64(key.Tenant), runBlob(key.Run))
	if err != nil {
		return store.RunRecord{}, err
	}
	if len(list) == 0 {
		return store.RunRecord{}, store.ErrNotFound
	}
	return list[0], unreadable(bad)
}

// Audit implements store.Records.
func (s *Store) Audit(ctx context.Context, key store.Key, limit int) ([]store.AuditRecord, error) {
	if limit <= 0 || limit > store.AuditPage {
		limit = store.AuditPage
	}
	text, args := `select at, actor, kind, run, answer, data, head from audit where tenant = ? `, []any{int64(key.Tenant)}
	if key.Run != "" {
		text, args = text+`and run = ? `, append(args, runBlob(key.Run))
	}
	var list []store.AuditRecord
	err := s.each(ctx, text+`order by n limit ?`, func(row cells) error {
		list = append(list, store.AuditRecord{
			At: row.time(0), Actor: row.text(1), Kind: row.text(2), Run: row.run(3),
			Answer: row.text(4), Data: row.blob(5), Head: row.blob(6),
		})
		return nil
	}, append(args, int64(limit))...)
	return slices.Clip(list), err
}
