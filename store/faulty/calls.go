package faulty

import (
	"context"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

// Load implements store.Store.
func (s *Store) Load(ctx context.Context, keys ...store.Key) ([]store.Loaded, error) {
	return read(s, Load, func() ([]store.Loaded, error) { return s.c.Store.Load(ctx, keys...) })
}

// Claim implements store.Store. Done without an answer it is a poll whose
// answer was lost.
func (s *Store) Claim(ctx context.Context, c store.Claim) ([]store.Claimed, error) {
	return change(s, Claim, func() ([]store.Claimed, error) { return s.c.Store.Claim(ctx, c) })
}

// Beat implements store.Store.
func (s *Store) Beat(ctx context.Context, beats ...store.Beat) ([]store.Beaten, error) {
	return change(s, Beat, func() ([]store.Beaten, error) { return s.c.Store.Beat(ctx, beats...) })
}

// DueTimers implements store.Store.
func (s *Store) DueTimers(ctx context.Context, now, claimUntil time.Time, limit int) ([]store.DueTimer, error) {
	return change(s, DueTimers, func() ([]store.DueTimer, error) { return s.c.Store.DueTimers(ctx, now, claimUntil, limit) })
}

// DueTasks implements store.Store.
func (s *Store) DueTasks(ctx context.Context, now time.Time, limit int) ([]store.DueTask, error) {
	return read(s, DueTasks, func() ([]store.DueTask, error) { return s.c.Store.DueTasks(ctx, now, limit) })
}

// Settle implements store.Store.
func (s *Store) Settle(ctx context.Context, settlement store.Settlement) error {
	_, err := change(s, Settle, func() (struct{}, error) { return struct{}{}, s.c.Store.Settle(ctx, settlement) })
	return err
}

// Close closes the wrapped store; what is late never lands.
func (s *Store) Close() error { return s.c.Store.Close() }

// Run implements store.Records.
func (s *Store) Run(ctx context.Context, key store.Key) (store.RunRecord, error) {
	return read(s, Run, func() (store.RunRecord, error) { return s.c.Records.Run(ctx, key) })
}

// Log implements store.Records.
func (s *Store) Log(ctx context.Context, key store.Key, after int64, maxBytes int) ([]store.LogRow, error) {
	return read(s, Log, func() ([]store.LogRow, error) { return s.c.Records.Log(ctx, key, after, maxBytes) })
}

// Standing implements store.Records.
func (s *Store) Standing(ctx context.Context, key store.Key) (ringi.Rows, error) {
	return read(s, Standing, func() (ringi.Rows, error) { return s.c.Records.Standing(ctx, key) })
}

// page is one page of a list.
type page[T any] struct {
	rows []T
	next string
}

// Runs implements store.Records.
func (s *Store) Runs(ctx context.Context, q ringi.RunQuery) ([]store.RunRecord, string, error) {
	p, err := read(s, Runs, func() (p page[store.RunRecord], err error) {
		p.rows, p.next, err = s.c.Records.Runs(ctx, q)
		return p, err
	})
	return p.rows, p.next, err
}

// Approvals implements store.Records.
func (s *Store) Approvals(ctx context.Context, q ringi.ApprovalQuery) ([]ringi.ApprovalView, string, error) {
	p, err := read(s, Approvals, func() (p page[ringi.ApprovalView], err error) {
		p.rows, p.next, err = s.c.Records.Approvals(ctx, q)
		return p, err
	})
	return p.rows, p.next, err
}

// Incidents implements store.Records.
func (s *Store) Incidents(ctx context.Context, q ringi.IncidentQuery) ([]ringi.IncidentView, string, error) {
	p, err := read(s, Incidents, func() (p page[ringi.IncidentView], err error) {
		p.rows, p.next, err = s.c.Records.Incidents(ctx, q)
		return p, err
	})
	return p.rows, p.next, err
}

// Queues implements store.Records.
func (s *Store) Queues(ctx context.Context, tenant ringi.Tenant, now time.Time) ([]ringi.QueueView, error) {
	return read(s, Queues, func() ([]ringi.QueueView, error) { return s.c.Records.Queues(ctx, tenant, now) })
}

// Audit implements store.Records.
func (s *Store) Audit(ctx context.Context, key store.Key, limit int) ([]store.AuditRecord, error) {
	return read(s, Audit, func() ([]store.AuditRecord, error) { return s.c.Records.Audit(ctx, key, limit) })
}

// PutDefinition implements store.Catalog.
func (s *Store) PutDefinition(ctx context.Context, d store.Definition, audit store.AuditRecord) (version int, created bool, err error) {
	type put struct {
		version int
		created bool
	}
	p, err := change(s, PutDefinition, func() (p put, err error) {
		p.version, p.created, err = s.c.Catalog.PutDefinition(ctx, d, audit)
		return p, err
	})
	return p.version, p.created, err
}

// Definition implements store.Catalog.
func (s *Store) Definition(ctx context.Context, tenant ringi.Tenant, name string, version int) (store.Definition, error) {
	return read(s, Definition, func() (store.Definition, error) { return s.c.Catalog.Definition(ctx, tenant, name, version) })
}

// Definitions implements store.Catalog.
func (s *Store) Definitions(ctx context.Context, q ringi.DefinitionQuery) ([]store.Definition, string, error) {
	p, err := read(s, Definitions, func() (p page[store.Definition], err error) {
		p.rows, p.next, err = s.c.Catalog.Definitions(ctx, q)
		return p, err
	})
	return p.rows, p.next, err
}

// Send implements store.Events.
func (s *Store) Send(ctx context.Context, tenant ringi.Tenant, e ringi.SentEvent, keepUntil time.Time) (bool, error) {
	return change(s, Send, func() (bool, error) { return s.c.Events.Send(ctx, tenant, e, keepUntil) })
}

// Pairs implements store.Events.
func (s *Store) Pairs(ctx context.Context, q store.PairQuery) ([]store.Pair, error) {
	return read(s, Pairs, func() ([]store.Pair, error) { return s.c.Events.Pairs(ctx, q) })
}

// Expire implements store.Events.
func (s *Store) Expire(ctx context.Context, now time.Time, limit int) (int, error) {
	return change(s, Expire, func() (int, error) { return s.c.Events.Expire(ctx, now, limit) })
}
