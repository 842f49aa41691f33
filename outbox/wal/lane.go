package wal

import (
	"slices"
	"sync"

	"github.com/jackc/pglogrepl"

	"github.com/ringiflow/ringi/outbox"
)

// desk hands what was read to the lanes of the relays. Safe for concurrent use.
type desk struct {
	mu       sync.Mutex
	ledger   ledger
	lanes    map[string][]*lane // by destination
	overflow int64              // messages that there was no room for
}

// lane is where one relay takes its messages from.
type lane struct {
	desk        *desk
	destination string
	hint        func()

	mine  [outbox.Partitions]bool
	queue []string // ids in the order of their commits, settled ones among them
	gap   bool     // something was committed that the queue does not hold
}

var _ outbox.Lane = (*lane)(nil)

func newDesk(most int) *desk {
	d := &desk{lanes: map[string][]*lane{}, ledger: ledger{most: most}}
	d.ledger.reset(0)
	return d
}

// Join implements outbox.Feed.
func (r *Reader) Join(destination string, hint func()) outbox.Lane {
	return r.desk.join(destination, hint)
}

func (d *desk) join(destination string, hint func()) *lane {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := &lane{desk: d, destination: destination, hint: hint, gap: true}
	d.lanes[destination] = append(d.lanes[destination], l)
	return l
}

// Leave implements outbox.Lane.
func (l *lane) Leave() {
	l.desk.mu.Lock()
	defer l.desk.mu.Unlock()
	l.settle(l.queue)
	l.queue = nil
	at := l.desk.lanes[l.destination]
	l.desk.lanes[l.destination] = slices.DeleteFunc(at, func(o *lane) bool { return o == l })
}

// Take implements outbox.Lane.
func (l *lane) Take(parts []outbox.Partition, limit int) (ids []string, gap bool) {
	l.desk.mu.Lock()
	defer l.desk.mu.Unlock()
	l.hold(parts)
	gap, l.gap = l.gap, false
	for len(l.queue) > 0 && len(ids) < limit {
		if id := l.queue[0]; l.desk.ledger.waits(id) {
			ids = append(ids, id)
		}
		l.queue = l.queue[1:]
	}
	return ids, gap
}

// hold notes which partitions the relay has. What waits of those that it has no more
// is found out by its claim, and left to whoever has them.
func (l *lane) hold(parts []outbox.Partition) {
	clear(l.mine[:])
	for _, p := range parts {
		l.mine[p.Number] = true
	}
	if parts == nil {
		for i := range l.mine {
			l.mine[i] = true
		}
	}
}

// Settle implements outbox.Lane.
func (l *lane) Settle(ids []string) {
	l.desk.mu.Lock()
	defer l.desk.mu.Unlock()
	l.settle(ids)
}

func (l *lane) settle(ids []string) {
	for _, id := range ids {
		l.desk.ledger.settle(id)
	}
}

// message is what is read of an insert.
type message struct {
	id, destination, aggregateID string
	tenant                       int64
}

// enough is how many messages of one transaction wait before its end is not waited
// for: as many as a relay claims at once.
const enough = outbox.DefaultBatch

func (d *desk) begin() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ledger.begin()
}

// add queues a message for the relay that has its partition. What no relay here has
// is settled: another process has it, or finds it by polling when it takes over.
func (d *desk) add(m message) {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := d.lanes[m.destination]
	if len(at) == 0 {
		return
	}
	part := partitionOf(m.tenant, m.aggregateID)
	for _, l := range at {
		if !l.mine[part] {
			continue
		}
		if !d.ledger.add(m.id) {
			d.spill()
			if !d.ledger.add(m.id) {
				d.overflow++
				return
			}
		}
		if len(l.queue) >= 2*d.ledger.most { // a relay that polls settles what it never takes
			l.queue = slices.DeleteFunc(l.queue, func(id string) bool { return !d.ledger.waits(id) })
		}
		l.queue = append(l.queue, m.id)
		if len(l.queue) == enough {
			l.hint()
		}
		return
	}
}

// spill leaves everything that waits to polling. Where more waits than is remembered
// there is a backlog, which polling drains as fast, and the log need not be kept for
// a queue of which only the end would be new.
func (d *desk) spill() {
	for _, at := range d.lanes {
		for _, l := range at {
			for _, id := range l.queue {
				if d.ledger.waits(id) {
					d.overflow++
					d.ledger.settle(id)
				}
			}
			l.queue, l.gap = nil, true
		}
	}
}

// commit ends the transaction and hints to whom it concerns.
func (d *desk) commit(end pglogrepl.LSN) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ledger.commit(end)
	for _, at := range d.lanes {
		for _, l := range at {
			if l.gap || len(l.queue) > 0 {
				l.hint()
			}
		}
	}
}

// passed hears how far the server has read.
func (d *desk) passed(at pglogrepl.LSN) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ledger.passed(at)
}

// confirmed is up to where everything is settled.
func (d *desk) confirmed() pglogrepl.LSN {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ledger.done
}

// reset begins at a point of a new slot, or ends with the last one at 0. What was
// committed where no slot reads is found by polling, so every relay is told to look.
func (d *desk) reset(at pglogrepl.LSN) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ledger.reset(at)
	for _, lanes := range d.lanes {
		for _, l := range lanes {
			l.queue, l.gap = nil, true
			l.hint()
		}
	}
}

// left returns how many messages wait, and how many there was no room for since the
// last call.
func (d *desk) left() (waiting int, overflow int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	overflow, d.overflow = d.overflow, 0
	return len(d.ledger.of), overflow
}
