package postgres

import (
	"context"

	"github.com/ringiflow/ringi/store"
)

// textExtend is what a heartbeat does to its task. No column that it changes
// is in an index or in an index's condition, unless the lease ends sooner than
// anybody would have looked, so that the row's next version stands on the same
// page and no index is touched.
// constant: only read
var textExtend = `update task t set state = 1, confirmed = true, lapsed = 0,
		lease_end = case when t.confirmed and t.lease_end > l.until then t.lease_end else l.until end,
		check_at = least(t.check_at, ` + placed("least(t.attempt_end, case when t.confirmed and t.lease_end > l.until then t.lease_end else l.until end)", 7) + `)
	from l where t.tenant = l.tenant and t.run = l.run and t.lane = l.lane returning l.n, t.held`

const beatRows = `unnest($1::bigint[], $2::uuid[], $3::text[], $4::text[], $5::bigint[], $6::timestamptz[]) with ordinality w(tenant, run, step, direction, token, at, n)
	cross join lateral (select t.tenant, t.run, t.lane, least(w.at + make_interval(secs => t.heartbeat / 1e9), t.attempt_end + interval '5 s') as until
		from task t where t.tenant = w.tenant and t.run = w.run and t.step = w.step and t.direction = w.direction
			and t.token = w.token and t.token <> t.seq << 16 for no key update`

// textBeat extends many leases and steps over tasks that somebody else holds at
// this moment. A statement that held some rows while it waits for others could
// wait in a circle with a commit, which takes its rows in whatever order the
// server finds them in; textBeatOne, which may wait, holds one row alone.
// constant: only read
var (
	textBeat    = statement(`with l as materialized (select w.n, x.* from ` + beatRows + ` skip locked) x) ` + textExtend)
	textBeatOne = statement(`with l as materialized (select w.n, x.* from ` + beatRows + `) x) ` + textExtend)
)

// Beat implements store.Store.
func (s *Store) Beat(ctx context.Context, beats ...store.Beat) ([]store.Beaten, error) {
	answers := make([]store.Beaten, len(beats))
	if len(beats) == 0 {
		return answers, nil
	}
	// A task that beats twice in one call is extended once, by the later beat.
	type task struct {
		store.Key
		step, direction string
		token           int64
	}
	var latest []store.Beat
	of := map[task]int{}
	which := make([]int, len(beats))
	for i, b := range beats {
		k := task{b.Key, b.Step, string(b.Direction), b.Token}
		at, ok := of[k]
		if !ok {
			at = len(latest)
			of[k] = at
			latest = append(latest, b)
		}
		if b.Now.After(latest[at].Now) {
			latest[at].Now = b.Now
		}
		which[i] = at
	}
	found := make([]store.Beaten, len(latest))
	err := s.beat(ctx, textBeat, latest, found)
	for i := 0; err == nil && i < len(latest); i++ {
		if !found[i].OK { // stale, or held by somebody at that moment
			err = s.beat(ctx, textBeatOne, latest[i:i+1], found[i:i+1])
		}
	}
	if err != nil {
		return nil, err
	}
	for i := range beats {
		answers[i] = found[which[i]]
	}
	return answers, nil
}

func (s *Store) beat(ctx context.Context, text statement, beats []store.Beat, found []store.Beaten) error {
	tenant, run, step, direction, token, at := ints(), uuids(), texts(), texts(), ints(), times()
	for i := range beats {
		b := &beats[i]
		addKey(tenant, run, b.Key)
		step.text(b.Step)
		direction.text(string(b.Direction))
		token.int(b.Token)
		at.time(b.Now)
	}
	c := &call{statement: text, row: func(row cells) error {
		found[row.num(0)-1] = store.Beaten{OK: true, Held: row.num(1) != heldNot}
		return nil
	}}
	c.list(tenant, run, step, direction, token, at)
	s.floors.slack(c)
	return away(s.change(ctx, c))
}
