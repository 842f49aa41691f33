package sqlite

import (
	"context"
	"errors"
)

// Probe commits that many bytes of no meaning, and then takes them away. It
// tells whether the file can be written now, which reading it cannot: the disk
// may be full, or have room for less. Errors as of Commit.
func (s *Store) Probe(ctx context.Context, bytes int) error {
	put := func(n int) error {
		return s.transact(ctx, func(t *tx) error {
			_, err := t.sc.ExecContext(ctx, `insert into meta (key, value) values ('probe', printf('%.*c', ?1, 'x')) on conflict do update set value = excluded.value`, n)
			return err
		})
	}
	return errors.Join(put(bytes), put(1))
}
