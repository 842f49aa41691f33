package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

const (
	// historyPage and longestHistory are the events of a page.
	historyPage    = 200
	longestHistory = 1000
	// historyBytes bounds a page of the log, in bytes of its rows.
	historyBytes = 1 << 20
)

// A reader answers from the store alone, never from what the committers hold
// in memory: what it shows is durable.
type reader struct{ *parts }

func noRun(run ringi.RunID) error {
	return &ringi.Error{
		Code: ringi.CodeNotFound, Message: fmt.Sprintf("there is no run %q", short(string(run))), Hint: "check the id with `ringi runs`",
	}
}

// Run folds the run's log. A run that cannot be read is shown by its list row,
// with the incident that says so; one that can be read, and beside whose log
// something cannot, has that incident too.
func (r *reader) Run(ctx context.Context, tenant ringi.Tenant, run ringi.RunID) (ringi.RunView, error) {
	key := store.Key{Tenant: tenantOr(tenant), Run: run}
	if _, ok := store.RunBytes(run); !ok {
		return ringi.RunView{}, noRun(run)
	}
	if err := r.touch(ctx); err != nil {
		return ringi.RunView{}, err
	}
	row, err := r.Records.Run(ctx, key)
	missing := errors.Is(err, store.ErrNotFound)
	if missing {
		row, err = store.RunRecord{Key: key}, nil
	}
	if r.reach.Note(ctx, r.leftOut(err)) != nil {
		return ringi.RunView{}, storeFault(err)
	}
	s, err := r.read(ctx, key)
	var broken *brokenRun
	switch {
	case errors.As(err, &broken):
		_ = r.runFault(key, err)
		return r.withSick(key, corruptView(row)), nil
	case err != nil:
		return ringi.RunView{}, storeFault(err)
	case s.state.Seq == 0 && missing:
		return ringi.RunView{}, noRun(run)
	case s.state.Seq == 0:
		_ = r.runFault(key, unreadRun(errors.New("it is in the list and has no log")))
		return r.withSick(key, corruptView(row)), nil
	case missing:
		_ = r.leftOut(missingRow(key))
	}
	for _, key := range r.sick.unsure(key.Tenant, run, 1) {
		if err := r.examine(ctx, key); err != nil {
			return ringi.RunView{}, storeFault(err)
		}
	}
	v := s.state.View()
	if v.Status == ringi.Running && row.TasksReady > 0 && row.TasksLeased == 0 {
		v.WaitingFor = waitsForWorker
	}
	return r.withSick(key, v), nil
}

// read folds a run and makes sure that it can go on: its definition must stand,
// as long as it has not ended.
func (r *reader) read(ctx context.Context, key store.Key) (*standing, error) {
	loaded, err := r.Store.Load(ctx, key)
	if r.reach.Note(ctx, err) != nil {
		return nil, err
	}
	s, err := r.restore(ctx, loaded[0], key)
	if err != nil || s.state.Seq == 0 || s.state.End != nil {
		return s, err
	}
	if _, err := r.catalog.pinned(ctx, s.state); err != nil {
		var broken *brokenRun
		if !errors.As(err, &broken) {
			return nil, err
		}
		_ = r.runFault(key, err) // it cannot go on, and all of it can be shown
	}
	return s, nil
}

// examine reads all of a run that may be unreadable, so that what the
// quarantine says of it holds now.
func (r *reader) examine(ctx context.Context, key store.Key) error {
	s, err := r.read(ctx, key)
	var broken *brokenRun
	if errors.As(err, &broken) {
		_ = r.runFault(key, err)
		return nil
	}
	if err != nil || s.state.Seq == 0 {
		return err
	}
	_, listed := r.Records.Run(ctx, key)
	_, rows := r.Records.Standing(ctx, key)
	sound := true
	for _, err := range []error{listed, rows} {
		var bad *store.Unreadable
		switch {
		case err == nil:
		case errors.Is(err, store.ErrNotFound):
			err, sound = missingRow(key), false
		case errors.As(err, &bad):
			sound = false
		}
		if r.reach.Note(ctx, r.leftOut(err)) != nil {
			return err
		}
	}
	if _, err := r.catalog.pinned(ctx, s.state); sound && (err == nil || s.state.End != nil) {
		r.sick.readable(key)
	}
	return nil
}

// missingRow is what is wrong with a run that has a log and no list row.
func missingRow(key store.Key) error {
	return &store.Unreadable{Rows: []store.BadRow{{Key: key, Table: "list", Err: errors.New("the row is missing")}}}
}

// withSick adds the incident of a sick run.
func (r *reader) withSick(key store.Key, v ringi.RunView) ringi.RunView {
	for _, in := range r.sick.incidents(key.Tenant, key.Run) {
		v.Incidents = append(v.Incidents, in.Incident)
	}
	return v
}

// waitsForWorker is what a run waits for whose tasks nobody holds. It is read
// from the task rows, not written.
const waitsForWorker = "worker"

func corruptView(row store.RunRecord) ringi.RunView {
	return ringi.RunView{
		RunSummary: summary(row), Steps: []ringi.StepView{}, EffectsLeft: []string{}, RepairOf: row.RepairOf,
	}
}

func summary(r store.RunRecord) ringi.RunSummary {
	s := ringi.RunSummary{
		Run: r.Key.Run, Definition: r.Definition, Version: r.Version, Key: r.StartKey, Title: r.Title,
		Status: r.Status, WaitingFor: r.WaitsFor, Requester: r.Requester, Labels: r.Labels,
		StartedAt: r.StartedAt, EndedAt: r.EndedAt,
	}
	if r.Status == ringi.Running && r.TasksReady > 0 && r.TasksLeased == 0 {
		s.WaitingFor = waitsForWorker
	}
	return s
}

// History reads a page of the log, bounded in events and in bytes.
func (r *reader) History(ctx context.Context, q ringi.HistoryQuery) (ringi.HistoryPage, error) {
	key := store.Key{Tenant: tenantOr(q.Tenant), Run: q.Run}
	if _, ok := store.RunBytes(q.Run); !ok {
		return ringi.HistoryPage{}, noRun(q.Run)
	}
	limit := q.Limit
	if limit <= 0 {
		limit = historyPage
	}
	limit = min(limit, longestHistory)
	rows, err := r.Records.Log(ctx, key, q.After, historyBytes)
	if r.reach.Note(ctx, err) != nil {
		return ringi.HistoryPage{}, storeFault(err)
	}
	if len(rows) == 0 {
		return r.emptyHistory(ctx, key)
	}
	page := ringi.HistoryPage{Events: []ringi.HistoryEvent{}}
	bytes := 0
	for _, row := range rows {
		bytes += len(row.Body)
		events, err := decode(row)
		if err != nil && len(page.Events) > 0 {
			page.Next = page.Events[len(page.Events)-1].Seq // what can be read first
			return page, nil
		}
		if err != nil {
			return ringi.HistoryPage{}, r.runFault(key, unreadRun(err))
		}
		for _, e := range events {
			if e.Seq <= q.After {
				continue
			}
			if len(page.Events) == limit {
				page.Next = page.Events[limit-1].Seq
				return page, nil
			}
			h, err := historyEvent(e)
			if err != nil {
				return ringi.HistoryPage{}, internalFault(err)
			}
			page.Events = append(page.Events, h)
		}
	}
	return r.nextPage(ctx, key, page, bytes)
}

func historyEvent(e ringi.Event) (ringi.HistoryEvent, error) {
	data, err := json.Marshal(e.Fact)
	return ringi.HistoryEvent{Seq: e.Seq, At: e.At, Kind: ringi.KindOf(e.Fact), Data: data}, err
}

// nextPage says whether the store cut the page because of its bytes.
func (r *reader) nextPage(ctx context.Context, key store.Key, page ringi.HistoryPage, bytes int) (ringi.HistoryPage, error) {
	if bytes < historyBytes || len(page.Events) == 0 {
		return page, nil
	}
	last := page.Events[len(page.Events)-1].Seq
	more, err := r.Records.Log(ctx, key, last, 1)
	if r.reach.Note(ctx, err) != nil {
		return ringi.HistoryPage{}, storeFault(err)
	}
	if len(more) > 0 {
		page.Next = last
	}
	return page, nil
}

func (r *reader) emptyHistory(ctx context.Context, key store.Key) (ringi.HistoryPage, error) {
	_, err := r.Records.Run(ctx, key)
	if errors.Is(err, store.ErrNotFound) {
		return ringi.HistoryPage{}, noRun(key.Run)
	}
	if r.reach.Note(ctx, err) != nil {
		return ringi.HistoryPage{}, storeFault(err)
	}
	return ringi.HistoryPage{Events: []ringi.HistoryEvent{}}, nil
}

// List reads a page of one noun.
func (r *reader) List(ctx context.Context, q ringi.Query) (page ringi.Page, err error) {
	switch q := q.(type) {
	case ringi.RunQuery:
		page, err = r.runs(ctx, q)
	case ringi.ApprovalQuery:
		q.Tenant = tenantOr(q.Tenant)
		page.Approvals, page.Next, err = r.Records.Approvals(ctx, q)
		err = r.leftOut(err)
	case ringi.IncidentQuery:
		page, err = r.incidents(ctx, q)
	case ringi.DefinitionQuery:
		page, err = r.definitions(ctx, q)
	case ringi.WorkerQuery:
		page, err = r.queues(ctx, q)
	default:
		return page, &ringi.Error{Code: ringi.CodeInvalid, Message: fmt.Sprintf("there is no list for %T", q)}
	}
	if r.reach.Note(ctx, err) != nil {
		return ringi.Page{}, storeFault(err)
	}
	return page, nil
}

// mostExamined bounds how many sick runs one look at the list reads again.
const mostExamined = 20

// incidents lists those that stand in the store, and before them the runs whose
// trouble no row could say: all that this node knows of, or of the one run that
// was asked for what reading it tells.
func (r *reader) incidents(ctx context.Context, q ringi.IncidentQuery) (page ringi.Page, err error) {
	q.Tenant = tenantOr(q.Tenant)
	if err := r.touch(ctx); err != nil {
		return page, err
	}
	page.Incidents, page.Next, err = r.Records.Incidents(ctx, q)
	if err = r.leftOut(err); err != nil || q.After != "" {
		return page, err
	}
	again := r.sick.unsure(q.Tenant, q.Run, mostExamined)
	if _, ok := store.RunBytes(q.Run); ok && len(again) == 0 {
		again = []store.Key{{Tenant: q.Tenant, Run: q.Run}}
	}
	for _, key := range again {
		if err := r.examine(ctx, key); err != nil {
			return page, err
		}
	}
	page.Incidents = append(r.sick.incidents(q.Tenant, q.Run), page.Incidents...)
	return page, nil
}

func (r *reader) runs(ctx context.Context, q ringi.RunQuery) (page ringi.Page, err error) {
	q.Tenant = tenantOr(q.Tenant)
	rows, next, err := r.Records.Runs(ctx, q)
	err = r.leftOut(err)
	page.Runs = make([]ringi.RunSummary, len(rows))
	for i, row := range rows {
		page.Runs[i] = summary(row)
	}
	page.Next = next
	return page, err
}

func (r *reader) definitions(ctx context.Context, q ringi.DefinitionQuery) (page ringi.Page, err error) {
	q.Tenant = tenantOr(q.Tenant)
	list, next, err := r.Catalog.Definitions(ctx, q)
	page.Definitions = make([]ringi.DefinitionView, len(list))
	for i, d := range list {
		page.Definitions[i] = ringi.DefinitionView{
			Name: d.Name, Version: d.Version, Digest: d.Digest, Description: d.Description, PublishedAt: d.PublishedAt,
		}
		if q.Name != "" {
			page.Definitions[i].Source = d.Source
		}
	}
	page.Next = next
	return page, err
}

// queues joins the depth of the queues with the workers that were seen lately. A
// queue that is only polled is shown too.
func (r *reader) queues(ctx context.Context, q ringi.WorkerQuery) (page ringi.Page, err error) {
	tenant := tenantOr(q.Tenant)
	if err := r.touch(ctx); err != nil {
		return page, err
	}
	now := r.clock.Now()
	if page.Queues, err = r.Records.Queues(ctx, tenant, now); err != nil {
		return page, err
	}
	workers, err := r.dispatch.workers(ctx, tenant, now)
	if err != nil {
		return page, err
	}
	for i := range page.Queues {
		v := &page.Queues[i]
		v.Workers = workers[v.Queue]
		delete(workers, v.Queue)
	}
	for _, name := range slices.Sorted(maps.Keys(workers)) {
		page.Queues = append(page.Queues, ringi.QueueView{Queue: name, Workers: workers[name]})
	}
	return page, nil
}
