package store

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/ringiflow/ringi"
)

func (r *memoryRun) changeTask(c TaskChange) {
	if c.Row == nil {
		delete(r.tasks, c.Lane)
		return
	}
	t := r.tasks[c.Lane]
	if t == nil {
		t = &memoryTask{}
		r.tasks[c.Lane] = t
		c.Fresh = true
	}
	t.row = *c.Row
	switch {
	case c.Fresh && c.Lease != nil:
		t.lease = HandOut(t.row, t.row.Token(1), c.Lease.Worker, c.Lease.At, c.Lease.Until)
	case c.Fresh:
		t.lease = TaskLease{Token: t.row.Token(0)}
	case !c.Begun.IsZero():
		t.lease.Leased, t.lease.Confirmed, t.lease.Lapsed = true, true, 0
		t.lease.LeaseEnd = c.Begun
	}
	if c.Fresh || !c.Begun.IsZero() || !t.lease.Leased { // else a sweep knows when to look at the lease
		t.checkBy(FirstCheck(t.row, t.lease))
	}
}

// checkBy moves the check time to an earlier one. Only a sweep moves it later.
func (t *memoryTask) checkBy(at time.Time) {
	if !at.IsZero() && (t.check.IsZero() || at.Before(t.check)) {
		t.check = at
	}
}

// memoryCandidate is a task that a claim could take.
type memoryCandidate struct {
	run  *memoryRun
	task *memoryTask
}

// Claim implements Store.
func (m *Memory) Claim(ctx context.Context, c Claim) ([]Claimed, error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	ready := map[ringi.Tenant][]memoryCandidate{}
	for _, r := range m.openRuns() {
		if c.Only == nil && c.Tenant != 0 && r.key.Tenant != c.Tenant {
			continue
		}
		for _, lane := range slices.Sorted(maps.Keys(r.tasks)) {
			if t := r.tasks[lane]; c.names(TaskRef{r.key, lane}) && t.claimable(c) {
				ready[r.key.Tenant] = append(ready[r.key.Tenant], memoryCandidate{r, t})
			}
		}
	}
	for _, list := range ready {
		slices.SortStableFunc(list, func(a, b memoryCandidate) int { return a.task.row.ReadyAt.Compare(b.task.row.ReadyAt) })
	}
	var claimed []Claimed
	for _, x := range InTurn(ready, m.turn, c.Max) {
		if len(claimed) == 0 {
			m.turn = x.run.key.Tenant
		}
		claimed = append(claimed, x.handOut(c))
	}
	return claimed, nil
}

// names reports whether the claim may take the task.
func (c *Claim) names(t TaskRef) bool {
	return c.Only == nil || slices.Contains(c.Only[:min(len(c.Only), c.Max)], t)
}

func (t *memoryTask) claimable(c Claim) bool {
	return !t.lease.Leased && !t.row.Held && t.row.Queue == c.Queue && !t.row.ReadyAt.After(c.ReadyBy()) &&
		t.lease.Token-t.row.Token(0) < HandOuts && (c.Activities == nil || c.Only != nil || slices.Contains(c.Activities, t.row.Activity))
}

func (x memoryCandidate) handOut(c Claim) Claimed {
	t, lapsed := x.task, x.task.lease.Lapsed
	t.lease = HandOut(t.row, t.lease.Token+1, c.Worker, c.Now, c.Now.Add(c.Handover))
	t.lease.Lapsed = lapsed
	t.checkBy(FirstCheck(t.row, t.lease))
	input := x.run.holding(t.row.InputSeq)
	return Claimed{
		Key: x.run.key, Row: t.row, Token: t.lease.Token,
		Definition: x.run.row.Definition, Version: x.run.row.Version,
		InputFirst: input.First, InputBody: input.Body,
	}
}

// InTurn takes at most limit of what each tenant has, one from each in turn,
// tenants ascending and beginning behind the one named last. Drivers share it,
// so that fairness is the same everywhere.
func InTurn[T any](of map[ringi.Tenant][]T, last ringi.Tenant, limit int) []T {
	tenants := slices.Sorted(maps.Keys(of))
	from := 0
	for from < len(tenants) && tenants[from] <= last {
		from++
	}
	tenants = append(slices.Clone(tenants[from:]), tenants[:from]...)
	var taken []T
	for round := 0; len(taken) < limit; round++ {
		before := len(taken)
		for _, t := range tenants {
			if round < len(of[t]) && len(taken) < limit {
				taken = append(taken, of[t][round])
			}
		}
		if len(taken) == before {
			break
		}
	}
	return taken
}

// Beat implements Store.
func (m *Memory) Beat(ctx context.Context, beats ...Beat) ([]Beaten, error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	answers := make([]Beaten, len(beats))
	for i, b := range beats {
		r := m.runs[b.Key]
		if r == nil {
			continue
		}
		for _, t := range r.tasks {
			if t.row.Step != b.Step || t.row.Direction != b.Direction || t.lease.Token != b.Token || b.Token == t.row.Token(0) {
				continue
			}
			t.lease = t.lease.Extend(t.row, b.Now)
			t.checkBy(FirstCheck(t.row, t.lease))
			answers[i] = Beaten{OK: true, Held: t.row.Held}
		}
	}
	return answers, nil
}

// DueTimers implements Store.
func (m *Memory) DueTimers(ctx context.Context, now, claimUntil time.Time, limit int) ([]DueTimer, error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	type due struct {
		key   Key
		timer *memoryTimer
	}
	var list []due
	for _, r := range m.openRuns() {
		for _, id := range slices.Sorted(maps.Keys(r.timers)) {
			if t := r.timers[id]; !t.due.After(now) {
				list = append(list, due{r.key, t})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b due) int { return a.timer.due.Compare(b.timer.due) })
	list = list[:min(max(limit, 0), len(list))]
	timers := make([]DueTimer, len(list))
	for i, d := range list {
		d.timer.due = claimUntil
		timers[i] = DueTimer{Key: d.key, TimerRow: d.timer.row}
	}
	return timers, nil
}

// DueTasks implements Store.
func (m *Memory) DueTasks(ctx context.Context, now time.Time, limit int) ([]DueTask, error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	type due struct {
		key  Key
		task *memoryTask
	}
	var list []due
	for _, r := range m.openRuns() {
		for _, lane := range slices.Sorted(maps.Keys(r.tasks)) {
			if t := r.tasks[lane]; !t.check.IsZero() && !t.check.After(now) {
				list = append(list, due{r.key, t})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b due) int { return a.task.check.Compare(b.task.check) })
	list = list[:min(max(limit, 0), len(list))]
	tasks := make([]DueTask, len(list))
	for i, d := range list {
		tasks[i] = DueTask{Key: d.key, Row: d.task.row, TaskLease: d.task.lease}
	}
	return tasks, nil
}

// Settle implements Store.
func (m *Memory) Settle(ctx context.Context, s Settlement) error {
	unlock, err := m.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	for _, l := range s.Lapses {
		t := m.taskAt(l.Key, l.Lane, l.Token)
		if t == nil || !t.lease.Leased || t.lease.Confirmed || t.row.Awaited || !t.lease.LeaseEnd.Equal(l.LeaseEnd) {
			continue
		}
		t.lease.Leased, t.lease.Worker, t.lease.LeaseEnd = false, "", time.Time{}
		if l.Unsent {
			t.lease.Token--
		} else {
			t.lease.Lapsed++
		}
		t.row.ReadyAt, t.check = l.ReadyAt, t.row.GiveUpAt
	}
	for _, c := range s.Checks {
		t := m.taskAt(c.Key, c.Lane, c.Token)
		if t != nil && (c.LeaseEnd.IsZero() || t.lease.LeaseEnd.Equal(c.LeaseEnd)) {
			t.check = c.At
		}
	}
	for _, d := range s.Drops {
		r := m.runs[d.Key]
		if r == nil {
			continue
		}
		if t := r.timers[d.ID]; t != nil && t.row.Generation == d.Generation {
			delete(r.timers, d.ID)
			m.reopen(r)
		}
	}
	return nil
}

// taskAt returns the task of a lane if its token is current.
func (m *Memory) taskAt(key Key, lane int, token int64) *memoryTask {
	r := m.runs[key]
	if r == nil {
		return nil
	}
	if t := r.tasks[lane]; t != nil && t.lease.Token == token {
		return t
	}
	return nil
}

// depth counts the run's tasks that nobody holds, and those that somebody does.
func (r *memoryRun) depth() (ready, leased int) {
	for _, t := range r.tasks {
		if t.lease.Leased {
			leased++
		} else {
			ready++
		}
	}
	return ready, leased
}

// Queues implements Records.
func (m *Memory) Queues(ctx context.Context, tenant ringi.Tenant, now time.Time) ([]ringi.QueueView, error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	views := map[string]*ringi.QueueView{}
	for _, r := range m.openRuns() {
		if tenant != 0 && r.key.Tenant != tenant {
			continue
		}
		for _, t := range r.tasks {
			v := views[t.row.Queue]
			if v == nil {
				v = &ringi.QueueView{Queue: t.row.Queue}
				views[t.row.Queue] = v
			}
			t.measure(v, now)
		}
	}
	list := make([]ringi.QueueView, 0, len(views))
	for _, v := range views {
		list = append(list, *v)
	}
	slices.SortFunc(list, func(a, b ringi.QueueView) int { return cmp.Compare(a.Queue, b.Queue) })
	return list, nil
}

// LapsedOften is how many hand-overs in a row must lapse before a queue shows it.
const LapsedOften = 5

func (t *memoryTask) measure(v *ringi.QueueView, now time.Time) {
	if t.lease.Lapsed >= LapsedOften {
		v.Lapsed++
	}
	if t.lease.Leased {
		v.Leased++
		return
	}
	if t.row.Held || t.row.ReadyAt.After(now) {
		return
	}
	v.Ready++
	v.OldestMS = max(v.OldestMS, now.Sub(t.row.ReadyAt).Milliseconds())
}
