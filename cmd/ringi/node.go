package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/access"
	"github.com/ringiflow/ringi/api"
	"github.com/ringiflow/ringi/engine"
	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/ndjson"
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
	outboxOff    = "off"
	outboxFile   = "file:"
)

// nodeConfig is what a server is made of.
type nodeConfig struct {
	database string // path, or what the files beside a PostgreSQL database begin with
	postgres string // URL; "" is SQLite
	listen   string
	keys     string    // path
	own      []madeKey // those that the server makes itself, and their lines in keys; none when keys are configured
	outbox   string    // a value of the setting
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
	relay   *outbox.Relay // nil when messages are not read
	sink    io.Closer     // nil when nothing has to be closed
	up      atomic.Bool   // workers can reach us
	leaving atomic.Bool   // draining
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
	m := newMetrics()
	wake := make(chan struct{}, 1)
	if n.engine, err = engine.New(engine.Config{
		Store: &countedStore{Store: n.store, m: m, wake: wake}, Probe: n.store.Probe,
		Records: n.store, Catalog: n.store, Events: n.store,
		Log: c.log, Observer: m.observer(), WorkersUp: n.up.Load, Drain: drainTime,
	}); err != nil {
		return nil, err
	}
	m.registry.MustRegister(newDepths(n.store, sent.source.Stats, p.Now))
	if err = n.openRelay(sent, wake); err != nil {
		return nil, err
	}
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

// openRelay opens the destination of messages.
func (n *node) openRelay(sent messages, wake <-chan struct{}) error {
	var sink outbox.Sink
	switch n.outbox {
	case outboxOff:
		return nil
	case outboxStdout:
		sink = ndjson.NewWriter(n.p.Stdout, "")
	default:
		name := n.database + ".events.ndjson"
		if n.outbox != "" {
			name = n.p.path(strings.TrimPrefix(n.outbox, outboxFile))
		}
		file, err := ndjson.OpenFile(name, "")
		if err != nil {
			return err
		}
		sink, n.sink = file, file
	}
	var err error
	n.relay, err = outbox.NewRelay(outbox.RelayConfig{Source: sent.source, Fleet: sent.fleet, Sink: sink, Wake: wake, Observe: n.relayed})
	return err
}

// relayed logs what an operator must see of the relay.
func (n *node) relayed(r outbox.Report) {
	switch {
	case r.Err != nil:
		n.log.Warn("messages cannot be read", "err", r.Err)
	case r.Down != nil:
		n.log.Warn("the destination of messages is down", "err", r.Down, "again", r.Until)
	case r.Dead > 0:
		n.log.Error("messages were set aside after their last try", "messages", r.Dead)
	}
}

// makeServer makes the HTTP server: the API, and /metrics behind the same guard.
func (n *node) makeServer(who func(*http.Request) (api.Identity, error), m *metrics) error {
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
	numbers, err := api.Guard(public, m.handler())
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
	relayed := n.startRelay()
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
func (n *node) startRelay() (stop func()) {
	if n.relay == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = n.relay.Run(ctx) }) // it returns nil; its troubles were observed
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
	var errs []error
	if n.sink != nil {
		errs = append(errs, n.sink.Close())
	}
	if n.store != nil {
		errs = append(errs, n.store.Close())
	}
	return errors.Join(errs...)
}
