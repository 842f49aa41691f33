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

// Memory is the reference Source: an outbox in memory, for tests, the simulator
// and a store in memory that embeds it. The zero value is an empty outbox. It is
// safe for concurrent use and must not be copied after its first use.
type Memory struct {
	mu    sync.Mutex
	rows  map[string]*memoryRow
	open  map[string]*memoryRow // the undelivered ones, pending and claimed
	heads map[Key]int64
	last  int64 // insertions so far
	turn  int64 // the tenant that began the last claim
}

// memoryRow is a row of the table: a message and its columns of delivery.
type memoryRow struct {
	Message
	row
	attempts  int
	epoch     int64
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
	ch, err := choose(ctx, memoryShelf{s}, c, s.turn)
	if err != nil {
		return Batch{}, err
	}
	back := map[int64]int64{}
	for _, b := range ch.setbacks {
		back[b.n] = b.nextAt
	}
	for _, r := range s.open {
		if at, ok := back[r.n]; ok {
			r.nextAt = at
		}
	}
	batch := Batch{More: ch.more}
	for i, chosen := range ch.rows {
		if i == 0 {
			s.turn = chosen.key.Tenant
		}
		r := s.open[chosen.id]
		r.state, r.by, r.nextAt = Claimed, c.By, c.Now.Add(c.Lease).UnixMicro()
		r.attempts++
		r.epoch++
		batch.Messages = append(batch.Messages, ClaimedMessage{Message: r.Message, Attempt: r.attempts, Epoch: r.epoch})
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
		if r == nil || r.state != Claimed || r.epoch != m.Epoch {
			continue
		}
		applied++
		r.by = ""
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
type memoryShelf struct{ s *Memory }

func (sh memoryShelf) tenants(context.Context) ([]int64, error) {
	set := map[int64]bool{}
	for _, r := range sh.s.open {
		set[r.key.Tenant] = true
	}
	return slices.Sorted(maps.Keys(set)), nil
}

func (sh memoryShelf) due(_ context.Context, tenant, now int64, last row) ([]row, error) {
	return sh.list(page, byDue, func(r row) bool {
		return r.key.Tenant == tenant && r.nextAt <= now && byDue(r, last) > 0
	}), nil
}

func (sh memoryShelf) run(_ context.Context, key Key, limit int) ([]row, error) {
	return sh.list(limit, bySeq, func(r row) bool { return r.seq > 0 && r.key == key }), nil
}

func (sh memoryShelf) list(limit int, order func(a, b row) int, want func(row) bool) []row {
	var rows []row
	for _, r := range sh.s.open {
		if want(r.row) {
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
