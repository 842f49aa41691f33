package sqlite

import (
	"fmt"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

// applyTasks changes the task rows of a write. A need for the current token of
// a lane that the write changes is folded into the statement that changes it;
// the other needs are read first.
func applyTasks(c *conn, w *store.Write) error {
	if len(w.Tasks) == 0 && len(w.Needs) == 0 {
		return nil
	}
	folded, err := c.checkNeeds(w)
	if err != nil {
		return err
	}
	for _, ch := range w.Tasks {
		var need any
		if token, ok := folded[ch.Lane]; ok {
			need = token
		}
		if err := c.changeTask(w, ch, need); err != nil {
			return fmt.Errorf("task of lane %d: %w", ch.Lane, err)
		}
	}
	return nil
}

// checkNeeds reads what the needs rely on and returns those that the changes
// will check themselves: token by lane.
func (c *conn) checkNeeds(w *store.Write) (folded map[int]int64, err error) {
	for i, n := range w.Needs {
		if n.How == ringi.NeedToken && needsOf(w, n.Lane) == 1 && changesOf(w, n.Lane) == 1 {
			if folded == nil {
				folded = make(map[int]int64, len(w.Needs))
			}
			folded[n.Lane] = n.Token
			continue
		}
		t, err := c.task(w.Key, n.Lane)
		if err != nil {
			return nil, err
		}
		if !store.Holds(w.Needs[i], t.Row, t.TaskLease) {
			return nil, errCondition
		}
	}
	return folded, nil
}

func needsOf(w *store.Write, lane int) (n int) {
	for i := range w.Needs {
		if w.Needs[i].Lane == lane {
			n++
		}
	}
	return n
}

func changesOf(w *store.Write, lane int) (n int) {
	for i := range w.Tasks {
		if w.Tasks[i].Lane == lane {
			n++
		}
	}
	return n
}

// task reads the task of a lane; the zero DueTask when there is none.
func (c *conn) task(key store.Key, lane int) (t store.DueTask, err error) {
	err = c.query(stmtTaskRead, func(row cells) error {
		t = readTask(row)
		return nil
	}, int64(key.Tenant), runBlob(key.Run), int64(lane))
	return t, err
}

// changeTask does one change, under the token need unless that is nil.
func (c *conn) changeTask(w *store.Write, ch store.TaskChange, need any) error {
	where := []any{int64(w.Tenant), runBlob(w.Key.Run), int64(ch.Lane), need, need}
	if ch.Row == nil {
		n, err := c.exec(stmtTaskDelete, where...)
		if need != nil {
			return changed(n, err)
		}
		return err
	}
	switch {
	case ch.Fresh:
		return c.freshTask(w, ch, need, where)
	case !ch.Begun.IsZero():
		end := micro(ch.Begun)
		args := append(append(taskArgs(c.row[:0], ch.Row), end, end), where...)
		return c.keptTask(stmtTaskBegun, w, ch, need, args)
	}
	look := micro(store.FirstCheck(*ch.Row, store.TaskLease{}))
	args := append(append(taskArgs(c.row[:0], ch.Row), look, look), where...)
	return c.keptTask(stmtTaskKeep, w, ch, need, args)
}

// keptTask changes a row that keeps its token. Without a row and without a
// need it is a new one.
func (c *conn) keptTask(s statement, w *store.Write, ch store.TaskChange, need any, args []any) error {
	n, err := c.exec(s, args...)
	if err != nil || n > 0 {
		return err
	}
	if need != nil {
		return errCondition
	}
	return c.putTask(w, ch)
}

// freshTask begins a new attempt. With a need there is a row to update.
func (c *conn) freshTask(w *store.Write, ch store.TaskChange, need any, where []any) error {
	if need == nil {
		return c.putTask(w, ch)
	}
	lease := firstLease(ch)
	check := checkAt(store.FirstCheck(*ch.Row, lease))
	c.row = leaseArgs(taskArgs(c.row[:0], ch.Row), lease)
	row := len(c.row)
	c.row = append(append(c.row, where...), check)
	n, err := c.exec(stmtTaskNext, c.row...)
	if err != nil || n > 0 {
		return err
	}
	return changed(c.exec(stmtTaskNextCheck, append(append(c.row[:row], check), where...)...))
}

// putTask inserts a row, or begins the lane's row anew.
func (c *conn) putTask(w *store.Write, ch store.TaskChange) error {
	lease := firstLease(ch)
	args := taskArgs(append(c.row[:0], int64(w.Tenant), runBlob(w.Key.Run), int64(ch.Lane)), ch.Row)
	c.row = append(leaseArgs(args, lease), checkAt(store.FirstCheck(*ch.Row, lease)))
	_, err := c.exec(stmtTaskPut, c.row...)
	return err
}

// firstLease is the lease that a new attempt is born with.
func firstLease(ch store.TaskChange) store.TaskLease {
	if l := ch.Lease; l != nil {
		return store.HandOut(*ch.Row, ch.Row.Token(1), l.Worker, l.At, l.Until)
	}
	return store.TaskLease{Token: ch.Row.Token(0)}
}
