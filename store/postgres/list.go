package postgres

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

// runColumns are what readRuns reads; the tasks are counted in the same read.
const runColumns = `select r.tenant, r.id, r.name, r.version, r.digest, r.key, r.input_digest, r.requester, r.title, r.labels::text, r.started_at, r.repair_of,
	r.status, r.waits_for, r.waits_step, r.ended_at, t.ready, t.leased from run r
	cross join lateral (select count(*) filter (where state = 0) as ready, count(*) filter (where state = 1) as leased
		from task t where t.tenant = r.tenant and t.run = r.id) t`

// readRuns reads list rows; the text says which, and in what order. Of a row
// that cannot be read whole the rest is returned, and it is named.
func (s *Store) readRuns(ctx context.Context, which string, a args) (list []store.RunRecord, bad []store.BadRow, err error) {
	err = s.list(ctx, runColumns+which, a, func(row cells) error {
		r, err := readRun(row)
		if err != nil {
			bad = append(bad, store.BadRow{Key: r.Key, Table: "list", Err: err})
		}
		list = append(list, r)
		return nil
	})
	return list, bad, err
}

// readRun reads a row of runColumns.
func readRun(row cells) (store.RunRecord, error) {
	r := store.RunRecord{
		Key: row.key(0),
		StartRow: store.StartRow{
			Definition: row.text(2), Version: int(row.num(3)), Digest: row.text(4), StartKey: row.text(5),
			InputDigest: row.text(6), Requester: row.text(7), Title: row.text(8), StartedAt: row.time(10), RepairOf: row.run(11),
			RunRow: ringi.RunRow{Status: statusOf(row.num(12)), WaitsFor: row.text(13), WaitsStep: row.text(14), EndedAt: row.time(15)},
		},
		TasksReady: int(row.num(16)), TasksLeased: int(row.num(17)),
	}
	if !row.null(9) {
		if err := json.Unmarshal(row[9], &r.Labels); err != nil {
			r.Labels = nil
			return r, fmt.Errorf("labels: %w", err)
		}
	}
	switch {
	case r.Status == "":
		return r, fmt.Errorf("there is no status %d", row.num(12))
	case !row.null(5) && r.StartKey == "":
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

// textRunOf reads one run.
const textRunOf = ` where r.tenant = $1::bigint and r.id = $2::uuid`

// Run implements store.Records.
func (s *Store) Run(ctx context.Context, key store.Key) (store.RunRecord, error) {
	var a args
	a.int(int64(key.Tenant))
	a.run(key.Run)
	list, bad, err := s.readRuns(ctx, textRunOf, a)
	if err != nil {
		return store.RunRecord{}, err
	}
	if len(list) == 0 {
		return store.RunRecord{}, store.ErrNotFound
	}
	return list[0], unreadable(bad)
}

// Runs implements store.Records.
func (s *Store) Runs(ctx context.Context, q ringi.RunQuery) ([]store.RunRecord, string, error) {
	after, err := store.ParseCursor(q.After, 1)
	if err != nil {
		return nil, "", err
	}
	var a args
	size := store.PageSize(q.Limit)
	a.int(int64(q.Tenant))
	a.int(int64(size + 1))
	which := ` where r.tenant = $1::bigint`
	and := func(text string) { which += fmt.Sprintf(` and `+text, len(a.values)) }
	if after != nil {
		a.run(ringi.RunID(after[0]))
		and(`r.id < $%d::uuid`)
	}
	if len(q.Status) > 0 {
		codes := ints()
		for _, status := range q.Status {
			codes.int(statusCodes[status])
		}
		a.list(codes)
		and(`r.status = any($%d::bigint[])`)
	}
	if q.Definition != "" {
		a.text(q.Definition)
		and(`r.name = $%d::text`)
	}
	if q.Key != "" {
		a.text(q.Key)
		and(`r.key = $%d::text`)
	}
	list, bad, err := s.readRuns(ctx, which+` order by r.id desc limit $2::bigint`, a)
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
	err := json.Unmarshal(row[3], &a.Approval)
	return a, err
}

// readIncident reads id, since and body. The columns, which lists are ordered
// by, must say what the body says.
func readIncident(row cells) (ringi.Incident, error) {
	var in ringi.Incident
	err := json.Unmarshal(row[2], &in)
	if id, since := row.num(0), row.time(1); err == nil && (in.ID != id || !in.Since.Equal(since)) {
		err = fmt.Errorf("the columns say id %d since %s, the body id %d since %s", id, since.Format(time.RFC3339Nano), in.ID, in.Since.Format(time.RFC3339Nano))
	}
	return in, err
}

// listPlace is where a row stands in a list that is ordered by time.
type listPlace struct {
	at  time.Time
	run ringi.RunID
	sub string // the step, or the number of the incident
}

// firstRun is before every run id.
const firstRun = "00000000-0000-0000-0000-000000000000"

// parsePlace reads a cursor; the first page begins before everything.
func parsePlace(cursor string) (listPlace, error) {
	parts, err := store.ParseCursor(cursor, 3)
	if err != nil || parts == nil {
		return listPlace{at: beginning, run: firstRun}, err
	}
	at, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil {
		return listPlace{}, store.BadCursor()
	}
	return listPlace{at: time.UnixMicro(at).UTC(), run: ringi.RunID(parts[1]), sub: parts[2]}, nil
}

func (p listPlace) cursor() string {
	return store.Cursor(strconv.FormatInt(p.at.UnixMicro(), 10), string(p.run), p.sub)
}

// The lists of what waits for people. The definition's name stands in the run row.
const (
	textApprovals statement = `select a.step, a.requester, a.opened_at, a.body, a.run,
			(select name from run r where r.tenant = a.tenant and r.id = a.run), clock_timestamp()
		from approval a where a.tenant = $1::bigint and (a.opened_at, a.run, a.step) > ($2::timestamptz, $3::uuid, $4::text)
		and ($5::bool or a.run = $6::uuid) order by a.opened_at, a.run, a.step limit $7::bigint`
	textIncidents statement = `select i.id, i.since, i.body, i.run, (select name from run r where r.tenant = i.tenant and r.id = i.run)
		from incident i where i.tenant = $1::bigint and (i.since, i.run, i.id) > ($2::timestamptz, $3::uuid, $4::bigint)
		and ($5::bool or i.run = $6::uuid) order by i.since, i.run, i.id limit $7::bigint`
)

// ofRun adds a run id as an argument, and before it whether every run will do.
func (a *args) ofRun(id ringi.RunID) {
	all := byte(0)
	if id == "" {
		all = 1
	}
	a.add(oidBool, []byte{all})
	a.run(id)
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
	for read := size + 1; read == size+1 && len(list) <= size; {
		read = 0
		c := &call{statement: textApprovals, row: func(row cells) error {
			read++
			from = listPlace{row.time(2), row.run(4), row.text(0)}
			a, err := readApproval(row)
			switch {
			case err != nil:
				bad = append(bad, store.BadRow{Key: store.Key{Tenant: q.Tenant, Run: row.run(4)}, Table: "approval", Row: a.Step, Err: err})
			case q.For == nil || store.Votable(*q.For, a, row.time(6)):
				list = append(list, ringi.ApprovalView{
					Run: row.run(4), Step: a.Step, Definition: row.text(5), Requester: a.Requester, OpenedAt: a.OpenedAt, Approval: a.Approval,
				})
			}
			return nil
		}}
		c.int(int64(q.Tenant))
		c.time(from.at)
		c.run(from.run)
		c.text(from.sub)
		c.ofRun(q.Run)
		c.int(int64(size + 1))
		if err := s.read(ctx, c); err != nil {
			return nil, "", err
		}
	}
	if len(list) <= size {
		return list, "", unreadable(bad)
	}
	last := list[size-1]
	return list[:size], listPlace{last.OpenedAt, last.Run, last.Step}.cursor(), unreadable(bad)
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
		c := &call{statement: textIncidents, row: func(row cells) error {
			read++
			id = row.num(0)
			from = listPlace{at: row.time(1), run: row.run(3)}
			in, err := readIncident(row)
			if err != nil {
				bad = append(bad, store.BadRow{
					Key: store.Key{Tenant: q.Tenant, Run: row.run(3)}, Table: "incident", Row: strconv.FormatInt(id, 10), Err: err,
				})
				return nil
			}
			list = append(list, ringi.IncidentView{Run: row.run(3), Definition: row.text(4), Incident: in})
			return nil
		}}
		c.int(int64(q.Tenant))
		c.time(from.at)
		c.run(from.run)
		c.int(id)
		c.ofRun(q.Run)
		c.int(int64(size + 1))
		if err := s.read(ctx, c); err != nil {
			return nil, "", err
		}
	}
	if len(list) <= size {
		return list, "", unreadable(bad)
	}
	last := list[size-1]
	return list[:size], listPlace{last.Since, last.Run, strconv.FormatInt(last.ID, 10)}.cursor(), unreadable(bad)
}

// textQueues measures the queues of a tenant, or of all with 0.
const textQueues statement = `select queue, count(*) filter (where state = 0 and held = 0 and ready_at <= $2::timestamptz), count(*) filter (where state = 1),
	min(ready_at) filter (where state = 0 and held = 0 and ready_at <= $2::timestamptz), count(*) filter (where lapsed >= $3::bigint)
	from task where $1::bigint = 0 or tenant = $1::bigint group by queue order by queue`

// Queues implements store.Records.
func (s *Store) Queues(ctx context.Context, tenant ringi.Tenant, now time.Time) ([]ringi.QueueView, error) {
	list := []ringi.QueueView{}
	c := &call{statement: textQueues, row: func(row cells) error {
		q := ringi.QueueView{Queue: row.text(0), Ready: int(row.num(1)), Leased: int(row.num(2)), Lapsed: int(row.num(4))}
		if q.Ready > 0 {
			q.OldestMS = now.Sub(row.time(3)).Milliseconds()
		}
		list = append(list, q)
		return nil
	}}
	c.int(int64(tenant))
	c.time(now)
	c.int(store.LapsedOften)
	err := s.read(ctx, c)
	return list, err
}
