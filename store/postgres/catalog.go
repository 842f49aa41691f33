package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

const (
	textDefinitionOf statement = `select version from definition where tenant = $1::bigint and name = $2::text and digest = $3::text`
	// textDefinitionInsert takes the next version. Of several that take it at once
	// one wins; the others fail on the primary key and are tried again.
	textDefinitionInsert statement = `insert into definition (tenant, name, version, digest, description, source, published_at, published_by)
		select $1::bigint, $2::text, 1 + (select coalesce(max(version), 0) from definition where tenant = $1::bigint and name = $2::text),
			$3::text, $4::text, $5::bytea, $6::timestamptz, $7::text
		where not exists (select 1 from definition where tenant = $1::bigint and name = $2::text and digest = $3::text)
		returning version`
)

// publishTries is how often a version is taken when others publish the same
// name at once.
const publishTries = 20

// PutDefinition implements store.Catalog.
func (s *Store) PutDefinition(ctx context.Context, d store.Definition, audit store.AuditRecord) (version int, created bool, err error) {
	for range publishTries {
		version, created, err = s.putDefinition(ctx, d, audit)
		if err == nil && version != 0 {
			return version, created, nil
		}
		if err != nil && !taken(err) {
			return 0, false, badValue(err)
		}
	}
	return 0, false, fmt.Errorf("%w: others publish %s at the same time", store.ErrUnavailable, d.Name)
}

// taken reports whether an error says that another one took the version, or
// stored the same digest.
func taken(err error) bool {
	return hasConstraint(err, "definition_pkey") || hasConstraint(err, "definition_digest")
}

// putDefinition tries once; version 0 says that the digest appeared meanwhile.
func (s *Store) putDefinition(ctx context.Context, d store.Definition, audit store.AuditRecord) (version int, created bool, err error) {
	read := func(row cells) error {
		version = int(row.num(0))
		return nil
	}
	find := &call{statement: textDefinitionOf, row: read}
	find.int(int64(d.Tenant))
	find.text(d.Name)
	find.text(d.Digest)
	if err := s.read(ctx, find); err != nil {
		return 0, false, err
	}
	a := newAuditTable()
	if version != 0 {
		audit.Answer = string(ringi.Repeated)
		a.record(d.Tenant, store.CommitID{}, 0, &audit)
		return version, false, s.change(ctx, a.call(textAudit, false))
	}
	insert := &call{statement: textDefinitionInsert, row: read}
	insert.int(int64(d.Tenant))
	insert.text(d.Name)
	insert.text(d.Digest)
	insert.text(d.Description)
	insert.bytes(append([]byte{}, d.Source...))
	insert.time(d.PublishedAt)
	insert.text(d.PublishedBy)
	a.record(d.Tenant, store.CommitID{}, 0, &audit)
	// Nothing was inserted when another one stored the digest meanwhile; then the
	// audit record, which would say otherwise, is not written either.
	assert := &call{statement: `select 1 / (count(*) = 1)::int from definition where tenant = $1::bigint and name = $2::text and digest = $3::text and published_at = $4::timestamptz and published_by = $5::text`}
	assert.int(int64(d.Tenant))
	assert.text(d.Name)
	assert.text(d.Digest)
	assert.time(d.PublishedAt)
	assert.text(d.PublishedBy)
	err = s.change(ctx, insert, assert, a.call(textAudit, false))
	if faultOf(err) == faultCondition && errors.Is(err, store.ErrUnavailable) && !taken(err) {
		return 0, false, nil
	}
	return version, true, err
}

// readDefinitions reads versions; the text says which, and in what order.
func (s *Store) readDefinitions(ctx context.Context, source, which string, a args) ([]store.Definition, error) {
	var list []store.Definition
	size := 0
	err := s.list(ctx, `select tenant, name, version, digest, description, published_at, published_by, `+source+` from definition where tenant = $1::bigint `+which, a, func(row cells) error {
		if size > store.PageBytes && len(list) > 1 {
			return nil // the page is full
		}
		size += len(row[7])
		list = append(list, store.Definition{
			Tenant: row.tenant(0), Name: row.text(1), Version: int(row.num(2)), Digest: row.text(3), Description: row.text(4),
			PublishedAt: row.time(5), PublishedBy: row.text(6), Source: row.blob(7),
		})
		return nil
	})
	return list, err
}

// Definition implements store.Catalog.
func (s *Store) Definition(ctx context.Context, tenant ringi.Tenant, name string, version int) (store.Definition, error) {
	var a args
	a.int(int64(tenant))
	a.text(name)
	which := `and name = $2::text order by version desc limit 1`
	if version != 0 {
		which = `and name = $2::text and version = $3::bigint`
		a.int(int64(version))
	}
	list, err := s.readDefinitions(ctx, `source`, which, a)
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
	var a args
	a.int(int64(q.Tenant))
	a.int(int64(store.PageSize(q.Limit) + 1))
	source, which := `null::bytea`, ""
	if q.Name != "" {
		source, which = `source`, `and name = $3::text `
		a.text(q.Name)
	}
	if after != nil {
		version, err := strconv.Atoi(after[1])
		if err != nil {
			return nil, "", store.BadCursor()
		}
		n := len(a.values)
		which += fmt.Sprintf(`and (name > $%d::text or name = $%d::text and version < $%d::bigint) `, n+1, n+1, n+2)
		a.text(after[0])
		a.int(int64(version))
	}
	list, err := s.readDefinitions(ctx, source, which+`order by name, version desc limit $2::bigint`, a)
	if err != nil {
		return nil, "", err
	}
	list, next := store.PageDefinitions(list, q)
	return list, next, nil
}
