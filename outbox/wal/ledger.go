package wal

import "github.com/jackc/pglogrepl"

// ledger is what was read of the log and is not settled, and how far the log may be
// confirmed: up to the first transaction of which a message is not. It is not safe
// for concurrent use.
type ledger struct {
	most int                     // messages that are remembered
	of   map[string]*transaction // the transaction of each
	open []*transaction          // those with unsettled messages, in the order of their commits
	now  *transaction            // the one being read
	done pglogrepl.LSN           // everything before it is settled
}

// transaction counts the messages of a transaction that are not settled.
type transaction struct {
	end  pglogrepl.LSN // behind its commit
	left int
}

// reset begins anew, at the point from which a slot reads.
func (l *ledger) reset(at pglogrepl.LSN) {
	l.of, l.open, l.now, l.done = map[string]*transaction{}, nil, nil, at
}

func (l *ledger) begin() { l.now = &transaction{} }

// add remembers a message of the transaction being read, or answers that there is
// no room for it.
func (l *ledger) add(id string) bool {
	if len(l.of) >= l.most || l.now == nil {
		return false
	}
	if l.of[id] == nil {
		l.of[id] = l.now
		l.now.left++
	}
	return true
}

// commit ends the transaction being read.
func (l *ledger) commit(end pglogrepl.LSN) {
	t := l.now
	l.now = nil
	switch {
	case t != nil && t.left > 0:
		t.end = end
		l.open = append(l.open, t)
	case len(l.open) > 0: // who settles those before it settles it too
		l.open[len(l.open)-1].end = end
	default:
		l.done = max(l.done, end)
	}
}

// passed hears how far the server has read without finding anything for us.
func (l *ledger) passed(at pglogrepl.LSN) {
	if len(l.open) == 0 && l.now == nil {
		l.done = max(l.done, at)
	}
}

// waits tells whether a message is remembered.
func (l *ledger) waits(id string) bool { return l.of[id] != nil }

// settle forgets a message.
func (l *ledger) settle(id string) {
	t := l.of[id]
	if t == nil {
		return
	}
	delete(l.of, id)
	t.left--
	for len(l.open) > 0 && l.open[0].left == 0 {
		l.done = max(l.done, l.open[0].end)
		l.open = l.open[1:]
	}
}
