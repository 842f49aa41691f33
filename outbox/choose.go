package outbox

import (
	"context"
	"slices"
	"time"
)

const (
	// page is how many due rows are looked at in one read while choosing.
	page = 256

	// pagesPerTenant bounds one claim: a transaction that walked a million rows
	// of a blocked key would hold up every other writer.
	pagesPerTenant = 8

	// heldPause is how long rows are set back whose head another relay has. It
	// is far shorter than a lease, because that relay is probably about to mark.
	heldPause = 100 * time.Millisecond
)

// row is what choosing needs to know of an undelivered message.
type row struct {
	n      int64 // order of insertion, the second part of the order of due rows
	id     string
	key    Key
	seq    int64
	state  State
	epoch  int64
	nextAt int64 // microseconds
	lease  int64 // when the claim ends; 0 while nobody has it
	size   int   // payload bytes
	whole  any   // what the source keeps of the row until it is taken
}

// held tells whether a relay has the row now.
func (r *row) held(now int64) bool { return r.lease > now }

// moment is when a row's turn comes: when it is due or, if its lease ended without
// a mark, at that end, behind what was due meanwhile.
func (r *row) moment() int64 { return max(r.nextAt, r.lease) }

// shelf is what a source lets the choice read of the claim's destination (and
// partitions), all inside the claim's transaction. Every source implements it,
// so the rule of what may be claimed stands here once.
type shelf interface {
	// tenants lists tenants that have undelivered rows, ascending.
	tenants(ctx context.Context) ([]int64, error)
	// due lists a tenant's undelivered rows with next_at at or before now that no
	// relay has, by (next_at, n), after that of the last row seen, at most page of
	// them. end says that there are no more behind them.
	due(ctx context.Context, tenant, now int64, last row) (rows []row, end bool, err error)
	// runs lists, for each key, its first undelivered rows by seq, as many as
	// the key is mapped to.
	runs(ctx context.Context, most map[Key]int) (map[Key][]row, error)
}

// setback moves a row whose turn has not come, or that cannot be claimed before
// its head, out of the way, so
// that the rows of a blocked key do not stand in front of all others at every
// claim. It is never later than the moment at which the head is due.
type setback struct {
	row    row
	nextAt int64
}

// choice is what a claim will do: take rows in this order, set others back.
type choice struct {
	rows     []row
	setbacks []setback
	more     bool
}

// choose applies the claim's rules: order by key, tenants in turn beginning
// after the tenant that began the last claim, and suspects (rows whose lease
// ended without a mark) alone.
//
// Whether a key may go on is decided by its head, the undelivered row with the
// smallest number, and by nothing else: a later row has never been tried, so its
// own next_at says nothing. The rejected alternative, asking the database for due
// rows without an earlier one, reads all rows of a long key at every claim.
func choose(ctx context.Context, sh shelf, c Claim, after int64) (choice, error) {
	tenants, err := sh.tenants(ctx)
	if err != nil {
		return choice{}, err
	}
	var ch choice
	lines := make([]*line, 0, len(tenants))
	for _, t := range inTurn(tenants, after) {
		lines = append(lines, &line{shelf: sh, tenant: t, now: c.Now.UnixMicro(), ahead: c.Ahead, choice: &ch, heads: map[Key]int64{}})
	}
	bytes := 0
	for len(lines) > 0 {
		kept := lines[:0]
		for i, l := range lines {
			r, ok, err := l.next(ctx)
			if err != nil {
				return choice{}, err
			}
			if !ok {
				continue
			}
			kept = append(kept, l)
			if r.state == Claimed {
				if len(ch.rows) == 0 && !c.Ahead {
					ch.rows, ch.more = []row{r}, true
					return ch, nil
				}
				ch.more = true
				continue
			}
			if len(ch.rows) > 0 && c.Bytes > 0 && bytes+r.size > c.Bytes {
				ch.more = true
				return ch, nil
			}
			ch.rows = append(ch.rows, r)
			bytes += r.size
			if len(ch.rows) == c.Limit {
				ch.more = ch.more || i < len(lines)-1 || l.left()
				return ch, nil
			}
		}
		lines = kept
	}
	return ch, nil
}

// inTurn rotates tenants so that the first one above after leads.
func inTurn(tenants []int64, after int64) []int64 {
	i, found := slices.BinarySearch(tenants, after)
	if found {
		i++
	}
	return append(slices.Clone(tenants[i:]), tenants[:i]...)
}

// line is one tenant's due rows, handed out one at a time.
type line struct {
	shelf  shelf
	tenant int64
	now    int64
	ahead  bool // see Claim.Ahead
	choice *choice

	page  []row // what is left of the page under way
	last  row   // the last row read
	pages int
	end   bool
	run   []row         // rows of one key, claimable in this order
	runs  map[Key][]row // the front of each key that the page names first
	heads map[Key]int64 // keys seen: 0, or when a head that is not due comes back
}

// next returns the tenant's next claimable row.
func (l *line) next(ctx context.Context) (row, bool, error) {
	for {
		if len(l.run) > 0 {
			r := l.run[0]
			l.run = l.run[1:]
			return r, true, nil
		}
		if len(l.page) == 0 {
			ok, err := l.turnPage(ctx)
			if err != nil || !ok {
				return row{}, false, err
			}
		}
		r := l.page[0]
		l.page = l.page[1:]
		if r.moment() > r.nextAt {
			l.choice.setbacks = append(l.choice.setbacks, setback{row: r, nextAt: r.moment()})
			l.choice.more = true // it is due all the same
			continue
		}
		if r.seq == 0 {
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
func (l *line) open(r row) {
	back, seen := l.heads[r.key]
	if !seen {
		run := l.runs[r.key]
		if len(run) > 0 && run[0].moment() > r.nextAt && run[0].moment() <= l.now {
			l.choice.setbacks = append(l.choice.setbacks, setback{row: r, nextAt: run[0].moment()})
			l.choice.more = true
			return // its head is still to come
		}
		back = l.begin(run)
		l.heads[r.key] = back
	}
	if back > 0 {
		l.choice.setbacks = append(l.choice.setbacks, setback{row: r, nextAt: back})
	}
}

// begin takes the claimable front of a key's rows, or returns when to look again.
func (l *line) begin(run []row) int64 {
	if len(run) == 0 {
		return 0
	}
	head := run[0]
	switch {
	case head.held(l.now) && l.ahead:
		return 0
	case head.held(l.now):
		return min(head.lease, l.now+heldPause.Microseconds())
	case head.nextAt > l.now:
		return head.nextAt
	case head.state == Claimed:
		l.run = run[:1]
		return 0
	}
	n := slices.IndexFunc(run, func(r row) bool { return r.state != Pending })
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
		l.choice.more = true
		return false, nil
	}
	rows, end, err := l.shelf.due(ctx, l.tenant, l.now, l.last)
	if err != nil {
		return false, err
	}
	l.pages++
	l.end = end
	if len(rows) == 0 {
		return false, nil
	}
	l.page, l.last = rows, rows[len(rows)-1]
	l.runs, err = l.shelf.runs(ctx, l.unseen(rows))
	return err == nil, err
}

// unseen counts the rows of each key that no page has named before. Of the front
// of a key as many rows are read as the page has of it: there is always a due
// row for each, and no claim reads more rows than its pages hold, however long
// the keys are.
func (l *line) unseen(rows []row) map[Key]int {
	most := map[Key]int{}
	for _, r := range rows {
		if _, seen := l.heads[r.key]; r.seq > 0 && !seen {
			most[r.key]++
		}
	}
	return most
}

// left tells whether the tenant may have more rows than were taken.
func (l *line) left() bool {
	return len(l.run) > 0 || len(l.page) > 0 || !l.end
}
