package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

// claimable are the tasks of a queue and a tenant that may be handed out, from
// a floor on: the partial index's condition, an activity filter (null: all),
// and a token left.
const claimable = `from task t where t.state = 0 and t.held = 0 and t.queue = $1::text and t.tenant = w.tenant
	and t.due_at > w.from and t.due_at <= $2::timestamptz and t.token - (t.seq << 16) < 65535
	and ($3::text[] is null or t.activity = any($3::text[]))`

// The statements of a claim. A task that another claim or a commit holds is
// stepped over: nobody waits, and so nobody can wait in a circle.
// constant: only read
var (
	textReady statement = `select w.tenant, (select count(*) from (select 1 ` + claimable + ` limit $6::bigint) n)
		from unnest($4::bigint[], $5::timestamptz[]) w(tenant, "from")`

	textClaim = textHandOut(`select x.* from unnest($4::bigint[], $5::timestamptz[], $6::bigint[]) w(tenant, "from", most)
			cross join lateral (select t.tenant, t.run, t.lane ` + claimable + ` order by t.due_at limit w.most for no key update skip locked) x`)

	textClaimOnly = textHandOut(`select t.tenant, t.run, t.lane from unnest($4::bigint[], $5::uuid[], $6::bigint[]) o(tenant, run, lane)
			join task t on t.tenant = o.tenant and t.run = o.run and t.lane = o.lane
			where t.state = 0 and t.held = 0 and t.queue = $1::text and t.due_at <= $2::timestamptz and t.token - (t.seq << 16) < 65535
				and $3::text[] is null for no key update of t skip locked`)

	textReadyLowest statement = `select w.tenant, (select t.due_at from task t where t.state = 0 and t.held = 0 and t.queue = $1::text
			and t.tenant = w.tenant and t.due_at > w.from order by t.due_at limit 1)
		from unnest($2::bigint[], $3::timestamptz[]) w(tenant, "from")`
)

// textHandOut leases the tasks that a query finds and reads what their workers must
// be told.
func textHandOut(find string) statement {
	return statement(`with c as materialized (` + find + `),
		u as (update task t set state = 1, token = t.token + 1, confirmed = false, worker = $7::text, lease_end = $8::timestamptz,
				attempt_end = least(t.total_at, $10::timestamptz + make_interval(secs => t.timeout / 1e9)),
				check_at = least(t.check_at, ` + placed("least($8::timestamptz, $10::timestamptz + make_interval(secs => t.timeout / 1e9), t.total_at)", 9) + `)
			from c where t.tenant = c.tenant and t.run = c.run and t.lane = c.lane returning ` + taskColumns + `, t.due_at)
		select t.*, r.name, r.version, l.seq, l.body from u t
			cross join lateral (select name, version from run r where r.tenant = t.tenant and r.id = t.run offset 0) r
			left join lateral (select l.seq, l.body from log l where l.tenant = t.tenant and l.run = t.run and l.seq <= t.input_seq
				order by l.seq desc limit 1) l on true`)
}

// Claim implements store.Store.
func (s *Store) Claim(ctx context.Context, c store.Claim) ([]store.Claimed, error) {
	if c.Max <= 0 {
		return nil, nil
	}
	s.floors.heard(c.Now)
	if c.Only != nil {
		return s.claimOnly(ctx, c)
	}
	tenants := []ringi.Tenant{c.Tenant}
	if c.Tenant == 0 {
		var err error
		if tenants, err = s.tenantsOf(ctx, c.Queue, c.Now); err != nil || len(tenants) == 0 {
			return nil, err
		}
	}
	k := &claim{Claim: c, s: s, shares: map[ringi.Tenant]int{}}
	for _, tenant := range tenants {
		k.looks = append(k.looks, s.floors.look(floorKey{"queue", c.Queue, tenant}, c.Now))
		k.shares[tenant] = c.Max
	}
	if len(tenants) > 1 {
		if err := k.share(ctx); err != nil || len(k.looks) == 0 {
			return nil, err
		}
	}
	return k.handOut(ctx)
}

// claim is one call of Claim.
type claim struct {
	store.Claim
	s      *Store
	looks  []look
	shares map[ringi.Tenant]int
	order  []ringi.Tenant // of each task, when there are several tenants
}

// common are the first arguments of the statements.
func (k *claim) common(c *call) {
	c.text(k.Queue)
	c.time(k.ReadyBy())
	if k.Activities == nil {
		c.add(oidTexts, nil)
		return
	}
	names := texts()
	for _, a := range k.Activities {
		names.text(a)
	}
	c.list(names)
}

// share gives each tenant its share of the claim, one task each in turn.
func (k *claim) share(ctx context.Context) error {
	ready := map[ringi.Tenant][]ringi.Tenant{}
	ask := &call{statement: textReady, row: func(row cells) error {
		if n := int(row.num(1)); n > 0 {
			ready[row.tenant(0)] = slices.Repeat([]ringi.Tenant{row.tenant(0)}, n)
		}
		return nil
	}}
	k.common(ask)
	tenant, from := ints(), times()
	for _, l := range k.looks {
		tenant.int(int64(l.key.tenant))
		from.time(l.from)
	}
	ask.list(tenant, from)
	ask.int(int64(k.Max))
	raise, raised := k.raise()
	if err := k.s.read(ctx, append([]*call{ask}, raise...)...); err != nil {
		return err
	}
	raised()
	for i := range k.looks {
		k.looks[i].move = false
	}
	k.s.queues.mu.Lock()
	k.order = store.InTurn(ready, k.s.queues.turn, k.Max)
	if len(k.order) > 0 {
		k.s.queues.turn = k.order[0]
	}
	k.s.queues.mu.Unlock()
	clear(k.shares)
	for _, t := range k.order {
		k.shares[t]++
	}
	k.looks = slices.DeleteFunc(k.looks, func(l look) bool { return k.shares[l.key.tenant] == 0 })
	return nil
}

// raise moves the floors that may rise behind the lowest ready task of their
// tenants, as Store.raise does.
func (k *claim) raise() (calls []*call, done func()) {
	tenant, from := ints(), times()
	lowest := map[ringi.Tenant]time.Time{}
	var oldest time.Time
	var moving []look
	for _, l := range k.looks {
		if l.move {
			moving = append(moving, l)
			tenant.int(int64(l.key.tenant))
			from.time(l.from)
		}
	}
	if len(moving) == 0 {
		return nil, func() {}
	}
	ask := &call{statement: textReadyLowest, row: func(row cells) error {
		lowest[row.tenant(0)] = row.time(1)
		return nil
	}}
	ask.text(k.Queue)
	ask.list(tenant, from)
	return append(k.s.floors.writing(&oldest), ask), func() {
		for _, l := range moving {
			k.s.floors.saw(l, lowest[l.key.tenant], oldest)
		}
	}
}

// A placedTask is one that was claimed, and when it was due.
type placedTask struct {
	store.Claimed
	due time.Time
}

func readClaimed(row cells) placedTask {
	t := readTask(row)
	more := row[taskCells:]
	return placedTask{store.Claimed{
		Key: t.Key, Row: t.Row, Token: t.Token, Definition: more.text(1), Version: int(more.num(2)),
		InputFirst: more.num(3), InputBody: more.blob(4),
	}, more.time(0)}
}

func byDue(a, b placedTask) int { return a.due.Compare(b.due) }

// claimOnly leases tasks that are named.
func (s *Store) claimOnly(ctx context.Context, c store.Claim) ([]store.Claimed, error) {
	var taken []placedTask
	give := &call{statement: textClaimOnly, row: func(row cells) error {
		taken = append(taken, readClaimed(row))
		return nil
	}}
	c.Activities = nil
	k := &claim{Claim: c, s: s}
	k.common(give)
	tenant, run, lane := ints(), uuids(), ints()
	for _, o := range c.Only[:min(len(c.Only), c.Max)] {
		addKey(tenant, run, o.Key)
		lane.int(int64(o.Lane))
	}
	give.list(tenant, run, lane)
	k.lease(give)
	if err := s.change(ctx, give); err != nil {
		return nil, away(err)
	}
	slices.SortStableFunc(taken, byDue)
	claimed := make([]store.Claimed, len(taken))
	for i, t := range taken {
		claimed[i] = t.Claimed
	}
	return claimed, nil
}

// lease are the last arguments of a statement that hands out.
func (k *claim) lease(give *call) {
	give.text(k.Worker)
	give.time(k.Now.Add(k.Handover))
	k.s.floors.slack(give)
	give.time(k.Now)
}

// handOut leases the oldest tasks of each tenant and reads what their workers
// must be told.
func (k *claim) handOut(ctx context.Context) ([]store.Claimed, error) {
	taken := map[ringi.Tenant][]placedTask{}
	give := &call{statement: textClaim, row: func(row cells) error {
		t := readClaimed(row)
		taken[t.Key.Tenant] = append(taken[t.Key.Tenant], t)
		return nil
	}}
	k.common(give)
	tenant, from, most := ints(), times(), ints()
	for _, l := range k.looks {
		tenant.int(int64(l.key.tenant))
		from.time(l.from)
		most.int(int64(k.shares[l.key.tenant]))
	}
	give.list(tenant, from, most)
	k.lease(give)
	raise, raised := k.raise()
	if err := k.s.change(ctx, append([]*call{give}, raise...)...); err != nil {
		return nil, away(err)
	}
	raised()
	var claimed []store.Claimed
	for _, list := range taken {
		slices.SortStableFunc(list, byDue)
	}
	order := k.order
	if order == nil {
		order = slices.Repeat([]ringi.Tenant{k.looks[0].key.tenant}, len(taken[k.looks[0].key.tenant]))
	}
	for _, t := range order {
		if len(taken[t]) > 0 {
			claimed = append(claimed, taken[t][0].Claimed)
			taken[t] = taken[t][1:]
		}
	}
	return claimed, nil
}
