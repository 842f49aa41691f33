package table

import (
	"context"
	"slices"
	"time"

	"github.com/ringiflow/ringi/outbox"
)

const (
	// Page is how many due rows are looked at in one read while choosing.
	Page = 256

	// pagesPerTenant bounds one claim: a transaction that walked a million rows
	// of a blocked key would hold up every other writer.
	pagesPerTenant = 8

	// heldPause is how long rows are set back whose head another relay has. It
	// is far shorter than a lease, because that relay is probably about to mark.
	heldPause = 100 * time.Millisecond
)

// Row is what choosing needs to know of an undelivered message.
type Row struct {
	N      int64 // order of insertion, the second part of the order of due rows
	ID     string
	Key    outbox.Key
	Seq    int64
	State  outbox.State
	Epoch  int64
	NextAt int64 // microseconds
	Lease  int64 // when the claim ends, in microseconds; 0 while nobody has it
	Size   int   // payload bytes
	Whole  any   // what the source keeps of the row until it is taken
}

// Held tells whether a relay has the row now.
func (r *Row) Held(now int64) bool { return r.Lease > now }

// moment is when a row's turn comes: when it is due or, if its lease ended without
// a mark, at that end, behind what was due meanwhile.
func (r *Row) moment() int64 { return max(r.NextAt, r.Lease) }

// Shelf is what a source lets the choice read of the claim's destination (and
// partitions), all inside the claim's transaction. Every source implements it,
// so the rule of what may be claimed stands here once.
type Shelf interface {
	// Tenants lists tenants that have undelivered rows, ascending.
	Tenants(ctx context.Context) ([]int64, error)

	// Due lists a tenant's undelivered rows with next_at at or before now that no
	// relay has, by (NextAt, N), after that of the last row seen, at most Page of
	// them. end says that there are no more behind them.
	Due(ctx context.Context, tenant, now int64, last Row) (rows []Row, end bool, err error)

	// Runs lists, for each key, its first undelivered rows by Seq, as many as
	// the key is mapped to.
	Runs(ctx context.Context, most map[outbox.Key]int) (map[outbox.Key][]Row, error)
}

// Setback moves a row whose turn has not come, or that cannot be claimed before
// its head, out of the way, so that the rows of a blocked key do not stand in
// front of all others at every claim. It is never later than the moment at which
// the head is due.
type Setback struct {
	Row    Row
	NextAt int64 // microseconds
}

// Choice is what a claim will do: take rows in this order, set others back.
type Choice struct {
	Rows     []Row
	Setbacks []Setback

	// More is that of the batch: something due may have been left behind.
	More bool
}

// Choose applies the claim's rules: order by key, tenants in turn beginning
// after the tenant that began the last claim, and suspects (rows whose lease
// ended without a mark) alone.
//
// Whether a key may go on is decided by its head, the undelivered row with the
// smallest number, and by nothing else: a later row has never been tried, so its
// own next_at says nothing. The rejected alternative, asking the database for due
// rows without an earlier one, reads all rows of a long key at every claim.
func Choose(ctx context.Context, sh Shelf, c outbox.Claim, after int64) (Choice, error) {
	tenants, err := sh.Tenants(ctx)
	if err != nil {
		return Choice{}, err
	}
	var ch Choice
	lines := make([]*line, 0, len(tenants))
	for _, t := range InTurn(tenants, after) {
		lines = append(lines, &line{shelf: sh, tenant: t, now: c.Now.UnixMicro(), ahead: c.Ahead, choice: &ch, heads: map[outbox.Key]int64{}})
	}
	bytes := 0
	for len(lines) > 0 {
		kept := lines[:0]
		for i, l := range lines {
			r, ok, err := l.next(ctx)
			if err != nil {
				return Choice{}, err
			}
			if !ok {
				continue
			}
			kept = append(kept, l)
			if r.State == outbox.Claimed {
				if len(ch.Rows) == 0 && !c.Ahead {
					ch.Rows, ch.More = []Row{r}, true
					return ch, nil
				}
				ch.More = true
				continue
			}
			if len(ch.Rows) > 0 && c.Bytes > 0 && bytes+r.Size > c.Bytes {
				ch.More = true
				return ch, nil
			}
			ch.Rows = append(ch.Rows, r)
			bytes += r.Size
			if len(ch.Rows) == c.Limit {
				ch.More = ch.More || i < len(lines)-1 || l.left()
				return ch, nil
			}
		}
		lines = kept
	}
	return ch, nil
}

// InTurn rotates tenants so that the first one above after leads.
func InTurn(tenants []int64, after int64) []int64 {
	i, found := slices.BinarySearch(tenants, after)
	if found {
		i++
	}
	return append(slices.Clone(tenants[i:]), tenants[:i]...)
}

// line is one tenant's due rows, handed out one at a time.
type line struct {
	shelf  Shelf
	tenant int64
	now    int64
	ahead  bool // see Claim.Ahead
	choice *Choice

	page  []Row // what is left of the page under way
	last  Row   // the last row read
	pages int
	end   bool
	run   []Row                // rows of one key, claimable in this order
	runs  map[outbox.Key][]Row // the front of each key that the page names first
	heads map[outbox.Key]int64 // keys seen: 0, or when a head that is not due comes back
}

// next returns the tenant's next claimable row.
func (l *line) next(ctx context.Context) (Row, bool, error) {
	for {
		if len(l.run) > 0 {
			r := l.run[0]
			l.run = l.run[1:]
			return r, true, nil
		}
		if len(l.page) == 0 {
			ok, err := l.turnPage(ctx)
			if err != nil || !ok {
				return Row{}, false, err
			}
		}
		r := l.page[0]
		l.page = l.page[1:]
		if r.moment() > r.NextAt {
			l.choice.Setbacks = append(l.choice.Setbacks, Setback{Row: r, NextAt: r.moment()})
			l.choice.More = true // it is due all the same
			continue
		}
		if r.Seq == 0 {
			return r, true, nil
		}
		l.open(r)
	}
}

// open looks at the key of a due row: its run becomes claimable, or the row is
// set back to the moment of its head. A key's turn comes with its head, also when
// that is due already: a later row that stands before its head in the order of due
// rows must not bring the head forward, or a head that was put behind everything
// else, as the probe of a circuit is, would be the first again.
func (l *line) open(r Row) {
	back, seen := l.heads[r.Key]
	if !seen {
		run := l.runs[r.Key]
		if len(run) > 0 && run[0].moment() > r.NextAt && run[0].moment() <= l.now {
			l.choice.Setbacks = append(l.choice.Setbacks, Setback{Row: r, NextAt: run[0].moment()})
			l.choice.More = true
			return // its head is still to come
		}
		back = l.begin(run)
		l.heads[r.Key] = back
	}
	if back > 0 {
		l.choice.Setbacks = append(l.choice.Setbacks, Setback{Row: r, NextAt: back})
	}
}

// begin takes the claimable front of a key's rows, or returns when to look again.
func (l *line) begin(run []Row) int64 {
	if len(run) == 0 {
		return 0
	}
	head := run[0]
	switch {
	case head.Held(l.now) && l.ahead:
		return 0
	case head.Held(l.now):
		return min(head.Lease, l.now+heldPause.Microseconds())
	case head.NextAt > l.now:
		return head.NextAt
	case head.State == outbox.Claimed:
		l.run = run[:1]
		return 0
	}
	n := slices.IndexFunc(run, func(r Row) bool { return r.State != outbox.Pending })
	if n < 0 {
		n = len(run)
	}
	l.run = run[:n]
	return 0
}

func (l *line) turnPage(ctx context.Context) (bool, error) {
	if l.end {
		return false, nil
	}
	if l.pages == pagesPerTenant {
		l.end = true
		l.choice.More = true
		return false, nil
	}
	rows, end, err := l.shelf.Due(ctx, l.tenant, l.now, l.last)
	if err != nil {
		return false, err
	}
	l.pages++
	l.end = end
	if len(rows) == 0 {
		return false, nil
	}
	l.page, l.last = rows, rows[len(rows)-1]
	l.runs, err = l.shelf.Runs(ctx, l.unseen(rows))
	return err == nil, err
}

// unseen counts the rows of each key that no page has named before. Of the front
// of a key as many rows are read as the page has of it: there is always a due
// row for each, and no claim reads more rows than its pages hold, however long
// the keys are.
func (l *line) unseen(rows []Row) map[outbox.Key]int {
	most := map[outbox.Key]int{}
	for _, r := range rows {
		if _, seen := l.heads[r.Key]; r.Seq > 0 && !seen {
			most[r.Key]++
		}
	}
	return most
}

// left tells whether the tenant may have more rows than were taken.
func (l *line) left() bool {
	return len(l.run) > 0 || len(l.page) > 0 || !l.end
}
