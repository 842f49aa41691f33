package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

// The sweeps. Those that change rows step over what somebody else holds: it is
// being changed, and the next sweep looks again.
// constant: only read
var (
	textTimersDue = statement(`with d as materialized (
			select tenant, run, id, due_at from timer where due_at > $1::timestamptz and due_at <= $2::timestamptz
			order by due_at limit $3::bigint for no key update skip locked)
		update timer t set due_at = ` + placed("$4::timestamptz", 5) + ` from d
		where t.tenant = d.tenant and t.run = d.run and t.id = d.id
		returning t.tenant, t.run, t.id, t.generation, t.fire_at, d.due_at`)
	textTimersLowest statement = `select due_at from timer where due_at > $1::timestamptz order by due_at limit 1`

	textTasksDue statement = `select ` + taskColumns + ` from task t where t.check_at > $1::timestamptz and t.check_at <= $2::timestamptz
		order by t.check_at limit $3::bigint`
	textTasksLowest statement = `select check_at from task where check_at > $1::timestamptz order by check_at limit 1`

	textLapse = statement(`with l as materialized (
			select x.*, w.ready_at, w.due_at, w.lowest, w.unsent from unnest($1::bigint[], $2::uuid[], $3::bigint[], $4::bigint[], $5::timestamptz[], $6::timestamptz[], $7::timestamptz[], $8::timestamptz[], $9::boolean[])
				w(tenant, run, lane, token, lease_end, ready_at, due_at, lowest, unsent)
			cross join lateral (select t.tenant, t.run, t.lane from task t where t.tenant = w.tenant and t.run = w.run and t.lane = w.lane
				and t.token = w.token and t.state = 1 and not t.confirmed and t.held < 2 and t.lease_end = w.lease_end
				for no key update skip locked) x)
		update task t set state = 0, worker = '', lease_end = null, lapsed = t.lapsed + (not l.unsent)::int, token = t.token - l.unsent::int, ready_at = l.ready_at, due_at = ` + placed("l.due_at", 10) + `,
			check_at = ` + placed("case when t.give_up_at is not null then greatest(t.give_up_at, l.lowest) end", 10) + `
		from l where t.tenant = l.tenant and t.run = l.run and t.lane = l.lane`)
	textCheck = statement(`with l as materialized (
			select x.*, w.at from unnest($1::bigint[], $2::uuid[], $3::bigint[], $4::bigint[], $5::timestamptz[], $6::timestamptz[])
				w(tenant, run, lane, token, lease_end, at)
			cross join lateral (select t.tenant, t.run, t.lane from task t where t.tenant = w.tenant and t.run = w.run and t.lane = w.lane
				and t.token = w.token and (w.lease_end is null or t.lease_end = w.lease_end) for no key update skip locked) x)
		update task t set check_at = ` + placed("l.at", 7) + ` from l where t.tenant = l.tenant and t.run = l.run and t.lane = l.lane`)
	textDrop statement = `with l as materialized (
			select x.* from unnest($1::bigint[], $2::uuid[], $3::text[], $4::bigint[]) w(tenant, run, id, generation)
			cross join lateral (select t.tenant, t.run, t.id from timer t where t.tenant = w.tenant and t.run = w.run and t.id = w.id
				and t.generation = w.generation for update skip locked) x)
		delete from timer t using l where t.tenant = l.tenant and t.run = l.run and t.id = l.id`
)

// DueTimers implements store.Store.
func (s *Store) DueTimers(ctx context.Context, now, claimUntil time.Time, limit int) ([]store.DueTimer, error) {
	if limit <= 0 {
		return nil, nil
	}
	s.floors.heard(now)
	type placed struct {
		store.DueTimer
		due time.Time
	}
	var list []placed
	at := s.floors.look(floorKey{what: floorTimers}, now)
	c := &call{statement: textTimersDue, row: func(row cells) error {
		list = append(list, placed{store.DueTimer{
			Key: row.key(0), TimerRow: ringi.TimerRow{ID: row.text(2), Generation: int(row.num(3)), FireAt: row.time(4)},
		}, row.time(5)})
		return nil
	}}
	c.time(at.from)
	c.time(now)
	c.int(int64(limit))
	c.time(claimUntil)
	s.floors.slack(c)
	raise, raised := s.raise(at, textTimersLowest)
	if err := s.change(ctx, append([]*call{c}, raise...)...); err != nil {
		return nil, away(err)
	}
	raised()
	slices.SortStableFunc(list, func(a, b placed) int { return a.due.Compare(b.due) })
	timers := make([]store.DueTimer, len(list))
	for i := range list {
		timers[i] = list[i].DueTimer
	}
	return timers, nil
}

// raise moves the floor of a sweep, when it may rise, behind the lowest row that
// is still there, in the sweep's transaction and behind it: its own rows have
// moved by then, and those that somebody else holds are seen. The floor itself
// is moved by the function, once all that was committed.
func (s *Store) raise(at look, lowest statement) (calls []*call, done func()) {
	if !at.move {
		return nil, func() {}
	}
	var first, oldest time.Time
	ask := &call{statement: lowest, row: func(row cells) error {
		first = row.time(0)
		return nil
	}}
	ask.time(at.from)
	return append(s.floors.writing(&oldest), ask), func() { s.floors.saw(at, first, oldest) }
}

// DueTasks implements store.Store.
func (s *Store) DueTasks(ctx context.Context, now time.Time, limit int) ([]store.DueTask, error) {
	var list []store.DueTask
	at := s.floors.look(floorKey{what: floorChecks}, now)
	c := &call{statement: textTasksDue, row: func(row cells) error {
		list = append(list, readTask(row))
		return nil
	}}
	c.time(at.from)
	c.time(now)
	c.int(int64(max(limit, 0)))
	raise, raised := s.raise(at, textTasksLowest)
	if err := s.read(ctx, append([]*call{c}, raise...)...); err != nil {
		return nil, err
	}
	raised()
	return list, nil
}

// Settle implements store.Store.
func (s *Store) Settle(ctx context.Context, settlement store.Settlement) error {
	var calls []*call
	if len(settlement.Lapses) > 0 {
		calls = append(calls, s.lapses(settlement.Lapses))
	}
	if len(settlement.Checks) > 0 {
		calls = append(calls, s.checks(settlement.Checks))
	}
	if len(settlement.Drops) > 0 {
		calls = append(calls, drops(settlement.Drops))
	}
	if len(calls) == 0 {
		return nil
	}
	return away(s.change(ctx, calls...))
}

func (s *Store) lapses(list []store.Lapse) *call {
	least := s.floors.least()
	tenant, run, lane, token, unsent := ints(), uuids(), ints(), ints(), bools()
	end, ready, due, lowest := times(), times(), times(), times()
	for _, l := range list {
		addKey(tenant, run, l.Key)
		lane.int(int64(l.Lane))
		token.int(l.Token)
		end.time(l.LeaseEnd)
		ready.time(l.ReadyAt)
		due.time(place(l.ReadyAt, least))
		lowest.time(place(beginning, least))
		unsent.bool(l.Unsent)
	}
	c := &call{statement: textLapse}
	c.list(tenant, run, lane, token, end, ready, due, lowest, unsent)
	s.floors.slack(c)
	return c
}

func (s *Store) checks(list []store.Check) *call {
	least := s.floors.least()
	tenant, run, lane, token, end, at := ints(), uuids(), ints(), ints(), times(), times()
	for _, ch := range list {
		addKey(tenant, run, ch.Key)
		lane.int(int64(ch.Lane))
		token.int(ch.Token)
		end.time(ch.LeaseEnd)
		at.time(place(ch.At, least))
	}
	c := &call{statement: textCheck}
	c.list(tenant, run, lane, token, end, at)
	s.floors.slack(c)
	return c
}

func drops(list []store.DueTimer) *call {
	tenant, run, id, generation := ints(), uuids(), texts(), ints()
	for _, d := range list {
		addKey(tenant, run, d.Key)
		id.text(d.ID)
		generation.int(int64(d.Generation))
	}
	c := &call{statement: textDrop}
	c.list(tenant, run, id, generation)
	return c
}
