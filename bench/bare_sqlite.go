package bench

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"github.com/ringiflow/ringi/store/sqlite"
)

// A bareWriter writes the rows of one transition of several runs in one
// transaction. It belongs to one goroutine.
type bareWriter interface {
	write(batch [][]bareRow) error
	close() error
}

// openBare opens a bare writer on a place whose database has its tables.
func (p *place) openBare(ctx context.Context) (bareWriter, error) {
	if p.kind == kindSQLite {
		return openBareSQLite(ctx, strings.TrimPrefix(p.named, "sqlite:"))
	}
	return openBarePostgres(ctx, p.named)
}

// bareSQLite writes with database/sql and prepared statements.
type bareSQLite struct {
	db       *sql.DB
	conn     *sql.Conn
	prepared [bareKinds]*sql.Stmt
	args     []any // reused
}

func openBareSQLite(ctx context.Context, path string) (_ bareWriter, err error) {
	w := &bareSQLite{}
	if w.db, err = sqlite.Bare(path); err != nil {
		return nil, err
	}
	if w.conn, err = w.db.Conn(ctx); err != nil {
		return nil, errors.Join(err, w.close())
	}
	for kind, s := range bareStatements {
		if w.prepared[kind], err = w.conn.PrepareContext(ctx, s.sqlite()); err != nil {
			return nil, errors.Join(err, w.close())
		}
	}
	return w, nil
}

// write uses no context: watching one costs a goroutine for each statement.
func (w *bareSQLite) write(batch [][]bareRow) error {
	ctx := context.Background()
	if _, err := w.conn.ExecContext(ctx, "begin immediate"); err != nil {
		return err
	}
	for _, rows := range batch {
		for _, r := range rows {
			keys := bareStatements[r.kind].keys
			w.args = w.args[:0]
			for _, v := range r.values[keys:] {
				w.args = append(w.args, sqliteValue(v))
			}
			for _, v := range r.values[:keys] {
				w.args = append(w.args, sqliteValue(v))
			}
			if _, err := w.prepared[r.kind].ExecContext(ctx, w.args...); err != nil {
				return err
			}
		}
	}
	_, err := w.conn.ExecContext(ctx, "commit")
	return err
}

// sqliteValue is a value as the tables of the store hold it.
func sqliteValue(v any) any {
	switch v := v.(type) {
	case [16]byte:
		return v[:]
	case time.Time:
		if v.IsZero() {
			return int64(0)
		}
		return v.UnixMicro()
	case bool:
		if v {
			return int64(1)
		}
		return int64(0)
	}
	return v
}

func (w *bareSQLite) close() error {
	var errs []error
	for _, s := range w.prepared {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	if w.conn != nil {
		errs = append(errs, w.conn.Close())
	}
	return errors.Join(append(errs, w.db.Close())...)
}
