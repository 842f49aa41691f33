// Package replay folds logs from their first event, believing nothing else, and
// compares what a store keeps beside them: snapshot, list row, tasks (what the
// log fixes of them, and that no sweep would come too late to them), timers,
// waits, approvals, incidents and the hash chain. It finds rows of runs that
// have no log, and definitions that are not what their digest says. What cannot
// be read is a mismatch like another one and holds up nothing. It may run
// beside a working engine.
//
// It cannot find that the last rows of a log are gone if they changed nothing
// beside it and no audit record names them: all that is left is what was true
// before. Nor does it look at what no log fixes: who holds a lease, sent
// events, messages and the audit trail.
package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

// A Store is what a replay reads. Nothing is written.
type Store interface {
	store.Records
	store.Catalog
	store.Inspector
}

// Query names what to fold again: one run, or with an empty Run all.
type Query struct {
	Tenant ringi.Tenant // 0 is the default tenant for a Run, else every tenant
	Run    ringi.RunID
	// Now is the database's time, which tells how late a sweep may look; zero
	// is the machine's.
	Now time.Time
	// Told is called after each run with the sum so far; it may be nil.
	Told func(Report)
}

// A Report is the outcome of a replay.
type Report struct {
	Runs       int        `json:"runs"`
	Events     int64      `json:"events"`
	Mismatches []Mismatch `json:"mismatches"`
}

// A Mismatch is something that stands beside the log and does not follow from
// it, or a log that does not hold together.
type Mismatch struct {
	Run    ringi.RunID `json:"run"`              // "" for a definition, and for a row that names no run
	What   string      `json:"what"`             // log, chain, snapshot, list, task, timer, wait, approval, incident, definition
	Seq    int64       `json:"seq"`              // the event where it shows; 0: there is no log
	Detail string      `json:"detail,omitempty"` // which row, and what is wrong with it
	Newer  bool        `json:"-"`                // nothing is wrong: it is for a newer program to read
}

// String is the mismatch on one line.
func (m Mismatch) String() string {
	text, err := json.Marshal(m)
	if err != nil {
		return fmt.Sprintf("%s: %s at %d", m.Run, m.What, m.Seq)
	}
	return string(text)
}

// logBytes bounds one read of the log.
const logBytes = 1 << 20

// Run replays. A run of which nothing stands is not_found; a store that cannot
// be read is unavailable.
func Run(ctx context.Context, from Store, q Query) (Report, error) {
	r := &replayer{from: from, now: q.Now, told: q.Told, versions: map[version]held{}}
	r.out.Mismatches = []Mismatch{}
	if r.now.IsZero() {
		r.now = time.Now()
	}
	if q.Run == "" {
		return r.out, away(r.all(ctx, q.Tenant))
	}
	found := false
	var err error
	if _, ok := store.RunBytes(q.Run); ok {
		found, err = r.run(ctx, store.Key{Tenant: tenantOr(q.Tenant), Run: q.Run})
	}
	if err == nil && !found {
		err = &ringi.Error{
			Code: ringi.CodeNotFound, Message: fmt.Sprintf("there is no run %q", q.Run), Hint: "check the id with `ringi runs`",
		}
	}
	return r.out, away(err)
}

// away makes an error of the store the refusal that callers know.
func away(err error) error {
	var refusal *ringi.Error
	if err == nil || errors.As(err, &refusal) {
		return err
	}
	return &ringi.Error{Code: ringi.CodeUnavailable, Message: "the store cannot be read", Hint: "see what is wrong with it, and try again", Err: err}
}

func tenantOr(t ringi.Tenant) ringi.Tenant {
	if t == 0 {
		return ringi.DefaultTenant
	}
	return t
}

// A replayer is one replay under way.
type replayer struct {
	from     Store
	now      time.Time
	told     func(Report)
	out      Report
	versions map[version]held
}

// mostStrays bounds how many rows of no run are named.
const mostStrays = 1000

// all replays every run of which a row stands in any table, of one tenant or
// with 0 of all, and checks every definition.
func (r *replayer) all(ctx context.Context, tenant ringi.Tenant) error {
	strays, err := r.from.Strays(ctx, mostStrays)
	if err != nil {
		return err
	}
	for _, b := range strays {
		if tenant == 0 || b.Key.Tenant == tenant {
			r.mismatch(Mismatch{What: b.Table, Detail: b.Err.Error()})
		}
	}
	tenants := []ringi.Tenant{tenantOr(tenant)}
	for after := (store.Key{}); ; {
		keys, err := r.from.Traces(ctx, after, store.LargestPage)
		if err != nil {
			return err
		}
		for _, key := range keys {
			if tenant != 0 && key.Tenant != tenant {
				continue
			}
			if key.Tenant != tenants[len(tenants)-1] {
				tenants = append(tenants, key.Tenant)
			}
			if _, err := r.run(ctx, key); err != nil {
				return err
			}
		}
		if len(keys) < store.LargestPage {
			break
		}
		after = keys[len(keys)-1]
	}
	for _, t := range tenants {
		if err := r.definitions(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

func (r *replayer) mismatch(m Mismatch) { r.out.Mismatches = append(r.out.Mismatches, m) }

// run replays one run; found is false when nothing of it stands.
func (r *replayer) run(ctx context.Context, key store.Key) (found bool, err error) {
	p := &replay{replayer: r, key: key, state: &ringi.State{Tenant: key.Tenant, Run: key.Run}, heads: map[string]bool{}}
	if p.have, err = r.from.Inspect(ctx, key); err != nil {
		return false, err
	}
	if p.nothing() {
		return false, nil
	}
	if err := p.compare(ctx); err != nil {
		return false, err
	}
	r.out.Runs++
	r.out.Events += p.state.Seq
	if r.told != nil {
		r.told(r.out)
	}
	return true, nil
}
