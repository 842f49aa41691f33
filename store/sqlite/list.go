package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

// textRunOf reads one run.
const textRunOf = ` where tenant = ? and id = ?`

// runColumns are what readRuns reads; the tasks are counted in the same read.
const runColumns = `select tenant, id, name, version, digest, key, input_digest, requester, title, labels, started_at, repair_of,
	status, waits_for, waits_step, ended_at,
	(select count(*) from task t where t.tenant = run.tenant and t.run = run.id and t.state = 0),
	(select count(*) from task t where t.tenant = run.tenant and t.run = run.id and t.state = 1) from run`

// readRuns reads list rows; the text says which, and in what order. Of a row
// that cannot be read whole the rest is returned, and it is named.
func (s *Store) readRuns(ctx context.Context, which string, args ...any) (list []store.RunRecord, bad []store.BadRow, err error) {
	err = s.each(ctx, runColumns+which, func(row cells) error {
		r, err := readRun(row)
		if err != nil {
			bad = append(bad, store.BadRow{Key: r.Key, Table: "list", Err: err})
		}
		list = append(list, r)
		return nil
	}, args...)
	return list, bad, err
}

// readRun reads a row of runColumns.
func readRun(row cells) (store.RunRecord, error) {
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
			r.Labels = nil
			return r, fmt.Errorf("labels: %w", err)
		}
	}
	switch {
	case r.Status == "":
		return r, fmt.Errorf("there is no status %d", row.num(12))
	case row[11] != nil && r.RepairOf == "":
		return r, errors.New("repair_of is no run id")
	case row[5] != nil && r.StartKey == "":
		return r, errors.New("the key is empty where it must be null")
	}
	return r, nil
}

// unreadable is the error beside an answer from which rows were left out.
func unreadable(bad []store.BadRow) error {
	if len(bad) == 0 {
		return nil
	}
	return &store.Unreadable{Rows: bad}
}

// Runs implements store.Records.
func (s *Store) Runs(ctx context.Context, q ringi.RunQuery) ([]store.RunRecord, string, error) {
	after, err := store.ParseCursor(q.After, 1)
	if err != nil {
		return nil, "", err
	}
	which, args := ` where tenant = ? and length(id) = 16`, []any{int64(q.Tenant)} // what is no run only replay can show
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
	list, bad, err := s.readRuns(ctx, which+` order by id desc limit ?`, append(args, int64(size+1))...)
	if err != nil {
		return nil, "", err
	}
	if len(list) <= size {
		return list, "", unreadable(bad)
	}
	list = list[:size]
	return list, store.Cursor(string(list[size-1].Key.Run)), unreadable(bad)
}

// readApproval reads step, requester, opened_at and body.
func readApproval(row cells) (ringi.ApprovalRow, error) {
	a := ringi.ApprovalRow{Step: row.text(0), Requester: row.text(1), OpenedAt: row.time(2)}
	err := json.Unmarshal([]byte(row.text(3)), &a.Approval)
	return a, err
}

// readIncident reads id, since and body. The columns, which lists are ordered
// by, must say what the body says.
func readIncident(row cells) (ringi.Incident, error) {
	var in ringi.Incident
	err := json.Unmarshal([]byte(row.text(2)), &in)
	if id, since := row.num(0), row.time(1); err == nil && (in.ID != id || !in.Since.Equal(since)) {
		err = fmt.Errorf("the columns say id %d since %s, the body id %d since %s", id, since.Format(time.RFC3339Nano), in.ID, in.Since.Format(time.RFC3339Nano))
	}
	return in, err
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
	textIncidents = `select i.id, i.since, i.body, i.run, (select name from run r where r.tenant = i.tenant and r.id = i.run)
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
	var bad []store.BadRow
	for now, read := s.now(), size+1; read == size+1 && len(list) <= size; {
		read = 0
		err := s.each(ctx, textApprovals, func(row cells) error {
			read++
			from = place{row.num(2), row.blob(4), row.text(0)}
			a, err := readApproval(row)
			switch {
			case err != nil:
				key := store.Key{Tenant: q.Tenant, Run: row.run(4)}
				bad = append(bad, store.BadRow{Key: key, Table: "approval", Row: a.Step, Err: err})
			case q.For == nil || store.Votable(*q.For, a, now):
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
		return list, "", unreadable(bad)
	}
	last := list[size-1]
	return list[:size], store.Cursor(text(last.OpenedAt), string(last.Run), last.Step), unreadable(bad)
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
	var bad []store.BadRow
	for read := size + 1; read == size+1 && len(list) <= size; {
		read = 0
		err = s.each(ctx, textIncidents, func(row cells) error {
			read++
			id = row.num(0)
			from = place{at: row.num(1), run: row.blob(3)}
			in, err := readIncident(row)
			if err != nil {
				key := store.Key{Tenant: q.Tenant, Run: row.run(3)}
				bad = append(bad, store.BadRow{Key: key, Table: "incident", Row: strconv.FormatInt(id, 10), Err: err})
				return nil
			}
			list = append(list, ringi.IncidentView{Run: row.run(3), Definition: row.text(4), Incident: in})
			return nil
		}, int64(q.Tenant), runOrAll(q.Run), from.at, from.run, id, int64(size+1))
		if err != nil {
			return nil, "", err
		}
	}
	if len(list) <= size {
		return list, "", unreadable(bad)
	}
	last := list[size-1]
	return list[:size], store.Cursor(text(last.Since), string(last.Run), strconv.FormatInt(last.ID, 10)), unreadable(bad)
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
