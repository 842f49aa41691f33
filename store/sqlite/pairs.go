package sqlite

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

// The reads of Pairs: an event of a wait before which no other serves it. With
// a name the waits are found by their index, without one all are looked at.
const (
	textPairs = `select w.tenant, w.run, w.step, e.id, e.name, e.key, e.data, e.sent_at
		from wait w join sent_event e on e.tenant = w.tenant and e.name = w.name and e.key = w.key
		where ` + serves + ` and not exists (select 1 from sent_event o where o.tenant = w.tenant and o.name = w.name and o.key = w.key
			and (o.sent_at, o.id) < (e.sent_at, e.id) and o.id <> w.not_event and (w.opened_at <= o.sent_at or w.opened_at < o.keep_until))
		and (?1 = 0 or w.tenant = ?1)`
	textPairsOrder = ` order by e.sent_at, e.id, w.tenant, w.run, w.step limit ?2`
	textPairsOf    = textPairs + ` and w.name = ?3 and w.key = ?4` + textPairsOrder
	textPairsAll   = textPairs + textPairsOrder
)

const (
	// mostNews bounds the names and keys that are kept in mind. Looking for so many
	// one by one takes about as long as looking at everything.
	mostNews = 5000
	// newsAge is how long it is relied upon that nothing was missed. Then everything
	// is looked at once more, so that no fault of ours hides a pair for ever.
	newsAge = 10 * time.Minute
)

// news is where a pair may have come up since Pairs was asked last: the names and
// keys of waits that opened and of events that were sent. Only this process
// writes, so that all others need not be looked at again: a hundred thousand
// waits that nothing happens to cost nothing. Its zero value knows of nothing,
// and then everything is looked at. Safe for concurrent use.
type news struct {
	mu    sync.Mutex
	of    map[store.PairQuery]int // when it came, counted
	count int
	from  time.Time // when everything was looked at; zero: not yet
}

// add notes changes that stand in the file, or may. It must not be called before:
// whoever looks in between would find nothing and take them out.
func (n *news) add(tenant ringi.Tenant, name, key string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.of == nil {
		n.of = map[store.PairQuery]int{}
	}
	n.count++
	if len(n.of) < mostNews {
		n.of[store.PairQuery{Tenant: tenant, Name: name, Key: key}] = n.count
	} else {
		n.from = time.Time{}
	}
}

// look returns where to look, and how much was known when it began; all is
// everywhere.
func (n *news) look(now time.Time) (at []store.PairQuery, all bool, count int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.from.IsZero() || now.Sub(n.from).Abs() >= newsAge {
		n.from = now
		return nil, true, n.count
	}
	for q := range n.of {
		at = append(at, q)
	}
	return at, false, n.count
}

// found takes out what a look saw all of: what was known when it began, other than
// where it found pairs, which stay until they are gone.
func (n *news) found(pairs []store.Pair, count int) {
	stay := map[store.PairQuery]bool{}
	for i := range pairs {
		p := &pairs[i]
		stay[store.PairQuery{Tenant: p.Key.Tenant, Name: p.Event.Name, Key: p.Event.Key}] = true
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for q, at := range n.of {
		if at <= count && !stay[q] {
			delete(n.of, q)
		}
	}
}

// failed says that a look at everything did not see it.
func (n *news) failed() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.from = time.Time{}
}

// Pairs implements store.Events.
func (s *Store) Pairs(ctx context.Context, q store.PairQuery) ([]store.Pair, error) {
	if q.Name != "" || q.Tenant != 0 || s.lock == nil { // without the lock others write
		return s.pairs(ctx, q)
	}
	at, all, count := s.news.look(s.now())
	if all {
		list, err := s.pairs(ctx, q)
		if err != nil || len(list) >= q.Limit {
			s.news.failed()
			return list, err
		}
		for _, p := range list {
			s.news.add(p.Key.Tenant, p.Event.Name, p.Event.Key)
		}
		s.news.found(list, count)
		return list, nil
	}
	var list []store.Pair
	for _, of := range at {
		of.Limit = q.Limit
		some, err := s.pairs(ctx, of)
		if err != nil {
			return nil, err
		}
		list = append(list, some...)
	}
	s.news.found(list, count)
	slices.SortFunc(list, func(a, b store.Pair) int {
		return cmp.Or(a.Event.SentAt.Compare(b.Event.SentAt), strings.Compare(a.Event.ID, b.Event.ID), cmp.Compare(a.Key.Tenant, b.Key.Tenant),
			strings.Compare(string(a.Key.Run), string(b.Key.Run)), strings.Compare(a.Step, b.Step))
	})
	return list[:min(len(list), max(q.Limit, 0))], nil
}

func (s *Store) pairs(ctx context.Context, q store.PairQuery) ([]store.Pair, error) {
	text, args := textPairsAll, []any{int64(q.Tenant), int64(max(q.Limit, 0))}
	if q.Name != "" {
		text, args = textPairsOf, append(args, q.Name, q.Key)
	}
	var list []store.Pair
	err := s.each(ctx, text, func(row cells) error {
		list = append(list, store.Pair{
			Key: store.Key{Tenant: ringi.Tenant(row.num(0)), Run: row.run(1)}, Step: row.text(2),
			Event: readEvent(row[3:]),
		})
		return nil
	}, args...)
	return list, err
}
