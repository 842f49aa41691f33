package sqlite

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/outbox"
	sqliteoutbox "github.com/ringiflow/ringi/outbox/sqlite"
	"github.com/ringiflow/ringi/store"
)

// errCondition ends the first try of a batch: a condition failed, and which
// one is for the second try to say.
var errCondition = errors.New("sqlite: a condition of the batch failed")

// Commit implements store.Store.
func (s *Store) Commit(ctx context.Context, writes ...store.Write) (store.Committed, error) {
	if err := store.CheckBatch(writes); err != nil {
		return store.Committed{}, err
	}
	c := store.Committed{Incarnation: s.incarnation}
	all := make([]int, len(writes))
	for i := range all {
		all[i] = i
	}
	err := s.transact(ctx, func(t *tx) error { return t.apply(ctx, writes, all) })
	if errors.Is(err, errCondition) {
		err = s.transact(ctx, func(t *tx) error {
			winners, lost, err := t.judge(ctx, writes)
			c.Lost = lost
			if err != nil {
				return err
			}
			return t.apply(ctx, writes, winners)
		})
	}
	for i := range writes {
		for _, w := range writes[i].Waits {
			if w.Row != nil {
				s.news.add(writes[i].Tenant, w.Row.Event, w.Row.Key)
			}
		}
	}
	if errors.Is(err, errCondition) {
		return store.Committed{}, fmt.Errorf("%w: conditions held when they were read and failed in the same transaction", store.ErrUnavailable)
	}
	if err != nil {
		return store.Committed{}, err
	}
	c.Now = s.now().UTC().Truncate(time.Microsecond)
	return c, nil
}

// apply writes what the winners change, kind by kind, the messages last. It
// returns errCondition when a condition does not hold.
func (t *tx) apply(ctx context.Context, writes []store.Write, winners []int) error {
	steps := []func(*conn, *store.Write) error{
		applyLog, applyRun, applyTasks, applyTimers, applyWaits, applyApprovals, applyIncidents, applySnapshot, applyAudit,
	}
	err := t.raw(func(c *conn) error {
		for _, step := range steps {
			for _, i := range winners {
				if err := ctx.Err(); err != nil {
					return err
				}
				if err := step(c, &writes[i]); err != nil {
					return badWrite(i, err)
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, i := range winners {
		if len(writes[i].Messages) == 0 {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		// Without the context: it was looked at, and watching it costs a goroutine per statement.
		if err := sqliteoutbox.Insert(context.Background(), t.sc, writes[i].Messages...); err != nil {
			return badMessage(i, writes[i].Messages, err)
		}
	}
	return nil
}

// badWrite names the write whose statement can never work.
func badWrite(index int, err error) error {
	if errors.Is(err, errCondition) || faultOf(err) != faultBad && !errors.Is(err, errEncode) {
		return err
	}
	return &store.BadWrite{Index: index, Err: err}
}

// badMessage tells a message that can never be inserted from a database that
// is away.
func badMessage(index int, msgs []outbox.Message, err error) error {
	bad := errors.Is(err, outbox.ErrDuplicate) || faultOf(err) == faultBad
	for i := range msgs {
		bad = bad || msgs[i].Check() != nil || msgs[i].Seq != 0
	}
	if bad {
		return &store.BadWrite{Index: index, Err: err}
	}
	return err
}

// errEncode says that a row cannot be written as JSON.
var errEncode = errors.New("sqlite: row cannot be encoded")

// changed makes a statement that changed no row the failure of a condition.
func changed(n int64, err error) error {
	if err == nil && n == 0 {
		return errCondition
	}
	return err
}

func applyLog(c *conn, w *store.Write) error {
	run := runBlob(w.Key.Run)
	tenant := int64(w.Tenant)
	if w.Body == nil {
		last, head, err := c.logEnd(w.Key)
		if err == nil && (last != w.First-1 || !bytes.Equal(head, w.Prev)) {
			return errCondition
		}
		return err
	}
	var last, prev any
	if w.First > 1 {
		last, prev = w.First-1, w.Prev
	}
	return changed(c.exec(stmtLogInsert, tenant, run, w.First, w.Last, w.Commit[:], w.Head, blobOf(w.Body), tenant, run, w.First, last, prev))
}

// logEnd returns sequence and chain head of a run's last event.
func (c *conn) logEnd(key store.Key) (last int64, head []byte, err error) {
	err = c.query(stmtLogEnd, func(row cells) error {
		last, head = row.num(0), row.blob(1)
		return nil
	}, int64(key.Tenant), runBlob(key.Run))
	return last, head, err
}

func applyRun(c *conn, w *store.Write) error {
	if r := w.Start; r != nil {
		var labels any
		if len(r.Labels) > 0 {
			raw, err := json.Marshal(r.Labels)
			if err != nil {
				return fmt.Errorf("%w: labels: %w", errEncode, err)
			}
			labels = string(raw)
		}
		var repair any
		if r.RepairOf != "" {
			repair = runBlob(r.RepairOf)
		}
		if err := changed(c.exec(stmtRunInsert, int64(w.Tenant), runBlob(w.Key.Run), r.Definition, int64(r.Version), r.Digest,
			textOrNull(r.StartKey), r.InputDigest, r.Requester, r.Title, labels, micro(r.StartedAt), repair,
			statusCodes[r.Status], r.WaitsFor, r.WaitsStep, micro(r.EndedAt))); err != nil {
			return err
		}
	}
	if r := w.Run; r != nil {
		_, err := c.exec(stmtRunUpdate, statusCodes[r.Status], r.WaitsFor, r.WaitsStep, micro(r.EndedAt), int64(w.Tenant), runBlob(w.Key.Run))
		return err
	}
	return nil
}

func applyTimers(c *conn, w *store.Write) error {
	for _, ch := range w.Timers {
		var err error
		if r := ch.Row; r == nil {
			_, err = c.exec(stmtTimerDelete, int64(w.Tenant), runBlob(w.Key.Run), ch.ID)
		} else {
			_, err = c.exec(stmtTimerPut, int64(w.Tenant), runBlob(w.Key.Run), ch.ID, int64(r.Generation), micro(r.FireAt), micro(r.FireAt))
		}
		if err != nil {
			return fmt.Errorf("timer %s: %w", ch.ID, err)
		}
	}
	return nil
}

func applyWaits(c *conn, w *store.Write) error {
	for _, ch := range w.Waits {
		var err error
		if r := ch.Row; r == nil {
			_, err = c.exec(stmtWaitDelete, int64(w.Tenant), runBlob(w.Key.Run), ch.Step)
		} else {
			_, err = c.exec(stmtWaitPut, int64(w.Tenant), runBlob(w.Key.Run), ch.Step, r.Event, r.Key, r.Generation, micro(r.OpenedAt), r.NotEvent)
		}
		if err != nil {
			return fmt.Errorf("wait of step %s: %w", ch.Step, err)
		}
	}
	return nil
}

func applyApprovals(c *conn, w *store.Write) error {
	for _, ch := range w.Approvals {
		if ch.Row == nil {
			if _, err := c.exec(stmtApprovalDelete, int64(w.Tenant), runBlob(w.Key.Run), ch.Step); err != nil {
				return fmt.Errorf("approval of step %s: %w", ch.Step, err)
			}
			continue
		}
		body, err := json.Marshal(ch.Row.Approval)
		if err != nil {
			return fmt.Errorf("%w: approval of step %s: %w", errEncode, ch.Step, err)
		}
		if _, err := c.exec(stmtApprovalPut, int64(w.Tenant), runBlob(w.Key.Run), ch.Step, ch.Row.Requester, micro(ch.Row.OpenedAt), string(body)); err != nil {
			return fmt.Errorf("approval of step %s: %w", ch.Step, err)
		}
	}
	return nil
}

func applyIncidents(c *conn, w *store.Write) error {
	for _, ch := range w.Incidents {
		if ch.Row == nil {
			if _, err := c.exec(stmtIncidentDelete, int64(w.Tenant), runBlob(w.Key.Run), ch.ID); err != nil {
				return fmt.Errorf("incident %d: %w", ch.ID, err)
			}
			continue
		}
		body, err := json.Marshal(ch.Row)
		if err != nil {
			return fmt.Errorf("%w: incident %d: %w", errEncode, ch.ID, err)
		}
		if _, err := c.exec(stmtIncidentPut, int64(w.Tenant), runBlob(w.Key.Run), ch.ID, micro(ch.Row.Since), string(body)); err != nil {
			return fmt.Errorf("incident %d: %w", ch.ID, err)
		}
	}
	return nil
}

func applySnapshot(c *conn, w *store.Write) error {
	if w.Snapshot == nil {
		return nil
	}
	_, err := c.exec(stmtSnapshotPut, int64(w.Tenant), runBlob(w.Key.Run), w.Snapshot.Seq, int64(w.Snapshot.Format), blobOf(w.Snapshot.Body))
	return err
}

func applyAudit(c *conn, w *store.Write) error {
	for i := range w.Audit {
		if err := c.record(w.Tenant, w.Commit[:], i, &w.Audit[i]); err != nil {
			return err
		}
	}
	return nil
}

// record writes an audit record; commit is nil when there is no write around it.
func (c *conn) record(tenant ringi.Tenant, commit []byte, part int, a *store.AuditRecord) error {
	var run any
	if a.Run != "" {
		run = runBlob(a.Run)
	}
	_, err := c.exec(stmtAuditInsert, int64(tenant), micro(a.At), a.Actor, a.Kind, run, a.Answer, a.Data, a.Head, commit, int64(part))
	return err
}
