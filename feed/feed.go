package feed

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ringiflow/ringi/inbox"
	"github.com/ringiflow/ringi/outbox"
)

const (
	// groupPrefix is how the groups of feeds begin that name none.
	groupPrefix = "ringi-"
)

// Config says what is fed. Definitions, DB and Sink are needed.
type Config struct {
	Definitions []Definition

	// DB is where messages are set aside; OpenBox opens it.
	DB *sql.DB

	// Sink is ringi, as relay.Runs makes it: it answers nil when what became of a
	// message has committed.
	Sink outbox.Sink

	// Path finds a file that a source names; nil takes the name as it is.
	Path func(name string) string

	// Observe, if set, is told what became of every delivery, from several goroutines;
	// it must not block. A message that is passed over is Handled.
	Observe func(feed string, d inbox.Delivery, outcome inbox.Outcome, err error)

	// Trouble, if set, is told of every error of a broker, from several goroutines; it
	// must not block.
	Trouble func(feed string, err error)

	// PauseFirst and PauseMost are the pauses after a failure; 0 means those of inbox.
	PauseFirst, PauseMost time.Duration

	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Feeds are the feeds of one process. Safe for concurrent use, but for Run, which is
// called once.
type Feeds struct {
	cfg   Config
	feeds map[string]*one
}

// one is one feed.
type one struct {
	Definition
	box    *inbox.Consumer
	sink   outbox.Sink
	source *Source
}

// New returns feeds that have opened nothing yet.
func New(c Config) (*Feeds, error) {
	if c.DB == nil || c.Sink == nil || len(c.Definitions) == 0 {
		return nil, errors.New("feed: Definitions, DB and Sink are needed; set them in the Config")
	}
	if c.Observe == nil {
		c.Observe = func(string, inbox.Delivery, inbox.Outcome, error) {}
	}
	if c.Trouble == nil {
		c.Trouble = func(string, error) {}
	}
	if c.PauseFirst <= 0 {
		c.PauseFirst = inbox.DefaultPauseFirst
	}
	if c.PauseMost <= 0 {
		c.PauseMost = inbox.DefaultPauseMost
	}
	f := &Feeds{cfg: c, feeds: map[string]*one{}}
	for _, d := range c.Definitions {
		if d.rule == nil {
			return nil, fmt.Errorf("feed: the definition of %q was not read by Parse", d.Name)
		}
		o := &one{Definition: d, sink: c.Sink}
		var err error
		if o.box, err = inbox.NewConsumer(inbox.Config{DB: c.DB, Name: boxPrefix + d.Name, Attempts: d.attempts(), Now: c.Now}); err != nil {
			return nil, err
		}
		f.feeds[d.Name] = o
	}
	return f, nil
}

// Open opens the sources, for Run. A broker that is down is waited for by Run. When one
// cannot be opened, Close gives back the others.
func (f *Feeds) Open() error {
	for _, d := range f.cfg.Definitions {
		o := f.feeds[d.Name]
		var err error
		o.source, err = Opener{Group: groupPrefix + d.Name, Path: f.cfg.Path, Receiver: inbox.Receiver{
			Receive: o.receive, PauseFirst: f.cfg.PauseFirst, PauseMost: f.cfg.PauseMost,
			Observe: func(d inbox.Delivery, outcome inbox.Outcome, err error) { f.cfg.Observe(o.Name, d, outcome, err) },
			Trouble: func(err error) { f.cfg.Trouble(o.Name, err) },
		}}.Open(d.From)
		if err != nil {
			return fmt.Errorf("feed %s: %w", d.Name, err)
		}
	}
	return nil
}

// Names are the feeds by name, with their sources, which Open has opened.
func (f *Feeds) Names() map[string]string {
	names := map[string]string{}
	for name, o := range f.feeds {
		names[name] = o.source.Name
	}
	return names
}

// Run feeds, after Open, until ctx ends and then returns nil. A message under way is finished or
// comes again.
func (f *Feeds) Run(ctx context.Context) error {
	var running sync.WaitGroup
	for _, o := range f.feeds {
		running.Go(func() { _ = o.source.Run(ctx) }) // it returns nil
	}
	running.Wait()
	return nil
}

// Close ends the connections. Call it when Run has returned.
func (f *Feeds) Close() error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(f.feeds)) {
		if s := f.feeds[name].source; s != nil {
			errs = append(errs, s.Close())
		}
	}
	return errors.Join(errs...)
}

// Receive gives one delivery to ringi by the rule of a feed, as its source does.
func (f *Feeds) Receive(ctx context.Context, feed string, d inbox.Delivery) (inbox.Outcome, error) {
	o := f.feeds[feed]
	if o == nil {
		return inbox.Failed, ErrNoFeed
	}
	return o.receive(ctx, d)
}

// receive gives one delivery to ringi.
func (o *one) receive(ctx context.Context, d inbox.Delivery) (inbox.Outcome, error) {
	if !inbox.Usable(d.ID) { // it is set aside under what it is, unless the rule knows an id
		sum := sha256.Sum256(d.Body)
		m, passed, err := o.rule.apply(d)
		if passed {
			return inbox.Handled, nil
		}
		if d.ID = "sha256:" + hex.EncodeToString(sum[:]); err == nil {
			d.ID = m.ID
		}
		return o.box.Guard(ctx, d, func(ctx context.Context) error { return o.give(ctx, m, err) })
	}
	return o.box.Guard(ctx, d, func(ctx context.Context) error {
		m, passed, err := o.rule.apply(d)
		if passed {
			return nil
		}
		return o.give(ctx, m, err)
	})
}

// give sends a message to ringi, unless its rule could make nothing of it.
func (o *one) give(ctx context.Context, m outbox.Message, wrong error) error {
	if wrong != nil {
		return inbox.Refuse(wrong)
	}
	err := o.sink.Publish(ctx, []outbox.Message{m})[0]
	if err == nil || outbox.Refused(err) || outbox.Blamed(err) {
		return err // what ringi refuses now it may take later, when a definition is there
	}
	return inbox.Excuse(err)
}

// ErrNoFeed says that no feed has this name.
var ErrNoFeed = errors.New("feed: there is no feed of this name in the file")

// Retry gives a message that was set aside to ringi again; if it fails, the message
// stays where it is.
func (f *Feeds) Retry(ctx context.Context, feed, id string) error {
	o := f.feeds[feed]
	if o == nil {
		return ErrNoFeed
	}
	_, err := o.box.Retry(ctx, id, func(ctx context.Context, _ *sql.Tx, p inbox.Poison) error {
		m, passed, err := o.rule.apply(p.Delivery)
		if passed {
			return nil
		}
		return o.give(ctx, m, err)
	})
	return err
}
