package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// OpenReading opens a file to read it only, also while a process has it open to
// write: it takes no lock and changes nothing. Each read sees one moment, two
// reads may see two. Whatever would write is store.ErrUnavailable. A file that
// is missing is an fs.ErrNotExist, one that is not ringi's an error.
func OpenReading(ctx context.Context, c Config) (*Store, error) {
	c.setDefaults()
	path, err := filepath.Abs(c.Path)
	if err != nil {
		return nil, fmt.Errorf("sqlite: %w", err)
	}
	s := &Store{path: path, now: c.Now}
	if err := s.openReading(ctx, c); err != nil {
		return nil, errors.Join(fmt.Errorf("sqlite: read %s: %w", path, err), s.Close())
	}
	return s, nil
}

func (s *Store) openReading(ctx context.Context, c Config) (err error) {
	if s.file, err = os.Stat(s.path); err != nil {
		return err
	}
	if s.writer, err = openPool(s.path, c.BusyTimeout, 1, true); err != nil {
		return err
	}
	if s.readers, err = openPool(s.path, c.BusyTimeout, c.Readers, true); err != nil {
		return err
	}
	return s.knowsSchema(ctx)
}

// knowsSchema refuses a file that this program cannot read: one that is not
// ringi's, or of a schema that it does not know or would first have to raise.
func (s *Store) knowsSchema(ctx context.Context) error {
	files, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return err
	}
	var have, need string
	row := s.readers.QueryRowContext(ctx, `select schema.value, oldest.value from meta schema, meta oldest where schema.key = 'schema' and oldest.key = 'oldest'`)
	err = row.Scan(&have, &need)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return errors.New("it is not a database of ringi")
	case err != nil:
		return fmt.Errorf("is it a database of ringi? %w", err)
	case number(have) < len(files):
		return fmt.Errorf("it has schema %s, this program reads schema %d: start ringi serve on it once, which raises it", have, len(files))
	case number(have) > len(files) && number(need) > len(files):
		return fmt.Errorf("it has schema %s, which needs a newer ringi than this one", have)
	}
	return nil
}
