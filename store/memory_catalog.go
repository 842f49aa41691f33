package store

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/ringiflow/ringi"
)

// memoryName names a definition.
type memoryName struct {
	tenant ringi.Tenant
	name   string
}

// PutDefinition implements Catalog.
func (m *Memory) PutDefinition(ctx context.Context, d Definition, audit AuditRecord) (version int, created bool, err error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return 0, false, err
	}
	defer unlock()
	name := memoryName{d.Tenant, d.Name}
	for _, old := range m.catalog[name] {
		if old.Digest == d.Digest {
			audit.Answer = string(ringi.Repeated)
			m.record(d.Tenant, CommitID{}, false, []AuditRecord{audit})
			return old.Version, false, nil
		}
	}
	d.Version = len(m.catalog[name]) + 1
	m.catalog[name] = append(m.catalog[name], d)
	m.record(d.Tenant, CommitID{}, false, []AuditRecord{audit})
	return d.Version, true, nil
}

// Definition implements Catalog.
func (m *Memory) Definition(ctx context.Context, tenant ringi.Tenant, name string, version int) (Definition, error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return Definition{}, err
	}
	defer unlock()
	versions := m.catalog[memoryName{tenant, name}]
	if version == 0 {
		version = len(versions)
	}
	if version < 1 || version > len(versions) {
		return Definition{}, ErrNotFound
	}
	return versions[version-1], nil
}

// Definitions implements Catalog.
func (m *Memory) Definitions(ctx context.Context, q ringi.DefinitionQuery) ([]Definition, string, error) {
	after, err := ParseCursor(q.After, 2)
	if err != nil {
		return nil, "", err
	}
	below := 0
	if after != nil {
		if below, err = strconv.Atoi(after[1]); err != nil {
			return nil, "", BadCursor()
		}
	}
	unlock, err := m.lock(ctx)
	if err != nil {
		return nil, "", err
	}
	defer unlock()
	var list []Definition
	for name, versions := range m.catalog {
		if name.tenant != q.Tenant || q.Name != "" && name.name != q.Name {
			continue
		}
		for _, d := range versions {
			if after == nil || d.Name > after[0] || d.Name == after[0] && d.Version < below {
				list = append(list, d)
			}
		}
	}
	slices.SortFunc(list, func(a, b Definition) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(b.Version, a.Version))
	})
	list, next := PageDefinitions(list, q)
	return list, next, nil
}

// PageDefinitions cuts a list of versions to one page, sources only when one
// name was asked for, and returns the cursor of the next; "" when the list
// ends within the page. Drivers read one row more than PageSize and pass it.
func PageDefinitions(list []Definition, q ringi.DefinitionQuery) ([]Definition, string) {
	size := 0
	for i := range list {
		if q.Name == "" {
			list[i].Source = nil
		}
		size += len(list[i].Source)
		if i == PageSize(q.Limit) || i > 0 && size > PageBytes {
			last := list[i-1]
			return list[:i], Cursor(last.Name, strconv.Itoa(last.Version))
		}
	}
	return list, ""
}
