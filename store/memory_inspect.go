package store

import (
	"bytes"
	"context"
	"maps"
	"slices"

	"github.com/ringiflow/ringi"
)

// Traces implements Inspector: there is no row but of a run that exists.
func (m *Memory) Traces(ctx context.Context, after Key, limit int) ([]Key, error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	var keys []Key
	for key := range m.runs {
		if compareKeys(key, after) > 0 {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, compareKeys)
	return keys[:min(max(limit, 0), len(keys))], nil
}

// Strays implements Inspector: there are none.
func (m *Memory) Strays(ctx context.Context, _ int) ([]BadRow, error) {
	unlock, err := m.lock(ctx)
	if err == nil {
		unlock()
	}
	return nil, err
}

// Inspect implements Inspector.
func (m *Memory) Inspect(ctx context.Context, key Key) (Inspected, error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return Inspected{}, err
	}
	defer unlock()
	r := m.runs[key]
	if r == nil {
		return Inspected{}, nil
	}
	record, rows := r.record(), r.standing()
	x := Inspected{Run: &record, Waits: rows.Waits, Approvals: rows.Approvals, Incidents: rows.Incidents}
	if n := len(r.log); n > 0 {
		x.Last = r.log[n-1].First
	}
	if r.snapshot != nil {
		s := *r.snapshot
		x.Snapshot = &s
	}
	for _, lane := range slices.Sorted(maps.Keys(r.tasks)) {
		t := r.tasks[lane]
		x.Tasks = append(x.Tasks, InspectedTask{Row: t.row, Lease: t.lease, Check: t.check})
	}
	for _, id := range slices.Sorted(maps.Keys(r.timers)) {
		x.Timers = append(x.Timers, InspectedTimer{TimerRow: r.timers[id].row, Due: r.timers[id].due})
	}
	for _, a := range m.audit {
		known := func(head []byte) bool { return bytes.Equal(head, a.Head) }
		if a.tenant == key.Tenant && a.Run == key.Run && len(a.Head) > 0 && !slices.ContainsFunc(x.AuditHeads, known) {
			x.AuditHeads = append(x.AuditHeads, a.Head)
		}
	}
	return x, nil
}

// standing lists the rows that ringi.Standing fixes.
func (r *memoryRun) standing() ringi.Rows {
	rows := ringi.Rows{Run: r.row.RunRow}
	for _, lane := range slices.Sorted(maps.Keys(r.tasks)) {
		rows.Tasks = append(rows.Tasks, r.tasks[lane].row)
	}
	for _, id := range slices.Sorted(maps.Keys(r.timers)) {
		rows.Timers = append(rows.Timers, r.timers[id].row)
	}
	for _, step := range slices.Sorted(maps.Keys(r.waits)) {
		rows.Waits = append(rows.Waits, r.waits[step])
	}
	for _, step := range slices.Sorted(maps.Keys(r.approvals)) {
		rows.Approvals = append(rows.Approvals, r.approvals[step])
	}
	for _, id := range slices.Sorted(maps.Keys(r.incidents)) {
		rows.Incidents = append(rows.Incidents, r.incidents[id])
	}
	return rows
}
