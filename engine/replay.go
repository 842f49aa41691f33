package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

// ReplayQuery names what to fold again: one run, or with an empty Run all of
// the tenant.
type ReplayQuery struct {
	Tenant ringi.Tenant // 0 is the default tenant
	Run    ringi.RunID
}

// A Replayed is the outcome of a replay.
type Replayed struct {
	Runs       int        `json:"runs"`
	Events     int64      `json:"events"`
	Mismatches []Mismatch `json:"mismatches"`
}

// A Mismatch is something that stands beside the log and does not follow from
// it, or a log that does not hold together.
type Mismatch struct {
	Run  ringi.RunID `json:"run"`
	What string      `json:"what"` // log, chain, snapshot, list, task, timer, wait, approval, incident
	Seq  int64       `json:"seq"`  // the event where it shows
}

const (
	// replayBytes bounds one read of the log.
	replayBytes = 1 << 20
	// replayTries is how often a run that changes meanwhile is folded again
	// before what was seen counts.
	replayTries = 5
)

// Replay folds logs from their first event, believing nothing else, and
// compares what the store keeps beside them: snapshot, list row, tasks (what
// the log fixes of them, not leases), timers, waits, approvals, incidents and
// the hash chain. It may run beside a working engine.
func Replay(ctx context.Context, s store.Store, r store.Records, q ReplayQuery) (Replayed, error) {
	out := Replayed{Mismatches: []Mismatch{}}
	tenant := tenantOr(q.Tenant)
	if q.Run != "" {
		if _, ok := store.RunBytes(q.Run); !ok {
			return out, noRun(q.Run)
		}
		return out, out.add(ctx, s, r, store.Key{Tenant: tenant, Run: q.Run})
	}
	after := ""
	for {
		rows, next, err := r.Runs(ctx, ringi.RunQuery{Tenant: tenant, After: after, Limit: store.LargestPage})
		if err != nil {
			return out, storeFault(err)
		}
		for _, row := range rows {
			if err := out.add(ctx, s, r, row.Key); err != nil {
				return out, err
			}
		}
		if next == "" {
			return out, nil
		}
		after = next
	}
}

// add replays one run, again while its log moves under the comparison.
func (out *Replayed) add(ctx context.Context, s store.Store, r store.Records, key store.Key) error {
	for try := 1; ; try++ {
		p := &replay{key: key, state: &ringi.State{Tenant: key.Tenant, Run: key.Run}}
		if err := p.compare(ctx, s, r); err != nil {
			return storeFault(err)
		}
		if p.state.Seq == 0 && len(p.found) == 0 {
			return noRun(key.Run)
		}
		if len(p.found) > 0 && try < replayTries {
			if rows, err := r.Log(ctx, key, p.state.Seq, 1); err != nil {
				return storeFault(err)
			} else if len(rows) > 0 && !p.stuck {
				continue
			}
		}
		out.Runs++
		out.Events += p.state.Seq
		out.Mismatches = append(out.Mismatches, p.found...)
		return nil
	}
}

// A replay is one run being folded.
type replay struct {
	key   store.Key
	state *ringi.State
	found []Mismatch
	stuck bool // the log cannot be read to its end
	snap  *store.Snapshot
}

func (p *replay) mismatch(what string, seq int64) {
	p.found = append(p.found, Mismatch{Run: p.key.Run, What: what, Seq: seq})
}

func (p *replay) compare(ctx context.Context, s store.Store, r store.Records) error {
	loaded, err := s.Load(ctx, p.key)
	if err != nil {
		return err
	}
	p.snap = loaded[0].Snapshot
	if err := p.foldLog(ctx, r); err != nil || p.stuck {
		return err
	}
	if p.snap != nil { // its event was never reached
		p.mismatch("snapshot", p.snap.Seq)
	}
	if p.state.Seq == 0 {
		return nil
	}
	row, err := r.Run(ctx, p.key)
	if errors.Is(err, store.ErrNotFound) {
		p.mismatch("list", p.state.Seq)
		return nil
	}
	if err != nil {
		return err
	}
	rows, err := r.Standing(ctx, p.key)
	if err != nil {
		return err
	}
	p.compareRows(row, rows)
	return nil
}

// foldLog reads the whole log and checks its chain.
func (p *replay) foldLog(ctx context.Context, r store.Records) error {
	var head []byte
	for {
		rows, err := r.Log(ctx, p.key, p.state.Seq, replayBytes)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return nil
		}
		for _, row := range rows {
			if head = store.Chain(head, row.Body); !bytes.Equal(head, row.Head) {
				p.mismatch("chain", row.First)
				head = row.Head // so that one changed row is named once
			}
			if !p.foldRow(row) {
				p.stuck = true
				return nil
			}
		}
	}
}

func (p *replay) foldRow(row store.LogRow) bool {
	events, err := ringi.DecodeEvents(row.First, row.Body)
	if err != nil || row.First != p.state.Seq+1 || len(events) == 0 {
		p.mismatch("log", row.First)
		return false
	}
	at := p.state.At
	for _, e := range events {
		if e.At.Before(at) {
			p.mismatch("log", e.Seq)
		}
		at = e.At
	}
	last := events[len(events)-1].Seq
	if s := p.snap; s != nil && s.Seq >= row.First && s.Seq <= last {
		until := s.Seq - row.First + 1
		p.state, events = ringi.Fold(p.state, events[:until]...), events[until:]
		p.compareSnapshot()
	}
	p.state = ringi.Fold(p.state, events...)
	return true
}

// compareSnapshot compares the snapshot at its own sequence. One of another
// format is only rebuilt by whoever reads it, and proves nothing.
func (p *replay) compareSnapshot() {
	if p.snap.Format == ringi.Format {
		want, err := ringi.EncodeState(p.state)
		if err != nil || !bytes.Equal(want, p.snap.Body) {
			p.mismatch("snapshot", p.snap.Seq)
		}
	}
	p.snap = nil
}

func (p *replay) compareRows(row store.RunRecord, rows ringi.Rows) {
	want := ringi.Standing(p.state)
	if !sameStart(startRow(p.state, want.Run), &row.StartRow) {
		p.mismatch("list", p.state.Seq)
	}
	byTask := func(a, b *ringi.TaskRow) bool {
		x := *b
		if x.ReadyAt.After(a.ReadyAt) {
			x.ReadyAt = a.ReadyAt // moved by a hand-over that lapsed, which is no fact of the log
		}
		return sameTask(a, &x)
	}
	for _, c := range changed(want.Tasks, rows.Tasks, taskLane, byTask) {
		p.mismatch("task", seqOfTask(c, p.state.Seq))
	}
	for range changed(want.Timers, rows.Timers, timerID, sameTimer) {
		p.mismatch("timer", p.state.Seq)
	}
	for range changed(want.Waits, rows.Waits, waitStep, sameWait) {
		p.mismatch("wait", p.state.Seq)
	}
	for range changed(want.Approvals, rows.Approvals, approvalStep, sameJSON) {
		p.mismatch("approval", p.state.Seq)
	}
	for _, c := range changed(want.Incidents, rows.Incidents, incidentID, sameJSON) {
		p.mismatch("incident", c.key)
	}
}

// seqOfTask is the event that the task came from, as far as the log knows it.
func seqOfTask(c change[int, ringi.TaskRow], last int64) int64 {
	if c.was != nil {
		return c.was.Seq
	}
	return last
}

// sameStart compares list rows. Instants are compared as such, whatever the
// zone that a database gives them back in.
func sameStart(a, b *store.StartRow) bool {
	x, y := *a, *b
	same := x.StartedAt.Equal(y.StartedAt) && sameRun(x.RunRow, y.RunRow) && len(x.Labels) == len(y.Labels)
	for k, v := range x.Labels {
		same = same && y.Labels[k] == v
	}
	return same && x.Definition == y.Definition && x.Version == y.Version && x.Digest == y.Digest &&
		x.StartKey == y.StartKey && x.InputDigest == y.InputDigest && x.Requester == y.Requester &&
		x.Title == y.Title && x.RepairOf == y.RepairOf
}

// String is the mismatch on one line.
func (m Mismatch) String() string {
	text, err := json.Marshal(m)
	if err != nil {
		return fmt.Sprintf("%s: %s at %d", m.Run, m.What, m.Seq)
	}
	return string(text)
}
