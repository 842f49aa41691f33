package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

// careful commits the winners of the batch and reports the losers.
func (t *commit) careful(ctx context.Context) error {
	var err error
	for range carefulTries {
		if err = t.try(ctx, t.writes, true); faultOf(err) != faultAgain {
			break
		}
	}
	var bad *badRow
	if errors.As(err, &bad) {
		return &store.BadWrite{Index: bad.index, Err: bad.err}
	}
	if faultOf(err) == faultBad && errors.Is(err, store.ErrUnavailable) {
		return t.blame(ctx, err)
	}
	return err
}

// blame finds the write that the database can never apply: the last one of the
// shortest beginning of the batch that fails. All tries are rolled back.
func (t *commit) blame(ctx context.Context, cause error) error {
	good, bad := 0, len(t.writes) // that many writes can, cannot be applied
	for bad-good > 1 {
		middle := (good + bad) / 2
		err := t.try(ctx, t.writes[:middle], false)
		switch {
		case err == nil:
			good = middle
		case faultOf(err) == faultBad:
			bad, cause = middle, err
		default:
			return err
		}
	}
	return &store.BadWrite{Index: bad - 1, Err: cause}
}

// try is one transaction in the careful form. Without keep it is rolled back at
// its end.
func (t *commit) try(ctx context.Context, writes []store.Write, keep bool) error {
	j := &judge{commit: &commit{s: t.s, c: t.c, writes: writes}, states: make([]state, len(writes))}
	err := j.decide(ctx)
	if err == nil {
		err = j.apply(ctx)
	}
	if err != nil || !keep {
		if !t.c.pg.IsClosed() {
			err = errors.Join(err, t.c.simple(ctx, "rollback"))
		}
		return away(err)
	}
	if err := t.c.simple(ctx, "commit"); err != nil {
		return sent(t.c, err)
	}
	t.s.queues.learn(j.fresh...)
	t.done = j.done
	return nil
}

// state is what is known of a write.
type state int

const (
	stateOpen state = iota // no condition failed so far
	stateDone              // it was applied before: this is its repetition
	stateLost
)

// A judge decides the writes of a batch inside a transaction. Every step locks
// what it looks at, in the order of the kinds.
type judge struct {
	*commit
	states []state
	fresh  []queueTenant
}

// decide finds the losers and leaves nothing of them.
func (j *judge) decide(ctx context.Context) error {
	begin := &call{statement: "begin"}
	if err := j.c.run(ctx, false, append([]*call{begin}, j.s.framed([]*call{j.identity()})...)...); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{j.log, j.keys, j.needs, j.claims, j.undo} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	slices.SortFunc(j.done.Lost, func(a, b store.LostWrite) int { return a.Index - b.Index })
	return nil
}

// run runs one call whose values may be larger than the send buffer. The
// statement is parsed in a message of its own: a message that comes only in
// part is then the first after the server's answer, which is what the server's
// time-out for idle transactions waits for.
func (j *judge) run(ctx context.Context, c *call) error {
	if !j.s.unnamed.Load() {
		return j.c.run(ctx, true, c)
	}
	return j.c.alone(ctx, c)
}

// open are the writes of which no condition failed, in the order of their keys.
func (j *judge) open() []int {
	var list []int
	for i, s := range j.states {
		if s == stateOpen {
			list = append(list, i)
		}
	}
	return inKeyOrder(j.writes, list)
}

func (j *judge) lose(i int, lost store.LostWrite) {
	lost.Index = i
	j.states[i] = stateLost
	j.done.Lost = append(j.done.Lost, lost)
}

// named collects the keys that a call returns.
func named(text statement, t *table) (*call, map[store.Key]bool) {
	keys := map[store.Key]bool{}
	c := t.call(text, false)
	c.row = func(row cells) error {
		keys[row.key(0)] = true
		return nil
	}
	return c, keys
}

// log inserts what can be inserted. A sequence that another transaction is
// inserting is waited for.
func (j *judge) log(ctx context.Context) error {
	open := j.open()
	log := logTable(j.writes, open)
	if log.rows == 0 {
		return nil
	}
	insert, in := named(textLogTry, log)
	if err := j.run(ctx, insert); err != nil {
		return err
	}
	tenant, run, first, commit := ints(), uuids(), ints(), uuids()
	out := &table{columns: []*column{tenant, run, first, commit}}
	for _, i := range open {
		if w := &j.writes[i]; w.Body != nil && !in[w.Key] {
			out.rows++
			addKey(tenant, run, w.Key)
			first.int(w.First)
			commit.bytes(w.Commit[:])
		}
	}
	if out.rows == 0 {
		return nil
	}
	ask, before := named(textLogDone, out)
	if err := j.run(ctx, ask); err != nil {
		return err
	}
	for _, i := range open {
		w := &j.writes[i]
		switch {
		case w.Body == nil || in[w.Key]:
		case before[w.Key]:
			j.states[i] = stateDone
		default:
			j.lose(i, store.LostWrite{What: store.CondSequence})
		}
	}
	return nil
}

// keys inserts the list rows whose start keys are free.
func (j *judge) keys(ctx context.Context) error {
	starts, err := runTable(j.writes, j.inOrder())
	if err != nil || starts.rows == 0 {
		return err
	}
	insert, in := named(textRunTry, starts)
	if err := j.run(ctx, insert); err != nil {
		return err
	}
	number, tenant, name, key := ints(), ints(), texts(), texts()
	out := &table{columns: []*column{number, tenant, name, key}}
	for i := range j.writes {
		if w := &j.writes[i]; j.states[i] == stateOpen && w.Start != nil && !in[w.Key] {
			out.rows++
			number.int(int64(i))
			tenant.int(int64(w.Tenant))
			name.text(w.Start.Definition)
			key.textOrNull(w.Start.StartKey)
		}
	}
	if out.rows == 0 {
		return nil
	}
	holders := map[int]ringi.Holder{}
	ask := out.call(textKeyHolder, false)
	ask.row = func(row cells) error {
		holders[int(row.num(0))] = ringi.Holder{
			Run: row.run(1), Seq: row.num(5), Version: int(row.num(2)), Status: statusOf(row.num(3)), InputDigest: row.text(4),
		}
		return nil
	}
	if err := j.run(ctx, ask); err != nil {
		return err
	}
	for i := range j.writes {
		w := &j.writes[i]
		if j.states[i] != stateOpen || w.Start == nil || in[w.Key] {
			continue
		}
		if by, ok := holders[i]; ok {
			j.lose(i, store.LostWrite{What: store.CondStartKey, Lost: ringi.Lost{Holder: &by}})
		} else {
			j.lose(i, store.LostWrite{What: store.CondSequence})
		}
	}
	return nil
}

// inOrder are the open writes in the order of the batch: of two starts with one
// key the first wins.
func (j *judge) inOrder() []int {
	list := j.open()
	slices.Sort(list)
	return list
}

// needs locks and reads the tasks that writes rely on.
func (j *judge) needs(ctx context.Context) error {
	tenant, run, lane := ints(), uuids(), ints()
	t := &table{columns: []*column{tenant, run, lane}}
	open := j.open()
	for _, i := range open {
		w := &j.writes[i]
		for n, need := range w.Needs {
			if !replaced(w.Needs, n, func(n *ringi.Need) int { return n.Lane }) {
				t.rows++
				addKey(tenant, run, w.Key)
				lane.int(int64(need.Lane))
			}
		}
	}
	if t.rows == 0 {
		return nil
	}
	tasks := map[store.Key]map[int]store.DueTask{}
	ask := t.call(textNeedsTry, false)
	ask.row = func(row cells) error {
		task := readTask(row)
		if tasks[task.Key] == nil {
			tasks[task.Key] = map[int]store.DueTask{}
		}
		tasks[task.Key][task.Row.Lane] = task
		return nil
	}
	if err := j.run(ctx, ask); err != nil {
		return err
	}
	for _, i := range open {
		w := &j.writes[i]
		failed := false
		seen := make(map[int]ringi.Seen, len(w.Needs))
		for _, n := range w.Needs {
			task := tasks[w.Key][n.Lane]
			failed = failed || !store.Holds(n, task.Row, task.TaskLease)
			seen[n.Lane] = ringi.Seen{Token: task.Token, Leased: task.Leased}
		}
		if failed {
			j.lose(i, store.LostWrite{What: store.CondTask, Lost: ringi.Lost{Tasks: seen}})
		}
	}
	return nil
}

// claims looks whether the runs of claims stand where they were read. They come
// after the needs, see plan.claims; a claim that lost on both is one of another
// sequence, as everywhere.
func (j *judge) claims(ctx context.Context) error {
	var claims []int
	for i := range j.writes {
		if j.writes[i].Body == nil && j.states[i] != stateDone {
			claims = append(claims, i)
		}
	}
	if len(claims) == 0 {
		return nil
	}
	ask, standing := named(textStandsTry, standTable(j.writes, inKeyOrder(j.writes, claims)))
	if err := j.run(ctx, ask); err != nil {
		return err
	}
	for _, i := range claims {
		if standing[j.writes[i].Key] {
			continue
		}
		j.done.Lost = slices.DeleteFunc(j.done.Lost, func(l store.LostWrite) bool { return l.Index == i })
		j.lose(i, store.LostWrite{What: store.CondSequence})
	}
	return nil
}

// undo takes back what the losers inserted.
func (j *judge) undo(ctx context.Context) error {
	tenant, run, first := ints(), uuids(), ints()
	log := &table{columns: []*column{tenant, run, first}}
	runTenant, runID := ints(), uuids()
	runs := &table{columns: []*column{runTenant, runID}}
	for _, l := range j.done.Lost {
		w := &j.writes[l.Index]
		if w.Body == nil || l.What == store.CondSequence {
			continue
		}
		log.rows++
		addKey(tenant, run, w.Key)
		first.int(w.First)
		if w.Start != nil && l.What == store.CondTask {
			runs.rows++
			addKey(runTenant, runID, w.Key)
		}
	}
	if log.rows > 0 {
		if err := j.run(ctx, log.call(textLogTake, false)); err != nil {
			return err
		}
	}
	if runs.rows > 0 {
		return j.run(ctx, runs.call(textRunTake, false))
	}
	return nil
}

// apply does what the winners change beside the log.
func (j *judge) apply(ctx context.Context) error {
	p := j.plan(j.inOrder(), false)
	if err := p.build(); err != nil {
		return err
	}
	j.fresh = p.fresh
	for _, c := range p.calls {
		if c.statement == textTaskChangeTry {
			if err := j.changeTasks(ctx, p, c); err != nil {
				return err
			}
			continue
		}
		if err := j.run(ctx, c); err != nil {
			return fmt.Errorf("%w in %.40q", err, string(c.statement))
		}
	}
	return nil
}

// changeTasks changes rows in place. A change that is to keep its row and finds
// none makes a new one.
func (j *judge) changeTasks(ctx context.Context, p *plan, c *call) error {
	type laneKey struct {
		store.Key
		lane int
	}
	changed := map[laneKey]bool{}
	c.row = func(row cells) error {
		changed[laneKey{row.key(0), int(row.num(2))}] = true
		return nil
	}
	if err := j.run(ctx, c); err != nil {
		return err
	}
	missing := newTaskTable()
	for _, i := range p.keyed {
		w := &j.writes[i]
		for _, ch := range changesOf(w) {
			if ch.Row != nil && !ch.Fresh && !changed[laneKey{w.Key, ch.Lane}] {
				ch.Fresh = true
				missing.add(p, w, &ch, nil)
			}
		}
	}
	if missing.rows == 0 {
		return nil
	}
	return j.run(ctx, p.floors.call(&missing.table, textTaskPut, false))
}
