package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

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
// with the incident that says so.
func (r *reader) Run(ctx context.Context, tenant ringi.Tenant, run ringi.RunID) (ringi.RunView, error) {
	key := store.Key{Tenant: tenantOr(tenant), Run: run}
	if _, ok := store.RunBytes(run); !ok {
		return ringi.RunView{}, noRun(run)
	}
	row, err := r.Records.Run(ctx, key)
	if errors.Is(err, store.ErrNotFound) {
		return ringi.RunView{}, noRun(run)
	}
	if r.reach.note(ctx, err) != nil {
		return ringi.RunView{}, storeFault(err)
	}
	loaded, err := r.Store.Load(ctx, key)
	if r.reach.note(ctx, err) != nil {
		return ringi.RunView{}, storeFault(err)
	}
	s, err := r.restore(ctx, loaded[0], key)
	var broken *brokenRun
	if errors.As(err, &broken) {
		r.log.Error("a run cannot be read", "tenant", int64(key.Tenant), "run", string(run), "err", err)
		return corruptView(row, err), nil
	}
	if err != nil {
		return ringi.RunView{}, storeFault(err)
	}
	if s.state.Seq == 0 {
		return ringi.RunView{}, noRun(run)
	}
	v := s.state.View()
	if v.Status == ringi.Running && row.TasksReady > 0 && row.TasksLeased == 0 {
		v.WaitingFor = waitsForWorker
	}
	return v, nil
}

// waitsForWorker is what a run waits for whose tasks nobody holds. It is read
// from the task rows, not written.
const waitsForWorker = "worker"

func corruptView(row store.RunRecord, err error) ringi.RunView {
	return ringi.RunView{
		RunSummary: summary(row), Steps: []ringi.StepView{}, EffectsLeft: []string{}, RepairOf: row.RepairOf,
		Incidents: []ringi.Incident{{
			Kind: ringi.IncidentCorrupt, Since: row.StartedAt, Allowed: []ringi.Resolution{},
			Message: whyAlone(err),
		}},
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
	if r.reach.note(ctx, err) != nil {
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
		if err != nil {
			return ringi.HistoryPage{}, storeFault(err)
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
	if r.reach.note(ctx, err) != nil {
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
	if r.reach.note(ctx, err) != nil {
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
	case ringi.IncidentQuery:
		q.Tenant = tenantOr(q.Tenant)
		page.Incidents, page.Next, err = r.Records.Incidents(ctx, q)
		if err == nil && q.After == "" { // what no row could say
			page.Incidents = append(r.sick.incidents(q.Tenant, q.Run), page.Incidents...)
		}
	case ringi.DefinitionQuery:
		page, err = r.definitions(ctx, q)
	case ringi.WorkerQuery:
		page, err = r.queues(ctx, q)
	default:
		return page, &ringi.Error{Code: ringi.CodeInvalid, Message: fmt.Sprintf("there is no list for %T", q)}
	}
	if r.reach.note(ctx, err) != nil {
		return ringi.Page{}, storeFault(err)
	}
	return page, nil
}

func (r *reader) runs(ctx context.Context, q ringi.RunQuery) (page ringi.Page, err error) {
	q.Tenant = tenantOr(q.Tenant)
	rows, next, err := r.Records.Runs(ctx, q)
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

// queues joins the depth of the queues, from the store, with the workers that
// this node saw. A queue that is only polled is shown too.
func (r *reader) queues(ctx context.Context, q ringi.WorkerQuery) (page ringi.Page, err error) {
	tenant := tenantOr(q.Tenant)
	if err := r.touch(ctx); err != nil {
		return page, err
	}
	now := r.clock.now()
	page.Queues, err = r.Records.Queues(ctx, tenant, now)
	if err != nil {
		return page, err
	}
	r.dispatch.mu.Lock()
	defer r.dispatch.mu.Unlock()
	known := map[string]bool{}
	for i := range page.Queues {
		v := &page.Queues[i]
		v.Workers = r.dispatch.seen.queue(tenant, v.Queue, now)
		known[v.Queue] = true
	}
	for _, name := range r.dispatch.seen.queues(tenant, now) {
		if !known[name] {
			page.Queues = append(page.Queues, ringi.QueueView{Queue: name, Workers: r.dispatch.seen.queue(tenant, name, now)})
		}
	}
	return page, nil
}
