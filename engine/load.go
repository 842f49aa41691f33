package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

func keyOf(cmd ringi.Command) store.Key { return store.Key{Tenant: cmd.Tenant, Run: cmd.Run} }

// load reads the runs of the batch that are neither cached nor new.
func (c *committer) load(ctx context.Context, reqs []*request) (map[store.Key]store.Loaded, error) {
	var keys []store.Key
	cold := map[store.Key]store.Loaded{}
	for _, r := range reqs {
		key := keyOf(r.cmd)
		if _, twice := cold[key]; twice || r.def != nil || c.known(r) != nil {
			continue
		}
		cold[key] = store.Loaded{}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return cold, nil
	}
	loaded, err := c.Store.Load(ctx, keys...)
	if c.reach.Note(ctx, err) != nil {
		return nil, err
	}
	for _, l := range loaded {
		cold[l.Key] = l
	}
	return cold, nil
}

// known is what the cache holds of the run of a request. A report of a task that
// was made later than that shows that another node went on with the run: to decide
// it on what is known would only lose the write.
func (c *committer) known(r *request) *standing {
	key := keyOf(r.cmd)
	s := c.cache.get(key)
	if s != nil && ringi.TokenSeq(tokenOf(r.cmd.Do)) > s.state.Seq {
		c.cache.drop(key)
		return nil
	}
	return s
}

// tokenOf is the token that a command names; 0 for none.
func tokenOf(do ringi.Action) int64 {
	switch do := do.(type) {
	case ringi.BeginActivity:
		return do.Token
	case ringi.CompleteActivity:
		return do.Token
	case ringi.FailActivity:
		return do.Token
	}
	return 0
}

// group finds the group that a request belongs to, or begins it. A start whose
// key an earlier start of the batch took belongs to that one's run.
func (c *committer) group(ctx context.Context, b *batch, r *request, cold map[store.Key]store.Loaded) (*group, error) {
	key := keyOf(r.cmd)
	start, isStart := r.cmd.Do.(ringi.Start)
	name := startName{tenant: r.cmd.Tenant, definition: start.Definition, key: start.Key}
	if isStart && start.Key != "" {
		if g := b.byStart[name]; g != nil && g.after.Seq > 0 {
			return g, nil
		}
	}
	g := b.byRun[key]
	if g == nil {
		var err error
		if g, err = c.begin(ctx, r, key, cold); err != nil {
			return nil, err
		}
		b.byRun[key] = g
		b.groups = append(b.groups, g)
	}
	if isStart && start.Key != "" && (r.cmd.Lost == nil || r.cmd.Lost.Holder == nil) {
		b.byStart[name] = g
	}
	return g, nil
}

func (c *committer) begin(ctx context.Context, r *request, key store.Key, cold map[store.Key]store.Loaded) (*group, error) {
	if err := c.sick.err(key, c.clock.Now()); err != nil {
		return nil, storeFault(err) // it is quarantined as long as it was, and no longer
	}
	if r.def != nil { // a start, of a run that nobody knows yet
		empty := newStanding(&ringi.State{Tenant: key.Tenant, Run: key.Run}, nil, 0)
		return &group{key: key, def: r.def, before: empty, after: empty.state}, nil
	}
	s := c.known(r)
	if s == nil {
		var err error
		if s, err = c.restore(ctx, cold[key], key); err != nil {
			return nil, err
		}
		if s.state.Seq > 0 {
			c.cache.put(key, s)
		}
	}
	g := &group{key: key, before: s, after: s.state}
	if s.state.Seq == 0 {
		return g, nil
	}
	def, err := c.catalog.pinned(ctx, s.state)
	if err != nil {
		return nil, err
	}
	g.def = def
	return g, nil
}

// restore makes the standing of a run from what was loaded. A snapshot only
// makes that faster: one of another format, or that cannot be used, is left
// aside and the log folded from its beginning. A run that cannot be read is a
// *brokenRun; any other error is the store's.
func (p *parts) restore(ctx context.Context, l store.Loaded, key store.Key) (*standing, error) {
	f := newFolding(key)
	err := l.Err
	if err == nil {
		err = f.take(l)
	}
	var bad *badSnapshot
	if errors.As(err, &bad) {
		p.log.Warn("a snapshot is left aside", "tenant", int64(key.Tenant), "run", string(key.Run), "err", err)
		return p.refold(ctx, key)
	}
	if err != nil {
		return nil, unreadRun(err)
	}
	return f.standing(), nil
}

// refoldBytes is how much of a log is read at a time, in bytes of its rows.
const refoldBytes = 4 << 20

// refold folds a log from its beginning.
func (p *parts) refold(ctx context.Context, key store.Key) (*standing, error) {
	f := newFolding(key)
	for {
		rows, err := p.Records.Log(ctx, key, f.state.Seq, refoldBytes)
		if p.reach.Note(ctx, err) != nil {
			return nil, err
		}
		if len(rows) == 0 {
			return f.standing(), nil
		}
		was := f.state.Seq
		if err := f.add(rows); err != nil {
			return nil, unreadRun(err)
		}
		if f.state.Seq == was {
			return nil, unreadRun(fmt.Errorf("the log row after event %d ends before it", was))
		}
	}
}

// A folding is a run whose log is being folded.
type folding struct {
	key   store.Key
	state *ringi.State
	head  []byte
	snap  int64
}

func newFolding(key store.Key) *folding {
	return &folding{key: key, state: &ringi.State{Tenant: key.Tenant, Run: key.Run}}
}

func (f *folding) standing() *standing { return newStanding(f.state, f.head, f.snap) }

// A badSnapshot is one that cannot be used. The log may be sound.
type badSnapshot struct{ err error }

func (b *badSnapshot) Error() string { return "the snapshot cannot be used: " + b.err.Error() }

// take folds what was loaded. Whatever goes wrong with a snapshot in it, apart
// from a log row that cannot be read, may be the snapshot's fault.
func (f *folding) take(l store.Loaded) error {
	if l.Snapshot == nil {
		return f.add(l.Rows)
	}
	s, err := stateOf(l.Snapshot, f.key)
	if err != nil {
		return &badSnapshot{err}
	}
	f.state, f.snap = s, l.Snapshot.Seq
	f.head = l.Head // stands also when the snapshot is at the end and no row follows
	err = f.add(l.Rows)
	var row *badRow
	if err != nil && !errors.As(err, &row) {
		return &badSnapshot{err}
	}
	return err
}

func stateOf(snap *store.Snapshot, key store.Key) (*ringi.State, error) {
	if snap.Format != ringi.Format {
		return nil, fmt.Errorf("it has format %d; this program uses format %d", snap.Format, ringi.Format)
	}
	s, err := ringi.DecodeState(snap.Body)
	if err == nil && (s.Tenant != key.Tenant || s.Run != key.Run || s.Seq != snap.Seq) {
		err = fmt.Errorf("it is of run %s of tenant %d at event %d, and stands for event %d", s.Run, s.Tenant, s.Seq, snap.Seq)
	}
	return s, err
}

// add folds log rows. Rows that end before the state are passed over.
func (f *folding) add(rows []store.LogRow) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("folding the log panicked: %v", p)
		}
	}()
	var tail []ringi.Event
	last := f.state.Seq
	for _, row := range rows {
		f.head = row.Head
		events, err := decode(row)
		if err != nil {
			return &badRow{err}
		}
		for _, e := range events {
			if e.Seq <= last {
				continue // the snapshot was taken inside this row's transition
			}
			if e.Seq != last+1 {
				return fmt.Errorf("the log goes from event %d to %d", last, e.Seq)
			}
			last = e.Seq
			tail = append(tail, e)
		}
	}
	f.state = ringi.Fold(f.state, tail...)
	return nil
}

// A badRow is a log row that cannot be read.
type badRow struct{ err error }

func (b *badRow) Error() string { return b.err.Error() }
func (b *badRow) Unwrap() error { return b.err }

// decode reads a log row. One of a newer format is refused by that name: the
// run is for a program that knows it.
func decode(row store.LogRow) ([]ringi.Event, error) {
	events, err := ringi.DecodeEvents(row.First, row.Body)
	var is struct {
		Format int `json:"format"`
	}
	if err == nil || json.Unmarshal(row.Body, &is) != nil || is.Format <= ringi.Format {
		return events, err
	}
	return nil, &ringi.Error{
		Code:    ringi.CodeUnavailable,
		Message: fmt.Sprintf("a newer ringi wrote to this run in format %d; this one reads up to format %d and leaves the run alone", is.Format, ringi.Format),
		Hint:    "upgrade this server, or ask one that is", Err: err,
	}
}
