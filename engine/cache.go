package engine

import (
	"container/list"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

// A standing is a run as the store is known to hold it: the state, the rows
// that follow from it, and the head of its hash chain. It is never changed.
type standing struct {
	state *ringi.State
	rows  ringi.Rows
	head  []byte
	snap  int64 // sequence of the stored snapshot; 0: none
	cost  int   // bytes in memory, roughly
}

// What a state costs in memory beside its payload, measured as the growth of
// the heap over many runs and rounded up.
const (
	costOfRun  = 2 << 10
	costOfStep = 1 << 10
)

func newStanding(s *ringi.State, head []byte, snap int64) *standing {
	return &standing{
		state: s, rows: ringi.Standing(s), head: head, snap: snap,
		cost: costOfRun + costOfStep*(len(s.Steps)+len(s.Undos)) + 2*s.Payload,
	}
}

// A cache keeps the standings that were used last, up to a number of bytes.
// It belongs to one committer and is never the only proof of anything: every
// write names the sequence and chain head that it was decided on.
type cache struct {
	limit int
	size  int
	runs  map[store.Key]*list.Element
	order *list.List // of *cached, used last in front
}

type cached struct {
	key store.Key
	*standing
}

func newCache(limit int) *cache {
	return &cache{limit: limit, runs: map[store.Key]*list.Element{}, order: list.New()}
}

func (c *cache) get(key store.Key) *standing {
	e := c.runs[key]
	if e == nil {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*cached).standing
}

func (c *cache) put(key store.Key, s *standing) {
	c.drop(key)
	c.runs[key] = c.order.PushFront(&cached{key, s})
	c.size += s.cost
	for c.size > c.limit && c.order.Len() > 1 {
		c.drop(c.order.Back().Value.(*cached).key)
	}
}

func (c *cache) drop(key store.Key) {
	e := c.runs[key]
	if e == nil {
		return
	}
	c.size -= e.Value.(*cached).cost
	c.order.Remove(e)
	delete(c.runs, key)
}

// clear drops everything, because another database answers.
func (c *cache) clear() {
	clear(c.runs)
	c.order.Init()
	c.size = 0
}
