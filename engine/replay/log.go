package replay

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

// A replay is one run being folded. What stands beside its log was read in one
// moment, and the log, which only grows, is folded up to that moment.
type replay struct {
	*replayer
	key     store.Key
	have    store.Inspected
	state   *ringi.State
	heads   map[string]bool // of the chain, after each row
	commits map[store.CommitID]bool
	broken  bool // the log cannot be folded to its end
}

// mismatch names something that shows at the event where the fold stands.
func (p *replay) mismatch(what, detail string) { p.at(what, p.state.Seq, detail) }

func (p *replay) at(what string, seq int64, detail string) {
	p.replayer.mismatch(Mismatch{Run: p.key.Run, What: what, Seq: seq, Detail: detail})
}

// nothing reports whether no row of the run stands anywhere.
func (p *replay) nothing() bool {
	h := &p.have
	return h.Last == 0 && h.Run == nil && h.Snapshot == nil && len(h.Bad) == 0 &&
		len(h.Tasks)+len(h.Timers)+len(h.Waits)+len(h.Approvals)+len(h.Incidents) == 0
}

func (p *replay) compare(ctx context.Context) error {
	if err := p.foldLog(ctx); err != nil {
		return err
	}
	for _, b := range p.have.Bad {
		p.mismatch(b.Table, rowName(b.Table, b.Row)+" cannot be read: "+b.Err.Error())
	}
	if p.broken {
		return nil
	}
	if s := p.have.Snapshot; s != nil { // its event was never reached
		p.at("snapshot", s.Seq, fmt.Sprintf("it is of event %d, and the log ends at %d", s.Seq, p.state.Seq))
	}
	for _, head := range p.have.AuditHeads {
		if !p.heads[string(head)] {
			p.mismatch("log", "the audit trail names a state of the run that the log does not have: its end was cut off, or it was replaced")
		}
	}
	p.compareRows()
	if p.state.Seq == 0 {
		return nil
	}
	return p.compareDefinition(ctx)
}

// foldLog reads the log and checks its chain.
func (p *replay) foldLog(ctx context.Context) error {
	var head []byte
	for last := int64(0); last < p.have.Last; {
		rows, err := p.from.Log(ctx, p.key, p.state.Seq, logBytes)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			p.mismatch("log", fmt.Sprintf("the row of event %d cannot be reached", p.have.Last))
			p.broken = true
			return nil
		}
		for _, row := range rows {
			if row.First > p.have.Last {
				break // it was written meanwhile
			}
			if head = store.Chain(head, row.Body); !bytes.Equal(head, row.Head) {
				p.at("chain", row.First, "its bytes, or a row before it, are not those that were written")
				head = row.Head // so that one changed row is named once
			}
			p.heads[string(row.Head)] = true
			if !p.foldRow(row) {
				p.broken = true
				return nil
			}
			last = row.First
		}
	}
	return nil
}

// foldRow takes one row in; false when nothing behind it can be.
func (p *replay) foldRow(row store.LogRow) bool {
	events, err := ringi.DecodeEvents(row.First, row.Body)
	switch {
	case err != nil:
		p.replayer.mismatch(Mismatch{Run: p.key.Run, What: "log", Seq: row.First, Detail: err.Error(), Newer: errors.Is(err, ringi.ErrNewer)})
		return false
	case row.First != p.state.Seq+1:
		p.at("log", row.First, fmt.Sprintf("event %d is missing", p.state.Seq+1))
		return false
	case len(events) == 0:
		p.at("log", row.First, "a row without events")
		return false
	}
	p.checkRow(row, events)
	last := events[len(events)-1].Seq
	if s := p.have.Snapshot; s != nil && s.Seq >= row.First && s.Seq <= last {
		until := s.Seq - row.First + 1
		p.state, events = ringi.Fold(p.state, events[:until]...), events[until:]
		p.compareSnapshot(s)
		p.have.Snapshot = nil
	}
	p.state = ringi.Fold(p.state, events...)
	return true
}

// checkRow checks what stands in a row beside its bytes, and that time goes on.
func (p *replay) checkRow(row store.LogRow, events []ringi.Event) {
	at := p.state.At
	for _, e := range events {
		if e.At.Before(at) {
			p.at("log", e.Seq, "it is older than the event before it")
		}
		at = e.At
	}
	if last := events[len(events)-1].Seq; row.Last != last {
		p.at("log", row.First, fmt.Sprintf("the row says that it ends at event %d, its bytes end at %d", row.Last, last))
	}
	if row.Commit == (store.CommitID{}) {
		p.at("log", row.First, "the row has no commit id")
	} else if p.commits[row.Commit] {
		p.at("log", row.First, "the row has the commit id of another one")
	}
	if p.commits == nil {
		p.commits = map[store.CommitID]bool{}
	}
	p.commits[row.Commit] = true
}

// compareSnapshot compares the snapshot at its own sequence. One of an older
// format is only rebuilt by whoever reads it, and proves nothing.
func (p *replay) compareSnapshot(s *store.Snapshot) {
	switch want, err := ringi.EncodeState(p.state); {
	case s.Format < 1 || s.Format > ringi.Format:
		p.at("snapshot", s.Seq, fmt.Sprintf("there is no format %d", s.Format))
	case s.Format < ringi.Format:
	case err != nil:
		p.at("snapshot", s.Seq, err.Error())
	case !bytes.Equal(want, s.Body):
		p.at("snapshot", s.Seq, "it is not what the events add up to")
	}
}
