// Package memory is the outbox in memory: the reference of every other, for tests,
// the simulator and a store in memory that embeds it.
package memory

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/table"
)

// Outbox is the reference Source, Fleet and Desk. The zero value is an empty outbox. It is
// safe for concurrent use and must not be copied after its first use.
type Outbox struct {
	mu    sync.Mutex
	rows  map[string]*entry
	open  map[string]*entry // the undelivered ones, pending and claimed
	heads map[outbox.Key]int64
	last  int64 // insertions so far
	turn  int64 // the tenant that began the last claim
	fleet fleet

	changes []outbox.Change // what operators did
}

// entry is a row of the table: a message and its columns of delivery.
type entry struct {
	outbox.Message
	at        table.Row
	attempts  int
	fence     int64 // the partition's epoch at the claim
	by        string
	delivered time.Time
	err       string
}

var _ outbox.Source = (*Outbox)(nil)

// Insert writes messages, numbered per aggregate in the order given, all or
// none. It refuses what sqlite.Insert refuses, outbox.ErrDuplicate among it. A
// store that embeds Outbox calls it as the last thing of a commit that can fail.
func (s *Outbox) Insert(msgs ...outbox.Message) error {
	groups, err := table.Arrange(msgs)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range msgs {
		if s.rows[msgs[i].ID] != nil {
			return fmt.Errorf("outbox: insert message %s: %w", msgs[i].ID, outbox.ErrDuplicate)
		}
	}
	if s.rows == nil {
		s.rows, s.open, s.heads = map[string]*entry{}, map[string]*entry{}, map[outbox.Key]int64{}
	}
	seqs := make([]int64, len(msgs))
	for _, g := range groups {
		for _, m := range g.Members {
			s.heads[g.Key]++
			seqs[m] = s.heads[g.Key]
		}
	}
	for i, m := range msgs {
		s.last++
		m.Seq = seqs[i]
		m.Payload = bytes.Clone(m.Payload)
		m.Headers = maps.Clone(m.Headers)
		m.CreatedAt = table.Time(m.CreatedAt.UnixMicro())
		r := &entry{Message: m, at: table.Row{
			N: s.last, ID: m.ID, Key: m.Key(), Seq: m.Seq, NextAt: m.CreatedAt.UnixMicro(), Size: len(m.Payload),
		}}
		s.rows[m.ID], s.open[m.ID] = r, r
	}
	return nil
}

// Claim implements Source.
func (s *Outbox) Claim(ctx context.Context, c outbox.Claim) (outbox.Batch, error) {
	if err := ctx.Err(); err != nil {
		return outbox.Batch{}, fmt.Errorf("outbox: claim: %w", err)
	}
	if err := c.Check(); err != nil {
		return outbox.Batch{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	fences := s.fleet.fences(c)
	ch, err := table.Choose(ctx, newShelf(s, c, fences), c, s.turn)
	if err != nil {
		return outbox.Batch{}, err
	}
	for _, b := range ch.Setbacks {
		s.open[b.Row.ID].at.NextAt = b.NextAt
	}
	batch := outbox.Batch{More: ch.More}
	for i, chosen := range ch.Rows {
		if i == 0 {
			s.turn = chosen.Key.Tenant
		}
		r := s.open[chosen.ID]
		r.at.State, r.by, r.at.Lease = outbox.Claimed, c.By, c.Now.Add(c.Lease).UnixMicro()
		r.attempts++
		r.at.Epoch++
		r.fence = fences[partitionOf(r.at.Key)]
		batch.Messages = append(batch.Messages, outbox.ClaimedMessage{Message: r.Message, Attempt: r.attempts, Orphaned: chosen.State == outbox.Claimed, Epoch: r.at.Epoch, Fence: r.fence})
	}
	return batch, nil
}

// Mark implements Source.
func (s *Outbox) Mark(ctx context.Context, at time.Time, marks []outbox.Mark) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("outbox: mark: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	applied := 0
	for _, m := range marks {
		r := s.open[m.ID]
		if r == nil || r.at.State != outbox.Claimed || r.at.Epoch != m.Epoch || m.Fence != 0 && m.Fence != s.fleet.epoch(r) {
			continue
		}
		applied++
		r.by, r.at.Lease = "", 0
		if m.Error != "" {
			r.err = m.Error
		}
		switch m.Outcome {
		case outbox.MarkDelivered:
			r.at.State, r.delivered, r.err = outbox.Delivered, table.Time(at.UnixMicro()), ""
			delete(s.open, m.ID)
		case outbox.MarkDead:
			r.at.State = outbox.Dead
			delete(s.open, m.ID)
		case outbox.MarkParked:
			r.at.State, r.at.NextAt = outbox.Parked, table.Never
		case outbox.MarkFailed:
			r.at.State, r.at.NextAt = outbox.Pending, m.NextAt.UnixMicro()
		case outbox.MarkReleased:
			r.at.State, r.at.NextAt = outbox.Pending, m.NextAt.UnixMicro()
			r.attempts--
		}
	}
	return applied, nil
}

// Prune implements Source.
func (s *Outbox) Prune(ctx context.Context, before time.Time, limit int) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("outbox: prune: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var old []*entry
	for _, r := range s.rows {
		if r.at.State == outbox.Delivered && r.delivered.Before(before) {
			old = append(old, r)
		}
	}
	slices.SortFunc(old, func(a, b *entry) int {
		return cmp.Or(a.delivered.Compare(b.delivered), cmp.Compare(a.at.N, b.at.N))
	})
	old = old[:min(limit, len(old))]
	for _, r := range old {
		delete(s.rows, r.ID)
	}
	return len(old), nil
}

// Stats implements Source.
func (s *Outbox) Stats(ctx context.Context) (outbox.Stats, error) {
	if err := ctx.Err(); err != nil {
		return outbox.Stats{}, fmt.Errorf("outbox: stats: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var st outbox.Stats
	for _, r := range s.rows {
		switch r.at.State {
		case outbox.Pending:
			st.Pending++
			if r.attempts > 0 {
				st.Failing++
			}
		case outbox.Claimed:
			st.Claimed++
		case outbox.Parked:
			st.Parked++
		case outbox.Dead:
			st.Dead++
			continue
		case outbox.Delivered:
			continue
		}
		if st.Oldest.IsZero() || r.CreatedAt.Before(st.Oldest) {
			st.Oldest = r.CreatedAt
		}
	}
	return st, nil
}

// shelf reads for a choice while the lock is held.
type shelf struct {
	s           *Outbox
	destination string
	fences      map[int]int64   // partitions that are claimed from; nil for all
	only        map[string]bool // messages that the claim begins at; nil for all
}

func newShelf(s *Outbox, c outbox.Claim, fences map[int]int64) shelf {
	sh := shelf{s: s, destination: c.Destination, fences: fences}
	if len(c.IDs) > 0 {
		sh.only = map[string]bool{}
		for _, id := range c.IDs {
			sh.only[id] = true
		}
	}
	return sh
}

// beginsAt tells whether the claim begins at a row.
func (sh shelf) beginsAt(r *table.Row) bool { return sh.only == nil || sh.only[r.ID] }

// holds tells whether the claim may look at a row.
func (sh shelf) holds(r *entry) bool {
	if r.Destination != sh.destination {
		return false
	}
	if sh.fences == nil {
		return true
	}
	_, ok := sh.fences[partitionOf(r.at.Key)]
	return ok
}

func (sh shelf) Tenants(context.Context) ([]int64, error) {
	set := map[int64]bool{}
	for _, r := range sh.s.open {
		if sh.holds(r) && sh.beginsAt(&r.at) {
			set[r.at.Key.Tenant] = true
		}
	}
	return slices.Sorted(maps.Keys(set)), nil
}

func (sh shelf) Due(_ context.Context, tenant, now int64, last table.Row) ([]table.Row, bool, error) {
	rows := sh.list(table.Page, byDue, func(r table.Row) bool {
		return sh.beginsAt(&r) && r.Key.Tenant == tenant && r.NextAt <= now && !r.Held(now) && byDue(r, last) > 0
	})
	return rows, len(rows) < table.Page, nil
}

func (sh shelf) Runs(_ context.Context, most map[outbox.Key]int) (map[outbox.Key][]table.Row, error) {
	runs := make(map[outbox.Key][]table.Row, len(most))
	for key, n := range most {
		runs[key] = sh.list(n, bySeq, func(r table.Row) bool { return r.Seq > 0 && r.Key == key })
	}
	return runs, nil
}

func (sh shelf) list(limit int, order func(a, b table.Row) int, want func(table.Row) bool) []table.Row {
	var rows []table.Row
	for _, r := range sh.s.open {
		if sh.holds(r) && want(r.at) {
			rows = append(rows, r.at)
		}
	}
	slices.SortFunc(rows, order)
	return rows[:min(limit, len(rows))]
}

func byDue(a, b table.Row) int {
	return cmp.Or(cmp.Compare(a.NextAt, b.NextAt), cmp.Compare(a.N, b.N))
}

func bySeq(a, b table.Row) int { return cmp.Compare(a.Seq, b.Seq) }
