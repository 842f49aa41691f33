package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/access"
	"github.com/ringiflow/ringi/api"
	"github.com/ringiflow/ringi/cmd/ringi/cli"
	"github.com/ringiflow/ringi/cmd/ringi/delivery"
	"github.com/ringiflow/ringi/engine"
	"github.com/ringiflow/ringi/feed"
	"github.com/ringiflow/ringi/metric"
	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/relay"
	"github.com/ringiflow/ringi/worker/httpstep"
)

const (
	// idleTime is how long a kept connection may be silent; longer than the
	// pauses of a worker that polls.
	idleTime = 2 * time.Minute
	// answerTime bounds a whole request: the longest poll and as much again.
	answerTime = time.Minute
	// commandTime is how long a caller waits for a commit, which takes
	// milliseconds: one that is in doubt may take until the disk is back.
	commandTime = 10 * time.Second
)

// NodeConfig is what a server is made of.
type NodeConfig struct {
	Database string // path, or what the files beside a PostgreSQL database begin with
	Postgres string // URL; "" is SQLite
	Listen   string
	Keys     string    // path
	Own      []MadeKey // those that the server makes itself, and their lines in keys; none when keys are configured
	Outbox   string    // a value of the setting; "" is a file beside the database
	Routes   string    // a value of the setting
	Feeds    bool      // whether it receives what the settings say from brokers
	Log      *slog.Logger
}

// A Node is a server: engine, API, metrics and relay on one database. What is
// opened here is closed when run returns.
type Node struct {
	NodeConfig
	p         *cli.Program
	store     Database
	Engine    *engine.Engine
	performer *httpstep.Performer
	server    *http.Server
	relays    *relay.Relays // nil when messages are not read
	sinks     []*relay.Sink
	log       *relay.Log   // nil unless messages are found in the write-ahead log
	feeds     *feed.Feeds  // nil without a file of them
	endFeeds  func() error // nil without feeds
	up        atomic.Bool  // workers can reach us
	leaving   atomic.Bool  // draining
}

// OpenNode opens everything. What another server may have open beside this
// database is written only once the database is ours: a server that is refused
// leaves nothing behind.
func OpenNode(ctx context.Context, p *cli.Program, c NodeConfig) (_ *Node, err error) {
	var keys *access.Keys
	if len(c.Own) == 0 { // a wrong file is found before anything is opened
		if keys, err = openKeys(c); err != nil {
			return nil, err
		}
	}
	n := &Node{NodeConfig: c, p: p}
	var sent messages
	if n.store, sent, err = openDatabase(ctx, c); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.close())
		}
	}()
	if len(c.Own) > 0 {
		if err = makeKeys(c.Keys, p.Now(), c.Own...); err != nil {
			return nil, err
		}
		if keys, err = openKeys(c); err != nil {
			return nil, err
		}
	}
	m := metric.New()
	routes, err := n.openRelay(sent, m)
	if err != nil {
		return nil, err
	}
	if n.performer, err = newPerformer(p); err != nil {
		return nil, err // it was checked
	}
	if n.Engine, err = engine.New(engine.Config{
		Store: &metric.Store{Store: n.store, Metrics: m, Routes: routes, Wrote: n.wake}, Probe: n.store.Probe, Locks: sent.locks,
		Records: n.store, Catalog: n.store, Events: n.store, Committers: n.store.Committers(), Fleet: sent.nodes, Version: cli.BuildOf().Version,
		Log: c.Log, Observer: m.Observer(), WorkersUp: n.up.Load, Later: n.performer.Later, Drain: cli.DrainTime, Quotas: p.Quotas(),
	}); err != nil {
		return nil, err
	}
	m.Registry.MustRegister(metric.NewDepths(n.store, p.Now))
	if err = n.openFeeds(ctx, m); err != nil {
		return nil, err
	}
	return n, n.makeServer(whoBy(keys), m)
}

// checkPlace refuses a path at which no database can be, with the part of it that
// is wrong.
func checkPlace(database string) error {
	if info, err := os.Stat(database); err == nil && info.IsDir() {
		return cli.Usage("name a file in it, as in sqlite:"+filepath.Join(database, "ringi.db"), "the database %s is a directory", database)
	}
	dir := filepath.Dir(database)
	switch info, err := os.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return cli.Usage("make it, or name a database elsewhere", "there is no directory %s for the database", dir)
	case err != nil:
		return cli.Usage("name a database elsewhere", "the directory of the database cannot be used: %v", err)
	case !info.IsDir():
		return cli.Usage("name a database elsewhere", "%s is no directory, so that no database can be in it", dir)
	}
	return nil
}

// openRelay opens the destinations of messages and the relays to them, and reads
// which messages go where.
func (n *Node) openRelay(sent messages, m *metric.Metrics) (outbox.Routes, error) {
	numbers := relay.NewMetrics(sent.source.Backlog, n.p.Now)
	m.Registry.MustRegister(numbers)
	if n.Outbox == cli.OutboxOff {
		return nil, nil
	}
	if n.Outbox == "" {
		n.Outbox = "file:" + n.Database + ".events.ndjson"
	}
	places, err := relay.ParsePlaces(n.Outbox)
	if err != nil {
		return nil, err // it was checked
	}
	routes, err := relay.ParseRoutes(n.Routes, places)
	if err != nil {
		return nil, cli.Usage("", "%v", err)
	}
	journal := &relay.Journal{Log: n.Log, Now: n.p.Now, Told: n.away}
	if n.log, err = delivery.OpenLog(n.p, n.databaseURL(), journal, numbers); err != nil {
		return nil, err
	}
	n.relays, n.sinks, err = delivery.OpenRelays(n.p, n.Outbox, outbox.RelayConfig{Source: sent.source, Fleet: sent.fleet, Feed: n.log.Feed()}, journal, numbers)
	return routes, err
}

// wake hints the relays that messages were written.
func (n *Node) wake() {
	if n.relays != nil {
		n.relays.Wake()
	}
}

// makeServer makes the HTTP server: the API, and /metrics behind the same guard.
func (n *Node) makeServer(who func(*http.Request) (api.Identity, error), m *metric.Metrics) error {
	public := n.p.Get(cli.SetPublicURL)
	calls, err := api.New(api.Config{
		Service: prompt{n.Engine}, Who: who, Ready: n.ready, PublicURL: public, Version: cli.BuildOf().Version,
		Failed: func(_ context.Context, route string, err error) {
			n.Log.Error("a request met a fault of ours", "route", route, "err", err)
		},
	})
	if err != nil {
		return err
	}
	numbers, err := api.Guard(public, m.Handler())
	if err != nil {
		return err
	}
	n.server = &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/metrics" {
				numbers.ServeHTTP(w, r)
				return
			}
			calls.ServeHTTP(w, r)
		}),
		ReadHeaderTimeout: cli.HeaderTime, ReadTimeout: answerTime, WriteTimeout: answerTime, IdleTimeout: idleTime,
		ErrorLog: slog.NewLogLogger(n.Log.Handler(), slog.LevelWarn),
	}
	return nil
}

// prompt is a service whose commands are answered in good time. What is not
// committed by then is unavailable, and may still be carried out: to send it
// again tells.
type prompt struct{ *engine.Engine }

// Do decides commands, within commandTime.
func (s prompt) Do(ctx context.Context, commands ...ringi.Command) []ringi.Result {
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	return s.Engine.Do(ctx, commands...)
}

// ready says why nothing can be answered durably now.
func (n *Node) ready(context.Context) error {
	if n.leaving.Load() {
		return errors.New("the server is shutting down")
	}
	return n.Engine.Ready()
}

// away reports whether the engine has said already why nothing works.
func (n *Node) away() bool { return n.Engine.Ready() != nil }

// Run serves until ctx ends, then drains. ready is called once with the URL
// when requests are answered. The parts beside run as long as the server, under
// a context that ends first; one that returns an error ends the server.
func (n *Node) Run(ctx context.Context, ready func(url string), beside ...func(context.Context) error) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", n.Listen)
	if err != nil {
		return errors.Join(fmt.Errorf("%w: choose another address with --listen", err), n.close())
	}
	n.Engine.Start()
	relayed := n.startRelay(ctx)
	served := make(chan error, 1)
	url := "http://" + listener.Addr().String()
	if cert := n.p.Get(cli.SetTLSCert); cert != "" {
		url = "https://" + listener.Addr().String()
		go func() { served <- n.server.ServeTLS(listener, n.p.Path(cert), n.p.Path(n.p.Get(cli.SetTLSKey))) }()
	} else {
		go func() { served <- n.server.Serve(listener) }()
	}
	n.up.Store(true)
	failed, leave := startBeside(ctx, append(beside, n.performHTTP, n.feed))
	ready(url)
	select {
	case <-ctx.Done():
	case err = <-served:
	case err = <-failed:
	}
	n.leaving.Store(true)
	n.up.Store(false)
	n.Log.Info("draining", "for at most", cli.DrainTime)
	leave()
	err = errors.Join(err, n.drain())
	relayed()
	return errors.Join(err, n.close())
}

// startBeside starts the parts. leave ends them and waits.
func startBeside(ctx context.Context, parts []func(context.Context) error) (failed <-chan error, leave func()) {
	ctx, stop := context.WithCancel(ctx)
	errs := make(chan error, len(parts))
	var running sync.WaitGroup
	for _, part := range parts {
		running.Go(func() {
			if err := part(ctx); err != nil && ctx.Err() == nil {
				errs <- err
			}
		})
	}
	return errs, func() {
		stop()
		running.Wait()
	}
}

// startRelay starts the relay. The returned function ends it and waits until it
// has marked what it delivered.
func (n *Node) startRelay(ctx context.Context) (stop func()) {
	if n.relays == nil {
		return func() {}
	}
	var running sync.WaitGroup
	running.Go(func() { relay.Announce(ctx, n.Log, n.sinks) })
	end := n.log.Begin(ctx)
	relaying, cancel := context.WithCancel(context.WithoutCancel(ctx))
	running.Go(func() { _ = n.relays.Run(relaying) }) // it returns nil; its troubles were observed
	return func() {
		end()
		cancel()
		running.Wait()
	}
}

// drain ends what is under way: the engine answers what it has taken in and
// lets polls go, the server waits for requests.
func (n *Node) drain() error {
	limit, cancel := context.WithTimeout(context.Background(), cli.DrainTime)
	defer cancel()
	closed := make(chan error, 1)
	go func() { closed <- n.Engine.Close() }()
	err := n.server.Shutdown(limit)
	if err != nil {
		n.Log.Warn("some requests did not end in time", "err", err)
		err = n.server.Close()
	}
	return errors.Join(err, <-closed)
}

// close gives back what openNode opened.
func (n *Node) close() error {
	errs := []error{relay.CloseAll(n.sinks), n.log.Close()}
	if n.endFeeds != nil {
		errs = append(errs, n.endFeeds())
	}
	if n.store != nil {
		errs = append(errs, n.store.Close())
	}
	return errors.Join(errs...)
}
