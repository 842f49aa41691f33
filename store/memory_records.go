package store

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/ringiflow/ringi"
)

// Run implements Records.
func (m *Memory) Run(ctx context.Context, key Key) (RunRecord, error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return RunRecord{}, err
	}
	defer unlock()
	r := m.runs[key]
	if r == nil {
		return RunRecord{}, ErrNotFound
	}
	return r.record(), nil
}

func (r *memoryRun) record() RunRecord {
	rec := RunRecord{Key: r.key, StartRow: r.row}
	rec.Labels = maps.Clone(r.row.Labels)
	rec.TasksReady, rec.TasksLeased = r.depth()
	return rec
}

// Log implements Records.
func (m *Memory) Log(ctx context.Context, key Key, after int64, maxBytes int) ([]LogRow, error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	r := m.runs[key]
	if r == nil {
		return nil, nil
	}
	return r.rows(after, max(maxBytes, 0)), nil
}

// Standing implements Records.
func (m *Memory) Standing(ctx context.Context, key Key) (ringi.Rows, error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return ringi.Rows{}, err
	}
	defer unlock()
	r := m.runs[key]
	if r == nil {
		return ringi.Rows{}, ErrNotFound
	}
	return r.standing(), nil
}

// Runs implements Records.
func (m *Memory) Runs(ctx context.Context, q ringi.RunQuery) ([]RunRecord, string, error) {
	after, err := ParseCursor(q.After, 1)
	if err != nil {
		return nil, "", err
	}
	unlock, err := m.lock(ctx)
	if err != nil {
		return nil, "", err
	}
	defer unlock()
	var list []*memoryRun
	for _, r := range m.runs {
		if r.matches(q) && (after == nil || string(r.key.Run) < after[0]) {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b *memoryRun) int { return compareKeys(b.key, a.key) })
	list, more := cut(list, q.Limit)
	records, next := make([]RunRecord, len(list)), ""
	for i, r := range list {
		records[i] = r.record()
	}
	if more {
		next = Cursor(string(list[len(list)-1].key.Run))
	}
	return records, next, nil
}

func (r *memoryRun) matches(q ringi.RunQuery) bool {
	return r.key.Tenant == q.Tenant && (len(q.Status) == 0 || slices.Contains(q.Status, r.row.Status)) &&
		(q.Definition == "" || r.row.Definition == q.Definition) && (q.Key == "" || r.row.StartKey == q.Key)
}

// cut shortens a list to a page and tells whether something was left off.
func cut[T any](list []T, limit int) ([]T, bool) {
	n := PageSize(limit)
	if len(list) <= n {
		return list, false
	}
	return list[:n], true
}

// memoryPlace is where a row stands in a list that is ordered by time.
type memoryPlace struct {
	at  time.Time
	run ringi.RunID
	sub string // the step
	n   int64  // the incident
}

func (a memoryPlace) compare(b memoryPlace) int {
	return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.run, b.run), cmp.Compare(a.sub, b.sub), cmp.Compare(a.n, b.n))
}

// Approvals implements Records.
func (m *Memory) Approvals(ctx context.Context, q ringi.ApprovalQuery) ([]ringi.ApprovalView, string, error) {
	after, err := parsePlace(q.After)
	if err != nil {
		return nil, "", err
	}
	unlock, err := m.lock(ctx)
	if err != nil {
		return nil, "", err
	}
	defer unlock()
	var list []ringi.ApprovalView
	for _, r := range m.openRuns() {
		if r.key.Tenant != q.Tenant || q.Run != "" && r.key.Run != q.Run {
			continue
		}
		for _, row := range r.approvals {
			place := memoryPlace{at: row.OpenedAt, run: r.key.Run, sub: row.Step}
			if after != nil && place.compare(*after) <= 0 || q.For != nil && !Votable(*q.For, row, m.now()) {
				continue
			}
			list = append(list, ringi.ApprovalView{
				Run: r.key.Run, Step: row.Step, Definition: r.row.Definition,
				Requester: row.Requester, OpenedAt: row.OpenedAt, Approval: row.Approval,
			})
		}
	}
	slices.SortFunc(list, func(a, b ringi.ApprovalView) int {
		return memoryPlace{at: a.OpenedAt, run: a.Run, sub: a.Step}.compare(memoryPlace{at: b.OpenedAt, run: b.Run, sub: b.Step})
	})
	list, more := cut(list, q.Limit)
	if !more {
		return list, "", nil
	}
	last := list[len(list)-1]
	return list, Cursor(micro(last.OpenedAt), string(last.Run), last.Step), nil
}

// Incidents implements Records.
func (m *Memory) Incidents(ctx context.Context, q ringi.IncidentQuery) ([]ringi.IncidentView, string, error) {
	after, err := parsePlace(q.After)
	if err == nil && after != nil {
		after.n, err = strconv.ParseInt(after.sub, 10, 64)
		after.sub = ""
	}
	if err != nil {
		return nil, "", BadCursor()
	}
	unlock, err := m.lock(ctx)
	if err != nil {
		return nil, "", err
	}
	defer unlock()
	var list []ringi.IncidentView
	for _, r := range m.openRuns() {
		if r.key.Tenant != q.Tenant || q.Run != "" && r.key.Run != q.Run {
			continue
		}
		for _, row := range r.incidents {
			if after == nil || (memoryPlace{at: row.Since, run: r.key.Run, n: row.ID}).compare(*after) > 0 {
				list = append(list, ringi.IncidentView{Run: r.key.Run, Definition: r.row.Definition, Incident: row})
			}
		}
	}
	slices.SortFunc(list, func(a, b ringi.IncidentView) int {
		return memoryPlace{at: a.Since, run: a.Run, n: a.ID}.compare(memoryPlace{at: b.Since, run: b.Run, n: b.ID})
	})
	list, more := cut(list, q.Limit)
	if !more {
		return list, "", nil
	}
	last := list[len(list)-1]
	return list, Cursor(micro(last.Since), string(last.Run), strconv.FormatInt(last.ID, 10)), nil
}

func parsePlace(cursor string) (*memoryPlace, error) {
	parts, err := ParseCursor(cursor, 3)
	if err != nil || parts == nil {
		return nil, err
	}
	us, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil {
		return nil, BadCursor()
	}
	return &memoryPlace{at: time.UnixMicro(us).UTC(), run: ringi.RunID(parts[1]), sub: parts[2]}, nil
}

func micro(t time.Time) string { return strconv.FormatInt(t.UnixMicro(), 10) }

// Audit implements Records.
func (m *Memory) Audit(ctx context.Context, key Key, limit int) ([]AuditRecord, error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if limit <= 0 || limit > AuditPage {
		limit = AuditPage
	}
	var list []AuditRecord
	for _, a := range m.audit {
		if len(list) < limit && a.tenant == key.Tenant && (key.Run == "" || a.Run == key.Run) {
			list = append(list, a.AuditRecord)
		}
	}
	return list, nil
}
