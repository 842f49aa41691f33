package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/ringiflow/ringi/store"
)

// carefulTries is how often the careful form is tried when the database asks
// for it, as after a deadlock with something that is not ours.
const carefulTries = 3

// Commit implements store.Store.
//
// A batch is first tried in the pipeline form: all statements in one message,
// whose end is what commits, with every condition as an assertion that aborts
// it. The server works on it with nobody in between, so that a node that is
// stopped or cut off at any moment leaves no transaction open behind it. That
// holds only as long as the whole message lies in the kernel once it was
// written, so that a batch that does not fit the send buffer of the connection
// is not sent in this form.
//
// When a condition fails, or the message would be too large, the batch goes in
// the careful form: a transaction that finds the losers first and applies the
// winners then. Its locks are let go of when the node says nothing for a while.
//
// What was sent is waited for, also when ctx ends meanwhile.
func (s *Store) Commit(ctx context.Context, writes ...store.Write) (store.Committed, error) {
	if err := store.CheckBatch(writes); err != nil {
		return store.Committed{}, err
	}
	var done store.Committed
	err := s.with(ctx, s.writers, func(ctx context.Context, c *conn) (err error) {
		t := &commit{s: s, c: c, writes: writes}
		err = t.pipeline(ctx)
		if t.undecided(err) {
			err = t.careful(ctx)
		}
		done = t.done
		return err
	})
	if err != nil {
		return store.Committed{}, err
	}
	return done, nil
}

// A commit is one call of Commit on one connection.
type commit struct {
	s      *Store
	c      *conn
	writes []store.Write
	done   store.Committed
}

// errLarge says that a batch does not fit into one message.
var errLarge = errors.New("postgres: the batch is larger than the send buffer")

// undecided reports whether the pipeline form did nothing and the careful form
// may do better.
func (t *commit) undecided(err error) bool {
	var bad *badRow
	if errors.Is(err, errLarge) || errors.As(err, &bad) {
		return true
	}
	switch faultOf(err) {
	case faultCondition, faultBad, faultAgain:
		return errors.Is(err, store.ErrUnavailable)
	}
	return false
}

// pipeline sends the whole batch as one message.
func (t *commit) pipeline(ctx context.Context) error {
	all := make([]int, len(t.writes))
	for i := range all {
		all[i] = i
	}
	p := t.plan(all, true)
	identity := t.identity()
	calls := t.s.framed([]*call{identity})
	if log := logTable(t.writes, p.keyed); log.rows > 0 {
		calls = append(calls, log.call(textLog, true))
	}
	starts, err := runTable(t.writes, p.keyed)
	if err == nil {
		err = p.build()
	}
	if err != nil {
		return err
	}
	if starts.rows > 0 {
		calls = append(calls, starts.call(textRun, false))
	}
	calls = append(calls, p.calls...)
	b, err := t.batch(ctx, calls)
	if err != nil {
		return sent(t.c, err)
	}
	if b.bytes > t.c.room {
		return errLarge
	}
	if err := t.c.send(ctx, b); err != nil {
		return sent(t.c, err)
	}
	t.s.queues.learn(p.fresh...)
	return nil
}

// batch puts calls into one message, for which nothing has to be prepared any more.
func (t *commit) batch(ctx context.Context, calls []*call) (*batch, error) {
	named := !t.s.unnamed.Load()
	b := &batch{}
	for _, call := range calls {
		if named {
			if err := t.c.prepare(ctx, call.statement); err != nil {
				return nil, err
			}
		}
		b.add(t.c, call, named)
	}
	return b, nil
}

func (t *commit) plan(which []int, folded bool) *plan {
	return &plan{
		writes: t.writes, keyed: inKeyOrder(t.writes, which), order: which,
		floors: &t.s.floors, least: t.s.floors.least(), folded: folded, known: t.s.queues.has,
	}
}

// identity reads clock and incarnation.
// The incarnation is answered and not asserted: each write names the head of
// its run's chain, which no other history has, and so needs no further proof.
func (t *commit) identity() *call {
	c := &call{statement: textIdentity, row: func(row cells) error {
		t.done.Incarnation = fmt.Sprintf("%x-%s-%d", uint64(row.num(0)), row.text(1), row.num(2))
		t.done.Now = row.time(3)
		return nil
	}}
	c.text(strconv.FormatInt(statementTime.Milliseconds(), 10))
	return c
}

// Probe commits that many bytes of no meaning, and then takes them away. It
// tells whether the database can be written now, which reading it cannot: it
// may be a standby, or its disk full. Errors as of Commit.
func (s *Store) Probe(ctx context.Context, bytes int) error {
	put := func(n int) error {
		c := &call{statement: `insert into meta (key, value) values ('probe', repeat('x', $1::bigint::int)) on conflict (key) do update set value = excluded.value`}
		c.int(int64(n))
		return s.change(ctx, c)
	}
	return errors.Join(put(bytes), put(1))
}
