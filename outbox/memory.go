package outbox

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// Memory is the reference Source, Fleet and Desk: an outbox in memory, for tests, the simulator
// and a store in memory that embeds it. The zero value is an empty outbox. It is
// safe for concurrent use and must not be copied after its first use.
type Memory struct {
	mu    sync.Mutex
	rows  map[string]*memoryRow
	open  map[string]*memoryRow // the undelivered ones, pending and claimed
	heads map[Key]int64
	last  int64 // insertions so far
	turn  int64 // the tenant that began the last claim
	fleet memoryFleet

	changes []Change // what operators did
}

// memoryRow is a row of the table: a message and its columns of delivery.
type memoryRow struct {
	Message
	row
	attempts  int
	fence     int64 // the partition's epoch at the claim
	by        string
	delivered time.Time
	err       string
}

var _ Source = (*Memory)(nil)

// Insert writes messages, numbered per aggregate in the order given, all or
// none. It refuses what InsertSQLite refuses, ErrDuplicate among it. A store
// that embeds Memory calls it as the last thing of a commit that can fail.
func (s *Memory) Insert(msgs ...Message) error {
	groups, err := arrange(msgs)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range msgs {
		if s.rows[msgs[i].ID] != nil {
			return fmt.Errorf("outbox: insert message %s: %w", msgs[i].ID, ErrDuplicate)
		}
	}
	if s.rows == nil {
		s.rows, s.open, s.heads = map[string]*memoryRow{}, map[string]*memoryRow{}, map[Key]int64{}
	}
	seqs := make([]int64, len(msgs))
	for _, g := range groups {
		for _, m := range g.members {
			s.heads[g.key]++
			seqs[m] = s.heads[g.key]
		}
	}
	for i, m := range msgs {
		s.last++
		m.Seq = seqs[i]
		m.Payload = bytes.Clone(m.Payload)
		m.Headers = maps.Clone(m.Headers)
		m.CreatedAt = fromMicro(m.CreatedAt.UnixMicro())
		r := &memoryRow{Message: m, row: row{
			n: s.last, id: m.ID, key: m.Key(), seq: m.Seq, nextAt: m.CreatedAt.UnixMicro(), size: len(m.Payload),
		}}
		s.rows[m.ID], s.open[m.ID] = r, r
	}
	return nil
}

// Claim implements Source.
func (s *Memory) Claim(ctx context.Context, c Claim) (Batch, error) {
	if err := ctx.Err(); err != nil {
		return Batch{}, fmt.Errorf("outbox: claim: %w", err)
	}
	if err := c.check(); err != nil {
		return Batch{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	fences := s.fleet.fences(c)
	ch, err := choose(ctx, memoryShelf{s, c.Destination, fences}, c, s.turn)
	if err != nil {
		return Batch{}, err
	}
	for _, b := range ch.setbacks {
		s.open[b.row.id].nextAt = b.nextAt
	}
	batch := Batch{More: ch.more}
	for i, chosen := range ch.rows {
		if i == 0 {
			s.turn = chosen.key.Tenant
		}
		r := s.open[chosen.id]
		r.state, r.by, r.lease = Claimed, c.By, c.Now.Add(c.Lease).UnixMicro()
		r.attempts++
		r.epoch++
		r.fence = fences[partitionOf(r.key)]
		batch.Messages = append(batch.Messages, ClaimedMessage{Message: r.Message, Attempt: r.attempts, Orphaned: chosen.state == Claimed, Epoch: r.epoch, Fence: r.fence})
	}
	return batch, nil
}

// Mark implements Source.
func (s *Memory) Mark(ctx context.Context, at time.Time, marks []Mark) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("outbox: mark: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	applied := 0
	for _, m := range marks {
		r := s.open[m.ID]
		if r == nil || r.state != Claimed || r.epoch != m.Epoch || m.Fence != 0 && m.Fence != s.fleet.epoch(r) {
			continue
		}
		applied++
		r.by, r.lease = "", 0
		if m.Error != "" {
			r.err = m.Error
		}
		switch m.Outcome {
		case MarkDelivered:
			r.state, r.delivered, r.err = Delivered, fromMicro(at.UnixMicro()), ""
			delete(s.open, m.ID)
		case MarkDead:
			r.state = Dead
			delete(s.open, m.ID)
		case MarkParked:
			r.state, r.nextAt = Parked, never
		case MarkFailed:
			r.state, r.nextAt = Pending, m.NextAt.UnixMicro()
		case MarkReleased:
			r.state, r.nextAt = Pending, m.NextAt.UnixMicro()
			r.attempts--
		}
	}
	return applied, nil
}

// Prune implements Source.
func (s *Memory) Prune(ctx context.Context, before time.Time, limit int) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("outbox: prune: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var old []*memoryRow
	for _, r := range s.rows {
		if r.state == Delivered && r.delivered.Before(before) {
			old = append(old, r)
		}
	}
	slices.SortFunc(old, func(a, b *memoryRow) int {
		return cmp.Or(a.delivered.Compare(b.delivered), cmp.Compare(a.n, b.n))
	})
	old = old[:min(limit, len(old))]
	for _, r := range old {
		delete(s.rows, r.ID)
	}
	return len(old), nil
}

// Stats implements Source.
func (s *Memory) Stats(ctx context.Context) (Stats, error) {
	if err := ctx.Err(); err != nil {
		return Stats{}, fmt.Errorf("outbox: stats: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var st Stats
	for _, r := range s.rows {
		switch r.state {
		case Pending:
			st.Pending++
			if r.attempts > 0 {
				st.Failing++
			}
		case Claimed:
			st.Claimed++
		case Parked:
			st.Parked++
		case Dead:
			st.Dead++
			continue
		case Delivered:
			continue
		}
		if st.Oldest.IsZero() || r.CreatedAt.Before(st.Oldest) {
			st.Oldest = r.CreatedAt
		}
	}
	return st, nil
}

// memoryShelf reads for a choice while the lock is held.
type memoryShelf struct {
	s           *Memory
	destination string
	fences      map[int]int64 // partitions that are claimed from; nil for all
}

// holds tells whether the claim may look at a row.
func (sh memoryShelf) holds(r *memoryRow) bool {
	if r.Destination != sh.destination {
		return false
	}
	if sh.fences == nil {
		return true
	}
	_, ok := sh.fences[partitionOf(r.key)]
	return ok
}

func (sh memoryShelf) tenants(context.Context) ([]int64, error) {
	set := map[int64]bool{}
	for _, r := range sh.s.open {
		if sh.holds(r) {
			set[r.key.Tenant] = true
		}
	}
	return slices.Sorted(maps.Keys(set)), nil
}

func (sh memoryShelf) due(_ context.Context, tenant, now int64, last row) ([]row, bool, error) {
	rows := sh.list(page, byDue, func(r row) bool {
		return r.key.Tenant == tenant && r.nextAt <= now && !r.held(now) && byDue(r, last) > 0
	})
	return rows, len(rows) < page, nil
}

func (sh memoryShelf) runs(_ context.Context, most map[Key]int) (map[Key][]row, error) {
	runs := make(map[Key][]row, len(most))
	for key, n := range most {
		runs[key] = sh.list(n, bySeq, func(r row) bool { return r.seq > 0 && r.key == key })
	}
	return runs, nil
}

func (sh memoryShelf) list(limit int, order func(a, b row) int, want func(row) bool) []row {
	var rows []row
	for _, r := range sh.s.open {
		if sh.holds(r) && want(r.row) {
			rows = append(rows, r.row)
		}
	}
	slices.SortFunc(rows, order)
	return rows[:min(limit, len(rows))]
}

func byDue(a, b row) int {
	return cmp.Or(cmp.Compare(a.nextAt, b.nextAt), cmp.Compare(a.n, b.n))
}

func bySeq(a, b row) int { return cmp.Compare(a.seq, b.seq) }

// fromMicro is the one way from a stored time to a time.
func fromMicro(us int64) time.Time { return time.UnixMicro(us).UTC() }
