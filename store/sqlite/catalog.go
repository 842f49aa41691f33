package sqlite

import (
	"context"
	"strconv"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

// PutDefinition implements store.Catalog.
func (s *Store) PutDefinition(ctx context.Context, d store.Definition, audit store.AuditRecord) (version int, created bool, err error) {
	err = s.transact(ctx, func(t *tx) error {
		return t.raw(func(c *conn) error {
			read := func() error {
				return c.query(stmtDefinitionOfDigest, func(row cells) error {
					version = int(row.num(0))
					return nil
				}, int64(d.Tenant), d.Name, d.Digest)
			}
			if err := read(); err != nil {
				return err
			}
			created = version == 0
			if created {
				if _, err := c.exec(stmtDefinitionInsert, int64(d.Tenant), d.Name, int64(d.Tenant), d.Name,
					d.Digest, d.Description, blobOf(d.Source), micro(d.PublishedAt), d.PublishedBy); err != nil {
					return badWrite(0, err)
				}
				if err := read(); err != nil {
					return err
				}
			} else {
				audit.Answer = string(ringi.Repeated)
			}
			return c.record(d.Tenant, nil, 0, &audit)
		})
	})
	if err != nil {
		return 0, false, err
	}
	return version, created, nil
}

// definitionColumns are what readDefinitions reads.
const definitionColumns = `select tenant, name, version, digest, description, published_at, published_by, `

// readDefinitions reads versions; the text says which, and in what order.
func (s *Store) readDefinitions(ctx context.Context, source, which string, args ...any) ([]store.Definition, error) {
	var list []store.Definition
	size := 0
	err := s.each(ctx, definitionColumns+source+` from definition where tenant = ? `+which, func(row cells) error {
		list = append(list, store.Definition{
			Tenant: ringi.Tenant(row.num(0)), Name: row.text(1), Version: int(row.num(2)), Digest: row.text(3), Description: row.text(4),
			PublishedAt: row.time(5), PublishedBy: row.text(6), Source: row.blob(7),
		})
		if size += len(row.blob(7)); size > store.PageBytes && len(list) > 1 {
			return errEnough
		}
		return nil
	}, args...)
	return list, err
}

// Definition implements store.Catalog.
func (s *Store) Definition(ctx context.Context, tenant ringi.Tenant, name string, version int) (store.Definition, error) {
	which, args := `and name = ? order by version desc limit 1`, []any{int64(tenant), name}
	if version != 0 {
		which, args = `and name = ? and version = ?`, append(args, int64(version))
	}
	list, err := s.readDefinitions(ctx, `source`, which, args...)
	if err != nil {
		return store.Definition{}, err
	}
	if len(list) == 0 {
		return store.Definition{}, store.ErrNotFound
	}
	return list[0], nil
}

// Definitions implements store.Catalog.
func (s *Store) Definitions(ctx context.Context, q ringi.DefinitionQuery) ([]store.Definition, string, error) {
	after, err := store.ParseCursor(q.After, 2)
	if err != nil {
		return nil, "", err
	}
	which, args := "", []any{int64(q.Tenant)}
	source := `null`
	if q.Name != "" {
		source, which, args = `source`, `and name = ? `, append(args, q.Name)
	}
	if after != nil {
		version, err := strconv.Atoi(after[1])
		if err != nil {
			return nil, "", store.BadCursor()
		}
		which, args = which+`and (name > ? or name = ? and version < ?) `, append(args, after[0], after[0], int64(version))
	}
	list, err := s.readDefinitions(ctx, source, which+`order by name, version desc limit ?`, append(args, int64(store.PageSize(q.Limit)+1))...)
	if err != nil && !isEnough(err) {
		return nil, "", err
	}
	list, next := store.PageDefinitions(list, q)
	return list, next, nil
}
