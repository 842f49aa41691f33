package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
	"github.com/ringiflow/ringi/workflow"
)

const (
	// mostCompiled bounds the compiled definitions in memory; one takes about
	// as much as its source ten times over.
	mostCompiled = 500
	// latestFor is how long a node believes that the latest version it read
	// is still the latest: a start that names no version may begin with the
	// one before for as long after another node published. What this node
	// publishes it knows at once.
	latestFor = time.Second
)

// Quotas bound what a definition may hold when it is published.
type Quotas = workflow.Quotas

// A catalog compiles definitions and keeps what it compiled: versions never
// change. Safe for concurrent use.
type catalog struct {
	*parts
	quotas Quotas

	mu       sync.Mutex
	era      int // how often everything was forgotten
	compiled map[versionKey]*workflow.Definition
	latest   map[nameKey]latestVersion
}

type nameKey struct {
	tenant ringi.Tenant
	name   string
}

type versionKey struct {
	nameKey
	version int
}

type latestVersion struct {
	version int
	at      time.Time
}

// Publish implements the waist's method.
func (c *catalog) Publish(ctx context.Context, p ringi.Publication) (ringi.Published, error) {
	p.Tenant = tenantOr(p.Tenant)
	def, problems := workflow.Check(p.File, p.Source, c.quotas)
	out := ringi.Published{Problems: problemsOf(problems)}
	if def == nil {
		return out, nil
	}
	if err := c.touch(ctx); err != nil {
		return ringi.Published{}, err
	}
	data, err := json.Marshal(map[string]string{"name": def.Name, "digest": def.Digest})
	if err != nil {
		return ringi.Published{}, internalFault(err)
	}
	now := c.clock.Now()
	version, created, err := c.Catalog.PutDefinition(ctx, store.Definition{
		Tenant: p.Tenant, Name: def.Name, Digest: def.Digest, Description: def.Description, Source: def.Source,
		PublishedAt: now, PublishedBy: p.Actor.ID,
	}, store.AuditRecord{
		At: now, Actor: p.Actor.ID, Kind: "publish", Answer: string(ringi.Accepted),
		Data: data,
	})
	if c.reach.Wrote(ctx, 0, err) != nil {
		return ringi.Published{}, storeFault(err)
	}
	c.mu.Lock()
	delete(c.latest, nameKey{p.Tenant, def.Name})
	c.mu.Unlock()
	out.Name, out.Version, out.Digest, out.Created = def.Name, version, def.Digest, created
	return out, nil
}

func problemsOf(list []workflow.Problem) []ringi.Problem {
	out := make([]ringi.Problem, len(list))
	for i, p := range list {
		out[i] = ringi.Problem{
			File: p.File, Line: p.Line, Column: p.Column, ID: p.ID, Severity: string(p.Severity),
			Message: p.Message, Suggestion: p.Suggestion,
		}
	}
	return out
}

// forget drops everything, because another database answers, in which a version
// may be another one. What is being read at this moment is not kept either.
func (c *catalog) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.era++
	clear(c.compiled)
	clear(c.latest)
}

// drop forgets one version, which may be of the database before this one.
func (c *catalog) drop(key versionKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.compiled, key)
}

// pinned is the definition that a run began with.
func (c *catalog) pinned(ctx context.Context, s *ringi.State) (*workflow.Definition, error) {
	def, _, err := c.version(ctx, s.Tenant, s.Definition, s.Version)
	if err == nil && def.Digest != s.Digest {
		c.drop(versionKey{nameKey{s.Tenant, s.Definition}, s.Version})
		def, _, err = c.version(ctx, s.Tenant, s.Definition, s.Version)
	}
	if err != nil {
		if ringi.ErrorCode(err) == ringi.CodeUnavailable {
			return nil, err
		}
		return nil, unreadRun(fmt.Errorf("definition %s version %d: %w", s.Definition, s.Version, err))
	}
	if def.Digest != s.Digest {
		return nil, unreadRun(fmt.Errorf("definition %s version %d has the digest %s, the run began with %s", s.Definition, s.Version, def.Digest, s.Digest))
	}
	return def, nil
}

// version returns a compiled version; 0 is the latest.
func (c *catalog) version(ctx context.Context, tenant ringi.Tenant, name string, version int) (*workflow.Definition, int, error) {
	key := nameKey{tenant, name}
	now := c.local()
	c.mu.Lock()
	if l, ok := c.latest[key]; ok && version == 0 && now.Sub(l.at) < latestFor {
		version = l.version
	}
	def, era := c.compiled[versionKey{key, version}], c.era
	c.mu.Unlock()
	if def != nil && version != 0 {
		return def, version, nil
	}
	d, err := c.Catalog.Definition(ctx, tenant, name, version)
	if errors.Is(err, store.ErrNotFound) {
		return nil, 0, noDefinition(name, version)
	}
	if c.reach.Note(ctx, err) != nil {
		return nil, 0, storeFault(err)
	}
	if def, err = c.compile(key, d, era); err != nil {
		return nil, 0, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if version == 0 && c.era == era {
		c.latest[key] = latestVersion{version: d.Version, at: now}
	}
	return def, d.Version, nil
}

func noDefinition(name string, version int) error {
	what := fmt.Sprintf("there is no definition %q", name)
	if version != 0 {
		what = fmt.Sprintf("there is no version %d of definition %q", version, name)
	}
	return &ringi.Error{Code: ringi.CodeNotFound, Message: what, Hint: "publish it first, or check the name"}
}

// compile reads a stored version. When too many are kept all are dropped:
// those in use come back with their next command. What was read before
// everything was forgotten is not kept.
func (c *catalog) compile(key nameKey, d store.Definition, era int) (*workflow.Definition, error) {
	vk := versionKey{key, d.Version}
	c.mu.Lock()
	def := c.compiled[vk]
	c.mu.Unlock()
	if def != nil && def.Digest == d.Digest {
		return def, nil
	}
	def, err := workflow.Stored(d.Name, d.Digest, d.Source)
	if err != nil {
		return nil, &ringi.Error{
			Code: ringi.CodeInternal, Message: fmt.Sprintf("version %d of definition %s is corrupt: %v", d.Version, d.Name, err), Err: err,
			Hint: "put the database back from a backup, or publish the definition again with a change, which makes a new version",
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.compiled) >= mostCompiled {
		clear(c.compiled)
	}
	if c.era == era {
		c.compiled[vk] = def
	}
	return def, nil
}
