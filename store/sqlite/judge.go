package sqlite

import (
	"bytes"
	"context"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

// startKey is what the unique index of start keys is on.
type startKey struct {
	tenant     ringi.Tenant
	definition string
	key        string
}

// judge reads the conditions of every write, in order, and tells winners from
// losers. A write that was applied before is neither.
func (t *tx) judge(ctx context.Context, writes []store.Write) (winners []int, lost []store.LostWrite, err error) {
	taken := map[startKey]*store.Write{}
	err = t.raw(func(c *conn) error {
		for i := range writes {
			if err := ctx.Err(); err != nil {
				return err
			}
			done, l, err := c.judge(&writes[i], taken)
			switch {
			case err != nil:
				return err
			case l != nil:
				l.Index = i
				lost = append(lost, *l)
			case !done:
				winners = append(winners, i)
			}
		}
		return nil
	})
	return winners, lost, err
}

// judge reads the conditions of one write: done before, lost, or neither.
func (c *conn) judge(w *store.Write, taken map[startKey]*store.Write) (done bool, lost *store.LostWrite, err error) {
	if w.Body != nil {
		err = c.query(stmtLogCommit, func(row cells) error {
			done = bytes.Equal(row.blob(0), w.Commit[:])
			return nil
		}, int64(w.Tenant), runBlob(w.Key.Run), w.First)
		if done || err != nil {
			return done, nil, err
		}
	}
	last, head, err := c.logEnd(w.Key)
	if err != nil {
		return false, nil, err
	}
	if last != w.First-1 || !bytes.Equal(head, w.Prev) {
		return false, &store.LostWrite{What: store.CondSequence}, nil
	}
	if lost, err = c.judgeKey(w, taken); lost != nil || err != nil {
		return false, lost, err
	}
	lost, err = c.judgeNeeds(w)
	return false, lost, err
}

func (c *conn) judgeKey(w *store.Write, taken map[startKey]*store.Write) (lost *store.LostWrite, err error) {
	if w.Start == nil || w.Start.StartKey == "" {
		return nil, nil
	}
	key := startKey{w.Tenant, w.Start.Definition, w.Start.StartKey}
	if by := taken[key]; by != nil {
		return lostKey(ringi.Holder{Run: by.Key.Run, Seq: by.Last, Version: by.Start.Version, Status: by.Start.Status, InputDigest: by.Start.InputDigest}), nil
	}
	err = c.query(stmtKeyHolder, func(row cells) error {
		lost = lostKey(ringi.Holder{
			Run: row.run(0), Seq: row.num(4), Version: int(row.num(1)), Status: statusOf(row.num(2)), InputDigest: row.text(3),
		})
		return nil
	}, int64(w.Tenant), w.Start.Definition, w.Start.StartKey)
	if lost == nil && err == nil {
		taken[key] = w
	}
	return lost, err
}

func lostKey(by ringi.Holder) *store.LostWrite {
	return &store.LostWrite{What: store.CondStartKey, Lost: ringi.Lost{Holder: &by}}
}

func (c *conn) judgeNeeds(w *store.Write) (*store.LostWrite, error) {
	failed := false
	seen := make(map[int]ringi.Seen, len(w.Needs))
	for _, n := range w.Needs {
		t, err := c.task(w.Key, n.Lane)
		if err != nil {
			return nil, err
		}
		failed = failed || !store.Holds(n, t.Row, t.TaskLease)
		seen[n.Lane] = ringi.Seen{Token: t.Token, Leased: t.Leased}
	}
	if !failed {
		return nil, nil
	}
	return &store.LostWrite{What: store.CondTask, Lost: ringi.Lost{Tasks: seen}}, nil
}
