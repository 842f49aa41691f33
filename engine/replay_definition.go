package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
	"github.com/ringiflow/ringi/workflow"
)

// A heldVersion is what the catalog says of a version.
type heldVersion struct {
	missing bool
	digest  string
}

// readVersion parses a stored version. It is only what its digest and its
// columns say it is: everything that a run does follows from it.
func readVersion(d store.Definition) (*workflow.Definition, error) {
	def, problems := workflow.Parse(d.Name, d.Source)
	switch {
	case def == nil && len(problems) > 0:
		return nil, fmt.Errorf("its source cannot be read: %s", problems[0].Message)
	case def == nil:
		return nil, errors.New("its source cannot be read")
	case def.Digest != d.Digest:
		return nil, fmt.Errorf("its source has the digest %s, it was published with %s: the source was changed", def.Digest, d.Digest)
	case def.Name != d.Name:
		return nil, fmt.Errorf("its source is of %s", def.Name)
	}
	return def, nil
}

// version reads a version once, and names what is wrong with it.
func (r *replayer) version(ctx context.Context, key versionKey) (heldVersion, error) {
	if v, ok := r.versions[key]; ok {
		return v, nil
	}
	d, err := r.from.Definition(ctx, key.tenant, key.name, key.version)
	v := heldVersion{digest: d.Digest}
	switch {
	case errors.Is(err, store.ErrNotFound):
		v.missing = true
	case err != nil:
		return v, err
	default:
		def, err := readVersion(d)
		if err == nil && def.Description != d.Description {
			err = errors.New("its description is not that of its source")
		}
		if err != nil {
			r.mismatch(Mismatch{What: "definition", Detail: fmt.Sprintf("%s version %d: %v", key.name, key.version, err)})
		}
	}
	r.versions[key] = v
	return v, nil
}

// compareDefinition checks that the version which the run began with stands.
func (p *replay) compareDefinition(ctx context.Context) error {
	s := p.state
	v, err := p.version(ctx, versionKey{nameKey{s.Tenant, s.Definition}, s.Version})
	switch {
	case err != nil:
		return err
	case v.missing:
		p.at("definition", 1, fmt.Sprintf("%s version %d is missing", s.Definition, s.Version))
	case v.digest != s.Digest:
		p.at("definition", 1, fmt.Sprintf("%s version %d has the digest %s, the run began with %s", s.Definition, s.Version, v.digest, s.Digest))
	}
	return nil
}

// definitions checks every version of a tenant. Versions are counted from 1.
func (r *replayer) definitions(ctx context.Context, tenant ringi.Tenant) error {
	q := ringi.DefinitionQuery{Tenant: tenant, Limit: store.LargestPage}
	below := versionKey{nameKey: nameKey{tenant: tenant}} // the version before, one larger than the next of its name
	gap := func(next int) {
		for v := below.version - 1; v > next; v-- {
			r.mismatch(Mismatch{What: "definition", Detail: fmt.Sprintf("%s version %d is missing", below.name, v)})
		}
	}
	for {
		list, next, err := r.from.Definitions(ctx, q)
		if err != nil {
			return err
		}
		for _, d := range list {
			key := versionKey{nameKey{tenant, d.Name}, d.Version}
			if key.name == below.name {
				gap(key.version)
			} else {
				gap(0)
			}
			below = key
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
