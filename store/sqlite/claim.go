package sqlite

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

// textAnyReady finds an idle queue without the write lock.
const textAnyReady = `select 1 from task indexed by task_ready where state = 0 and held = 0 and queue = ?1 and (?2 = 0 or tenant = ?2) and ready_at <= ?3 limit 1`

// Claim implements store.Store.
func (s *Store) Claim(ctx context.Context, c store.Claim) ([]store.Claimed, error) {
	if c.Only != nil {
		c.Tenant = 0
	}
	some := false
	err := s.each(ctx, textAnyReady, func(cells) error {
		some = true
		return nil
	}, c.Queue, int64(c.Tenant), micro(c.ReadyBy()))
	if err != nil || !some || c.Max <= 0 {
		return nil, err
	}
	var activities any
	if c.Activities != nil {
		list, err := json.Marshal(c.Activities)
		if err != nil {
			return nil, fmt.Errorf("sqlite: claim: %w", err)
		}
		activities = string(list)
	}
	var claimed []store.Claimed
	err = s.transact(ctx, func(t *tx) error {
		return t.raw(func(conn *conn) error {
			turn := s.turn
			claimed, err = conn.claim(c, activities, &turn)
			if err == nil {
				s.turn = turn
			}
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return claimed, nil
}

// claim shares the claim out among the tenants and hands their oldest tasks out.
func (c *conn) claim(cl store.Claim, activities any, turn *ringi.Tenant) ([]store.Claimed, error) {
	if cl.Only != nil {
		return c.handOutOnly(cl)
	}
	shares := map[ringi.Tenant]int{cl.Tenant: cl.Max}
	var order []ringi.Tenant
	if cl.Tenant == 0 {
		var err error
		if order, err = c.share(cl, activities, *turn); err != nil || len(order) == 0 {
			return nil, err
		}
		*turn = order[0]
		clear(shares)
		for _, t := range order {
			shares[t]++
		}
	}
	taken := map[ringi.Tenant][]store.Claimed{}
	for tenant, n := range shares {
		list, err := c.handOut(cl, tenant, activities, n)
		if err != nil {
			return nil, err
		}
		taken[tenant] = list
	}
	if cl.Tenant != 0 {
		return taken[cl.Tenant], nil
	}
	claimed := make([]store.Claimed, 0, len(order))
	for _, t := range order {
		if len(taken[t]) > 0 {
			claimed = append(claimed, taken[t][0])
			taken[t] = taken[t][1:]
		}
	}
	return claimed, nil
}

// share returns the tenant of each task that a claim of all tenants may take.
func (c *conn) share(cl store.Claim, activities any, turn ringi.Tenant) ([]ringi.Tenant, error) {
	ready := map[ringi.Tenant][]ringi.Tenant{}
	for last, more := int64(-1<<62), true; more; {
		more = false
		err := c.query(stmtReadyTenant, func(row cells) error {
			last, more = row.num(0), true
			return nil
		}, cl.Queue, last)
		if err != nil {
			return nil, err
		}
		if !more {
			break
		}
		err = c.query(stmtReadyCount, func(row cells) error {
			if n := int(row.num(0)); n > 0 {
				ready[ringi.Tenant(last)] = slices.Repeat([]ringi.Tenant{ringi.Tenant(last)}, n)
			}
			return nil
		}, cl.Queue, last, micro(cl.ReadyBy()), activities, activities, int64(cl.Max))
		if err != nil {
			return nil, err
		}
	}
	return store.InTurn(ready, turn, cl.Max), nil
}

// handOut leases the oldest tasks of a tenant and reads what their workers
// must be told.
func (c *conn) handOut(cl store.Claim, tenant ringi.Tenant, activities any, limit int) ([]store.Claimed, error) {
	now, until := micro(cl.Now), micro(cl.Now.Add(cl.Handover))
	var list []store.Claimed
	err := c.query(stmtClaim, func(row cells) error {
		t := readTask(row)
		list = append(list, store.Claimed{Key: t.Key, Row: t.Row, Token: t.Token})
		return nil
	}, cl.Worker, until, now, now, until, now, cl.Queue, int64(tenant), micro(cl.ReadyBy()), activities, activities, int64(limit))
	if err != nil {
		return nil, err
	}
	return list, c.tellAll(list)
}

// handOutOnly leases tasks that are named.
func (c *conn) handOutOnly(cl store.Claim) ([]store.Claimed, error) {
	now, until := micro(cl.Now), micro(cl.Now.Add(cl.Handover))
	var list []store.Claimed
	for _, o := range cl.Only[:min(len(cl.Only), cl.Max)] {
		err := c.query(stmtClaimOne, func(row cells) error {
			t := readTask(row)
			list = append(list, store.Claimed{Key: t.Key, Row: t.Row, Token: t.Token})
			return nil
		}, cl.Worker, until, now, now, until, now, int64(o.Key.Tenant), runBlob(o.Key.Run), int64(o.Lane), cl.Queue, micro(cl.ReadyBy()))
		if err != nil {
			return nil, err
		}
	}
	return list, c.tellAll(list)
}

// tellAll brings hand-outs in order and fills in what their workers must be told.
func (c *conn) tellAll(list []store.Claimed) error {
	slices.SortFunc(list, func(a, b store.Claimed) int {
		return cmp.Or(a.Row.ReadyAt.Compare(b.Row.ReadyAt), cmp.Compare(a.Key.Run, b.Key.Run), cmp.Compare(a.Row.Lane, b.Row.Lane))
	})
	for i := range list {
		if err := c.tell(&list[i]); err != nil {
			return err
		}
	}
	return nil
}

// tell fills in the definition and the log row that holds the input.
func (c *conn) tell(cl *store.Claimed) error {
	tenant, run := int64(cl.Key.Tenant), runBlob(cl.Key.Run)
	err := c.query(stmtRunName, func(row cells) error {
		cl.Definition, cl.Version = row.text(0), int(row.num(1))
		return nil
	}, tenant, run)
	if err != nil {
		return err
	}
	return c.query(stmtLogHolding, func(row cells) error {
		cl.InputFirst, cl.InputBody = row.num(0), row.blob(1)
		return nil
	}, tenant, run, cl.Row.InputSeq)
}

// Beat implements store.Store.
func (s *Store) Beat(ctx context.Context, beats ...store.Beat) ([]store.Beaten, error) {
	answers := make([]store.Beaten, len(beats))
	if len(beats) == 0 {
		return answers, nil
	}
	err := s.transact(ctx, func(t *tx) error {
		return t.raw(func(c *conn) error {
			for i := range beats {
				if err := c.beat(&beats[i], &answers[i]); err != nil {
					return err
				}
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return answers, nil
}

func (c *conn) beat(b *store.Beat, answer *store.Beaten) error {
	var task store.DueTask
	var check int64
	err := c.query(stmtTaskOfToken, func(row cells) error {
		task, check = readTask(row), row.num(25)
		*answer = store.Beaten{OK: true, Held: task.Row.Held}
		return nil
	}, int64(b.Key.Tenant), runBlob(b.Key.Run), b.Step, string(b.Direction), b.Token)
	if err != nil || !answer.OK {
		return err
	}
	lease := task.Extend(task.Row, b.Now)
	args := leaseArgs(nil, lease)
	s := stmtTaskExtend
	if look := checkAt(store.FirstCheck(task.Row, lease)); look < check {
		s, args = stmtTaskExtendCheck, append(args, look)
	}
	_, err = c.exec(s, append(args, int64(b.Key.Tenant), runBlob(b.Key.Run), int64(task.Row.Lane))...)
	return err
}

// textTimerDue finds that no timer is due without the write lock.
const textTimerDue = `select 1 from timer where due_at <= ? limit 1`

// DueTimers implements store.Store.
func (s *Store) DueTimers(ctx context.Context, now, claimUntil time.Time, limit int) ([]store.DueTimer, error) {
	some := false
	err := s.each(ctx, textTimerDue, func(cells) error {
		some = true
		return nil
	}, micro(now))
	if err != nil || !some || limit <= 0 {
		return nil, err
	}
	var list []store.DueTimer
	err = s.transact(ctx, func(t *tx) error {
		return t.raw(func(c *conn) error {
			list = nil
			err := c.query(stmtTimersDue, func(row cells) error {
				list = append(list, store.DueTimer{
					Key:      store.Key{Tenant: ringi.Tenant(row.num(0)), Run: row.run(1)},
					TimerRow: ringi.TimerRow{ID: row.text(2), Generation: int(row.num(3)), FireAt: row.time(4)},
				})
				return nil
			}, micro(now), int64(limit))
			for i := 0; err == nil && i < len(list); i++ {
				_, err = c.exec(stmtTimerClaim, micro(claimUntil), int64(list[i].Key.Tenant), runBlob(list[i].Key.Run), list[i].ID)
			}
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// DueTasks implements store.Store.
func (s *Store) DueTasks(ctx context.Context, now time.Time, limit int) ([]store.DueTask, error) {
	var list []store.DueTask
	err := s.each(ctx, `select `+taskColumns+` from task where check_at <= ? order by check_at, tenant, run, lane limit ?`, func(row cells) error {
		list = append(list, readTask(row))
		return nil
	}, micro(now), int64(max(limit, 0)))
	return list, err
}

// Settle implements store.Store.
func (s *Store) Settle(ctx context.Context, settlement store.Settlement) error {
	if len(settlement.Lapses)+len(settlement.Checks)+len(settlement.Drops) == 0 {
		return nil
	}
	return s.transact(ctx, func(t *tx) error {
		return t.raw(func(c *conn) error { return c.settle(settlement) })
	})
}

func (c *conn) settle(s store.Settlement) error {
	for _, l := range s.Lapses {
		unsent := flag(l.Unsent)
		if _, err := c.exec(stmtTaskLapse, unsent, unsent, micro(l.ReadyAt), int64(never), int64(l.Key.Tenant), runBlob(l.Key.Run),
			int64(l.Lane), l.Token, micro(l.LeaseEnd)); err != nil {
			return err
		}
	}
	for _, ch := range s.Checks {
		end := micro(ch.LeaseEnd)
		if _, err := c.exec(stmtTaskCheck, checkAt(ch.At), int64(ch.Key.Tenant), runBlob(ch.Key.Run),
			int64(ch.Lane), ch.Token, end, end); err != nil {
			return err
		}
	}
	for _, d := range s.Drops {
		if _, err := c.exec(stmtTimerDrop, int64(d.Key.Tenant), runBlob(d.Key.Run), d.ID, int64(d.Generation)); err != nil {
			return err
		}
	}
	return nil
}
