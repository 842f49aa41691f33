package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
)

// ErrNoTables says that a database has no tables of ringi's.
var ErrNoTables = errors.New("it has no tables of ringi's: name the database that ringi serve uses")

// OpenReading opens a database to read it only, also a standby: it changes
// nothing and makes no tables. Whatever would write is store.ErrUnavailable. A
// database without ringi's tables (ErrNoTables), or with a schema that this program does not
// know or would first have to raise, is an error.
func OpenReading(ctx context.Context, c Config) (*Store, error) {
	s, err := open(c)
	if err != nil {
		return nil, err
	}
	s.config.RuntimeParams["default_transaction_read_only"] = "on"
	s.config.ValidateConnect = nil // a standby will do
	if err := s.knowsSchema(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("postgres: read %s: %w", s.name(), err), s.Close())
	}
	return s, nil
}

// knowsSchema refuses a database that this program cannot read.
func (s *Store) knowsSchema(ctx context.Context) error {
	known, err := known()
	if err != nil {
		return err
	}
	meta := map[string]string{}
	err = s.list(ctx, `select key, value from meta`, args{}, func(row cells) error {
		meta[row.text(0)] = row.text(1)
		return nil
	})
	var e *pgconn.PgError
	if errors.As(err, &e) && e.Code == codeNoTable {
		return ErrNoTables
	}
	if err != nil {
		return err
	}
	have, need := number(meta["schema"]), number(meta["oldest"])
	switch {
	case need > known:
		return tooNew(have, need, known)
	case have < known:
		return fmt.Errorf("it has schema %d and this program reads schema %d: start ringi serve of this version on it first, which raises it", have, known)
	}
	return nil
}
