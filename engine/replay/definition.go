package replay

import (
	"context"
	"errors"
	"fmt"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
	"github.com/ringiflow/ringi/workflow"
)

// A version names a version of a definition.
type version struct {
	tenant ringi.Tenant
	name   string
	number int
}

// String is the version as people name it.
func (v version) String() string { return fmt.Sprintf("%s version %d", v.name, v.number) }

// held is what the catalog says of a version.
type held struct {
	missing bool
	digest  string
}

// version reads a version once, and names what is wrong with it.
func (r *replayer) version(ctx context.Context, key version) (held, error) {
	if v, ok := r.versions[key]; ok {
		return v, nil
	}
	d, err := r.from.Definition(ctx, key.tenant, key.name, key.number)
	v := held{digest: d.Digest}
	switch {
	case errors.Is(err, store.ErrNotFound):
		v.missing = true
	case err != nil:
		return v, err
	default:
		def, err := workflow.Stored(d.Name, d.Digest, d.Source)
		if err == nil && def.Description != d.Description {
			err = errors.New("its description is not that of its source")
		}
		if err != nil {
			r.mismatch(Mismatch{What: "definition", Detail: fmt.Sprintf("%s: %v", key, err)})
		}
	}
	r.versions[key] = v
	return v, nil
}

// compareDefinition checks that the version which the run began with stands.
func (p *replay) compareDefinition(ctx context.Context) error {
	key := version{p.state.Tenant, p.state.Definition, p.state.Version}
	v, err := p.version(ctx, key)
	switch {
	case err != nil:
		return err
	case v.missing:
		p.at("definition", 1, key.String()+" is missing")
	case v.digest != p.state.Digest:
		p.at("definition", 1, fmt.Sprintf("%s has the digest %s, the run began with %s", key, v.digest, p.state.Digest))
	}
	return nil
}

// definitions checks every version of a tenant. Versions are counted from 1.
func (r *replayer) definitions(ctx context.Context, tenant ringi.Tenant) error {
	q := ringi.DefinitionQuery{Tenant: tenant, Limit: store.LargestPage}
	last := version{tenant: tenant} // the one before, which is the next larger of its name
	gap := func(next int) {
		for n := last.number - 1; n > next; n-- {
			r.mismatch(Mismatch{What: "definition", Detail: version{tenant, last.name, n}.String() + " is missing"})
		}
	}
	for {
		list, next, err := r.from.Definitions(ctx, q)
		if err != nil {
			return err
		}
		for _, d := range list {
			key := version{tenant, d.Name, d.Version}
			if key.name == last.name {
				gap(key.number)
			} else {
				gap(0)
			}
			last = key
			if _, err := r.version(ctx, key); err != nil {
				return err
			}
		}
		if q.After = next; next == "" {
			gap(0)
			return nil
		}
	}
}
