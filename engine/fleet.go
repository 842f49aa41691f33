package engine

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

const (
	// meetEvery is how often a node says that it runs: often enough to miss
	// some meetings and still count as running.
	meetEvery = 5 * time.Second
	// leaveTime bounds the good-bye of a node; without one it counts as running
	// for store.SeenFor.
	leaveTime = 2 * time.Second
)

// A fleet is what a node knows of the others on its store: which format it may
// write, and whether the store was raised beyond what it reads. The numbers may
// be read at any time.
type fleet struct {
	*parts
	id string

	writes atomic.Int64 // the format that this node writes
	stores atomic.Int64 // the format that the store was raised to
	others atomic.Int64 // how many other nodes there are

	// For the rounds only.
	alone bool   // at the last meeting nobody read less than this node
	told  string // what was logged last
}

func newFleet(p *parts) *fleet {
	f := &fleet{parts: p}
	format := int64(ringi.FirstFormat)
	if p.Config.Fleet == nil { // nobody else can be there
		format = ringi.Format
	}
	f.writes.Store(format)
	f.stores.Store(format)
	return f
}

// Round says that this node runs, learns which format it may write, and raises
// that when all others read more. It does so only at the second meeting in a
// row that found all of them new enough: if the database's clock was set
// meanwhile, everybody who lives has met again in between.
func (f *fleet) Round(ctx context.Context) (worked bool, err error) {
	if f.Config.Fleet == nil {
		return false, nil
	}
	if f.id == "" {
		id := make([]byte, 16)
		if _, err := io.ReadFull(f.random, id); err != nil {
			return false, fmt.Errorf("engine: draw the id of this node: %w", err)
		}
		f.id = hex.EncodeToString(id)
	}
	met, err := f.Config.Fleet.Meet(ctx, store.Node{ID: f.id, Version: f.Version, Format: ringi.Format})
	if f.reach.Wrote(ctx, 0, err) != nil {
		return false, err
	}
	f.stores.Store(int64(met.Format))
	f.others.Store(int64(max(0, len(met.Nodes)-1)))
	f.writes.Store(int64(min(met.Format, ringi.Format)))
	least, who := ringi.Format, ""
	for _, n := range met.Nodes {
		if n.Format < least {
			least, who = n.Format, n.Version
		}
	}
	switch {
	case met.Format > ringi.Format:
		f.say(f.outdated().Error())
	case met.Format < ringi.Format && who != "":
		f.say(fmt.Sprintf("format %d is written until all nodes read more: one of version %s reads up to %d", met.Format, who, least))
	case met.Format > ringi.FirstFormat:
		f.say(fmt.Sprintf("format %d is written; older programs cannot read what is new", met.Format))
	}
	was := f.alone
	f.alone = who == ""
	if !was || least <= met.Format {
		return false, nil
	}
	return false, f.reach.Wrote(ctx, 0, f.Config.Fleet.Raise(ctx, least))
}

// say logs what is news.
func (f *fleet) say(text string) {
	if text != f.told {
		f.told = text
		f.log.Info(text)
	}
}

// outdated is why this node serves nothing, or nil: newer nodes write what it
// cannot read, and would find their tasks and timers claimed by it.
func (f *fleet) outdated() error {
	if have := f.stores.Load(); have > ringi.Format {
		return &ringi.Error{
			Code:    ringi.CodeUnavailable,
			Message: fmt.Sprintf("newer servers raised this database to format %d, and this server reads up to %d", have, ringi.Format),
			Hint:    "upgrade this server, or ask one that is",
		}
	}
	return nil
}

// unlessOutdated is a round that a node which reads too little leaves to others.
func (f *fleet) unlessOutdated(round func(context.Context) (bool, error)) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		if f.outdated() != nil {
			return false, nil
		}
		return round(ctx)
	}
}

// leave says good-bye, so that nobody waits for this node.
func (f *fleet) leave() {
	if f.Config.Fleet == nil || f.id == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaveTime)
	defer cancel()
	_ = f.Config.Fleet.Leave(ctx, f.id) // if this fails the node is forgotten after a minute
}
