package main

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
	"github.com/ringiflow/ringi/engine"
	"github.com/ringiflow/ringi/metric"
	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/relay"
)

const (
	// drainTime is how long a server may take to end what is under way: what
	// orchestrators grant a process before they kill it.
	drainTime = 30 * time.Second
	// headerTime frees a connection on which no request comes.
	headerTime = 10 * time.Second
	// idleTime is how long a kept connection may be silent; longer than the
	// pauses of a worker that polls.
	idleTime = 2 * time.Minute
	// answerTime bounds a whole request: the longest poll and as much again.
	answerTime = time.Minute
	// commandTime is how long a caller waits for a commit, which takes
	// milliseconds: one that is in doubt may take until the disk is back.
	commandTime = 10 * time.Second
)

// Where messages go.
const (
	outboxStdout = "stdout"
	outboxOff    = "off" // nowhere: they wait
)

// nodeConfig is what a server is made of.
type nodeConfig struct {
	database string // path, or what the files beside a PostgreSQL database begin with
	postgres string // URL; "" is SQLite
	listen   string
	keys     string    // path
	own      []madeKey // those that the server makes itself, and their lines in keys; none when keys are configured
	outbox   string    // a value of the setting; "" is a file beside the database
	routes   string    // a value of the setting
	log      *slog.Logger
}

// A node is a server: engine, API, metrics and relay on one database. What is
// opened here is closed when run returns.
type node struct {
	nodeConfig
	p       *Program
	store   database
	engine  *engine.Engine
	server  *http.Server
	relays  *relay.Relays // nil when messages are not read
	sinks   []*relay.Sink
	up      atomic.Bool // workers can reach us
	leaving atomic.Bool // draining
}

// openNode opens everything. What another server may have open beside this
// database is written only once the database is ours: a server that is refused
// leaves nothing behind.
func (p *Program) openNode(ctx context.Context, c nodeConfig) (_ *node, err error) {
	var keys *access.Keys
	if len(c.own) == 0 { // a wrong file is found before anything is opened
		if keys, err = openKeys(c); err != nil {
			return nil, err
		}
	}
	n := &node{nodeConfig: c, p: p}
	var sent messages
	if n.store, sent, err = openDatabase(ctx, c); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.close())
		}
	}()
	if len(c.own) > 0 {
		if err = makeKeys(c.keys, p.Now(), c.own...); err != nil {
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
	if n.engine, err = engine.New(engine.Config{
		Store: &metric.Store{Store: n.store, Metrics: m, Routes: routes, Wrote: n.wake}, Probe: n.store.Probe,
		Records: n.store, Catalog: n.store, Events: n.store,
		Log: c.log, Observer: m.Observer(), WorkersUp: n.up.Load, Drain: drainTime,
	}); err != nil {
		return nil, err
	}
	m.Registry.MustRegister(metric.NewDepths(n.store, p.Now))
	return n, n.makeServer(whoBy(keys), m)
}

// checkPlace refuses a path at which no database can be, with the part of it that
// is wrong.
func checkPlace(database string) error {
	if info, err := os.Stat(database); err == nil && info.IsDir() {
		return usage("name a file in it, as in sqlite:"+filepath.Join(database, "ringi.db"), "the database %s is a directory", database)
	}
	dir := filepath.Dir(database)
	switch info, err := os.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return usage("make it, or name a database elsewhere", "there is no directory %s for the database", dir)
	case err != nil:
		return usage("name a database elsewhere", "the directory of the database cannot be used: %v", err)
	case !info.IsDir():
		return usage("name a database elsewhere", "%s is no directory, so that no database can be in it", dir)
	}
	return nil
}

// openRelay opens the destinations of messages and the relays to them, and reads
// which messages go where.
func (n *node) openRelay(sent messages, m *metric.Metrics) (outbox.Routes, error) {
	numbers := relay.NewMetrics(sent.source.Backlog, n.p.Now)
	m.Registry.MustRegister(numbers)
	if n.outbox == outboxOff {
		return nil, nil
	}
	if n.outbox == "" {
		n.outbox = "file:" + n.database + ".events.ndjson"
	}
	places, err := relay.ParsePlaces(n.outbox)
	if err != nil {
		return nil, err // it was checked
	}
	routes, err := relay.ParseRoutes(n.routes, places)
	if err != nil {
		return nil, usage("", "%v", err)
	}
	n.relays, n.sinks, err = n.p.openRelays(n.outbox, outbox.RelayConfig{Source: sent.source, Fleet: sent.fleet}, n.log, numbers)
	return routes, err
}

// wake hints the relays that messages were written.
func (n *node) wake() {
	if n.relays != nil {
		n.relays.Wake()
	}
}

// makeServer makes the HTTP server: the API, and /metrics behind the same guard.
func (n *node) makeServer(who func(*http.Request) (api.Identity, error), m *metric.Metrics) error {
	public := n.p.get(setPublicURL)
	calls, err := api.New(api.Config{
		Service: prompt{n.engine}, Who: who, Ready: n.ready, PublicURL: public, Version: buildOf().Version,
		Failed: func(_ context.Context, route string, err error) {
			n.log.Error("a request met a fault of ours", "route", route, "err", err)
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
		ReadHeaderTimeout: headerTime, ReadTimeout: answerTime, WriteTimeout: answerTime, IdleTimeout: idleTime,
		ErrorLog: slog.NewLogLogger(n.log.Handler(), slog.LevelWarn),
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
func (n *node) ready(context.Context) error {
	if n.leaving.Load() {
		return errors.New("the server is shutting down")
	}
	return n.engine.Ready()
}

// run serves until ctx ends, then drains. ready is called once with the URL
// when requests are answered. The parts beside run as long as the server, under
// a context that ends first; one that returns an error ends the server.
func (n *node) run(ctx context.Context, ready func(url string), beside ...func(context.Context) error) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", n.listen)
	if err != nil {
		return errors.Join(fmt.Errorf("%w: choose another address with --listen", err), n.close())
	}
	n.engine.Start()
	relayed := n.startRelay(ctx)
	served := make(chan error, 1)
	url := "http://" + listener.Addr().String()
	if cert := n.p.get(setTLSCert); cert != "" {
		url = "https://" + listener.Addr().String()
		go func() { served <- n.server.ServeTLS(listener, n.p.path(cert), n.p.path(n.p.get(setTLSKey))) }()
	} else {
		go func() { served <- n.server.Serve(listener) }()
	}
	n.up.Store(true)
	failed, leave := startBeside(ctx, beside)
	ready(url)
	select {
	case <-ctx.Done():
	case err = <-served:
	case err = <-failed:
	}
	n.leaving.Store(true)
	n.up.Store(false)
	n.log.Info("draining", "for at most", drainTime)
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
func (n *node) startRelay(ctx context.Context) (stop func()) {
	if n.relays == nil {
		return func() {}
	}
	var running sync.WaitGroup
	running.Go(func() { relay.Announce(ctx, n.log, n.sinks) })
	relaying, cancel := context.WithCancel(context.WithoutCancel(ctx))
	running.Go(func() { _ = n.relays.Run(relaying) }) // it returns nil; its troubles were observed
	return func() {
		cancel()
		running.Wait()
	}
}

// drain ends what is under way: the engine answers what it has taken in and
// lets polls go, the server waits for requests.
func (n *node) drain() error {
	limit, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	closed := make(chan error, 1)
	go func() { closed <- n.engine.Close() }()
	err := n.server.Shutdown(limit)
	if err != nil {
		n.log.Warn("some requests did not end in time", "err", err)
		err = n.server.Close()
	}
	return errors.Join(err, <-closed)
}

// close gives back what openNode opened.
func (n *node) close() error {
	errs := []error{relay.CloseAll(n.sinks)}
	if n.store != nil {
		errs = append(errs, n.store.Close())
	}
	return errors.Join(errs...)
}
