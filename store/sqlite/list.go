package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

// runColumns are what readRuns reads; the tasks are counted in the same read.
const runColumns = `select tenant, id, name, version, digest, key, input_digest, requester, title, labels, started_at, repair_of,
	status, waits_for, waits_step, ended_at,
	(select count(*) from task t where t.tenant = run.tenant and t.run = run.id and t.state = 0),
	(select count(*) from task t where t.tenant = run.tenant and t.run = run.id and t.state = 1) from run`

// readRuns reads list rows; the text says which, and in what order.
func (s *Store) readRuns(ctx context.Context, which string, args ...any) ([]store.RunRecord, error) {
	var list []store.RunRecord
	err := s.each(ctx, runColumns+which, func(row cells) error {
		r := store.RunRecord{
			Key: store.Key{Tenant: ringi.Tenant(row.num(0)), Run: row.run(1)},
			StartRow: store.StartRow{
				Definition: row.text(2), Version: int(row.num(3)), Digest: row.text(4), StartKey: row.text(5),
				InputDigest: row.text(6), Requester: row.text(7), Title: row.text(8), StartedAt: row.time(10), RepairOf: row.run(11),
				RunRow: ringi.RunRow{Status: statusOf(row.num(12)), WaitsFor: row.text(13), WaitsStep: row.text(14), EndedAt: row.time(15)},
			},
			TasksReady: int(row.num(16)), TasksLeased: int(row.num(17)),
		}
		if labels := row.text(9); labels != "" {
			if err := json.Unmarshal([]byte(labels), &r.Labels); err != nil {
				return &damaged{fmt.Sprintf("labels of run %s: %v", r.Key.Run, err)}
			}
		}
		list = append(list, r)
		return nil
	}, args...)
	return list, err
}

// Runs implements store.Records.
func (s *Store) Runs(ctx context.Context, q ringi.RunQuery) ([]store.RunRecord, string, error) {
	after, err := store.ParseCursor(q.After, 1)
	if err != nil {
		return nil, "", err
	}
	which, args := ` where tenant = ?`, []any{int64(q.Tenant)}
	and := func(text string, arg any) {
		which, args = which+` and `+text, append(args, arg)
	}
	if after != nil {
		and(`id < ?`, runBlob(ringi.RunID(after[0])))
	}
	if len(q.Status) > 0 {
		codes := make([]int64, len(q.Status))
		for i, status := range q.Status {
			codes[i] = statusCodes[status]
		}
		list, err := json.Marshal(codes)
		if err != nil {
			return nil, "", fmt.Errorf("sqlite: list runs: %w", err)
		}
		and(`status in (select value from json_each(?))`, string(list))
	}
	if q.Definition != "" {
		and(`name = ?`, q.Definition)
	}
	if q.Key != "" {
		and(`key = ?`, q.Key)
	}
	size := store.PageSize(q.Limit)
	list, err := s.readRuns(ctx, which+` order by id desc limit ?`, append(args, int64(size+1))...)
	if err != nil || len(list) <= size {
		return list, "", err
	}
	list = list[:size]
	return list, store.Cursor(string(list[size-1].Key.Run)), nil
}

// readApproval reads step, requester, opened_at and body.
func readApproval(row cells) (ringi.ApprovalRow, error) {
	a := ringi.ApprovalRow{Step: row.text(0), Requester: row.text(1), OpenedAt: row.time(2)}
	if err := json.Unmarshal([]byte(row.text(3)), &a.Approval); err != nil {
		return a, &damaged{fmt.Sprintf("approval of step %s: %v", a.Step, err)}
	}
	return a, nil
}

func readIncident(body string) (in ringi.Incident, err error) {
	if err := json.Unmarshal([]byte(body), &in); err != nil {
		return in, &damaged{fmt.Sprintf("incident: %v", err)}
	}
	return in, nil
}

// place is where a row stands in a list that is ordered by time.
type place struct {
	at  int64
	run []byte
	sub string // the step, or the number of the incident
}

// parsePlace reads a cursor; the first page begins before everything.
func parsePlace(cursor string) (place, error) {
	parts, err := store.ParseCursor(cursor, 3)
	if err != nil || parts == nil {
		return place{at: -1 << 62, run: []byte{}}, err
	}
	at, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil {
		return place{}, store.BadCursor()
	}
	return place{at: at, run: blobOf(runBlob(ringi.RunID(parts[1]))), sub: parts[2]}, nil
}

// The lists of what waits for people. The definition's name stands in the run row.
const (
	textApprovals = `select a.step, a.requester, a.opened_at, a.body, a.run, (select name from run r where r.tenant = a.tenant and r.id = a.run)
		from approval a where a.tenant = ?1 and (?2 is null or a.run = ?2) and (a.opened_at, a.run, a.step) > (?3, ?4, ?5)
		order by a.opened_at, a.run, a.step limit ?6`
	textIncidents = `select i.body, i.run, (select name from run r where r.tenant = i.tenant and r.id = i.run)
		from incident i where i.tenant = ?1 and (?2 is null or i.run = ?2) and (i.since, i.run, i.id) > (?3, ?4, ?5)
		order by i.since, i.run, i.id limit ?6`
)

// runOrAll is a run id as an argument, null for every run.
func runOrAll(id ringi.RunID) any {
	if id == "" {
		return nil
	}
	return blobOf(runBlob(id))
}

// Approvals implements store.Records. With For it reads on until a page is
// full of approvals that the person may vote on.
func (s *Store) Approvals(ctx context.Context, q ringi.ApprovalQuery) ([]ringi.ApprovalView, string, error) {
	from, err := parsePlace(q.After)
	if err != nil {
		return nil, "", err
	}
	size := store.PageSize(q.Limit)
	var list []ringi.ApprovalView
	for now, read := s.now(), size+1; read == size+1 && len(list) <= size; {
		read = 0
		err := s.each(ctx, textApprovals, func(row cells) error {
			a, err := readApproval(row)
			if err != nil {
				return err
			}
			read++
			from = place{row.num(2), row.blob(4), a.Step}
			if q.For == nil || store.Votable(*q.For, a, now) {
				list = append(list, ringi.ApprovalView{
					Run: row.run(4), Step: a.Step, Definition: row.text(5), Requester: a.Requester, OpenedAt: a.OpenedAt, Approval: a.Approval,
				})
			}
			return nil
		}, int64(q.Tenant), runOrAll(q.Run), from.at, from.run, from.sub, int64(size+1))
		if err != nil {
			return nil, "", err
		}
	}
	if len(list) <= size {
		return list, "", nil
	}
	last := list[size-1]
	return list[:size], store.Cursor(text(last.OpenedAt), string(last.Run), last.Step), nil
}

// Incidents implements store.Records.
func (s *Store) Incidents(ctx context.Context, q ringi.IncidentQuery) ([]ringi.IncidentView, string, error) {
	from, err := parsePlace(q.After)
	if err != nil {
		return nil, "", err
	}
	var id int64
	if from.sub != "" {
		if id, err = strconv.ParseInt(from.sub, 10, 64); err != nil {
			return nil, "", store.BadCursor()
		}
	}
	size := store.PageSize(q.Limit)
	var list []ringi.IncidentView
	err = s.each(ctx, textIncidents, func(row cells) error {
		in, err := readIncident(row.text(0))
		list = append(list, ringi.IncidentView{Run: row.run(1), Definition: row.text(2), Incident: in})
		return err
	}, int64(q.Tenant), runOrAll(q.Run), from.at, from.run, id, int64(size+1))
	if err != nil || len(list) <= size {
		return list, "", err
	}
	last := list[size-1]
	return list[:size], store.Cursor(text(last.Since), string(last.Run), strconv.FormatInt(last.ID, 10)), nil
}

func text(t time.Time) string { return strconv.FormatInt(micro(t), 10) }

// textQueues measures the queues of a tenant, or of all with 0.
const textQueues = `select queue, count(*) filter (where state = 0 and held = 0 and ready_at <= ?2), count(*) filter (where state = 1),
	min(ready_at) filter (where state = 0 and held = 0 and ready_at <= ?2), count(*) filter (where lapsed >= ?3)
	from task where ?1 = 0 or tenant = ?1 group by queue order by queue`

// Queues implements store.Records.
func (s *Store) Queues(ctx context.Context, tenant ringi.Tenant, now time.Time) ([]ringi.QueueView, error) {
	list := []ringi.QueueView{}
	err := s.each(ctx, textQueues, func(row cells) error {
		q := ringi.QueueView{Queue: row.text(0), Ready: int(row.num(1)), Leased: int(row.num(2)), Lapsed: int(row.num(4))}
		if q.Ready > 0 {
			q.OldestMS = now.Sub(row.time(3)).Milliseconds()
		}
		list = append(list, q)
		return nil
	}, int64(tenant), micro(now), int64(store.LapsedOften))
	return list, err
}
