package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/access"
	"github.com/ringiflow/ringi/api"
	"github.com/ringiflow/ringi/child"
	"github.com/ringiflow/ringi/examples/order"
)

const (
	// readyWithin is how long a server may take to answer after it was started: a
	// second is usual, and a machine that does much else is slow.
	readyWithin = 30 * time.Second
	// readyLook is how often it is asked meanwhile.
	readyLook = 20 * time.Millisecond
	// checkTime is how long it may take to answer that.
	checkTime = 5 * time.Second
)

// A world is the processes of a demo and the directory that they work in.
type world struct {
	life   context.Context // of its processes
	dir    string          // the books
	inner  string          // database, keys, logs
	binary string          // the ringi program
	runs   string          // the database, when it is not in the directory
	died   func(error)

	addresses []string // of the servers
	own       *server  // the database's, when the demo started one
	servers   []*child.Process
	workers   []*child.Process
	services  []*child.Process
	clerks    []*clerk      // as many as servers, so that requests are spread
	clients   []*api.Client // of people and the shop
	checks    []*api.Client // one for each server, to see whether it answers
	count     *counter
}

// A server is a PostgreSQL server of the demo's own.
type server struct {
	url    string
	crash  func() error // ends all its processes at once
	resume func(context.Context) error
	log    func() string // what it said since it was started last
	close  func() error  // ends it and removes its data
}

// newWorld prepares the directory; nothing runs yet. The processes live as long
// as life, at most; died is told when one ends that nobody ended.
func newWorld(life context.Context, c Config, orders []byte, died func(error)) (*world, error) {
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return nil, fmt.Errorf("find the directory of the demo: %w", err)
	}
	w := &world{life: life, dir: dir, inner: filepath.Join(dir, EngineDir), binary: c.Binary, runs: c.Database, died: died}
	if err := os.MkdirAll(w.inner, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory of the demo: %w", err)
	}
	if err := os.WriteFile(w.orders(), orders, 0o600); err != nil {
		return nil, fmt.Errorf("write the orders: %w", err)
	}
	var urls []string
	for range max(c.Nodes, 1) {
		address, err := freeAddress()
		if err != nil {
			return nil, err
		}
		url := "http://" + address
		check, err := api.NewClient(api.ClientConfig{Address: url, Timeout: checkTime})
		if err != nil {
			return nil, err
		}
		w.addresses, urls, w.checks = append(w.addresses, address), append(urls, url), append(w.checks, check)
	}
	w.count = newCounter(urls)
	return w, w.makePeople()
}

// orders is the file of all orders that may be fed, with the faults that the
// services act out.
func (w *world) orders() string { return filepath.Join(w.inner, "planned.jsonl") }

func (w *world) keyFile(name string) string { return filepath.Join(w.inner, name+".key") }

func (w *world) keys() string { return filepath.Join(w.inner, "keys") }

func (w *world) database() string {
	if w.runs != "" {
		return w.runs
	}
	return "sqlite:" + filepath.Join(w.inner, "ringi.db")
}

const (
	shopName   = "shop"   // starts, cancels and looks
	workerName = "worker" // does the work
)

// people are everybody with a key: a shop and a worker, which are machines, and
// two of finance. The shop asks for every order, so that nobody votes on their own.
func people() []access.Principal {
	finance := []string{"finance"}
	voter := []string{api.ScopeRead, api.ScopeDecide}
	return []access.Principal{
		{ID: shopName, Kind: ringi.Machine, Scopes: []string{api.ScopeRead, api.ScopeStart, api.ScopeOperate, api.ScopePublish}},
		{ID: workerName, Kind: ringi.Machine, Scopes: []string{api.ScopeWork}},
		{ID: "alice", Kind: ringi.Person, Groups: finance, Scopes: voter},
		{ID: "bob", Kind: ringi.Person, Groups: finance, Scopes: voter},
	}
}

// makePeople draws everybody's key, writes the server's file of keys and the
// worker's own, and makes the clients with which the shop and its people act.
func (w *world) makePeople() error {
	for range w.addresses {
		w.clerks = append(w.clerks, &clerk{people: map[string]ringi.Service{}})
	}
	var lines []string
	for _, who := range people() {
		key, line, err := access.NewKey(who)
		if err != nil {
			return fmt.Errorf("make a key for %s: %w", who.ID, err)
		}
		lines = append(lines, line)
		if err := os.WriteFile(w.keyFile(who.ID), []byte(key+"\n"), 0o600); err != nil {
			return fmt.Errorf("write the key of %s: %w", who.ID, err)
		}
		for i, c := range w.clerks {
			client, err := api.NewClient(api.ClientConfig{Address: w.urls(i), Key: key})
			if err != nil {
				return err
			}
			w.clients = append(w.clients, client)
			switch {
			case who.ID == shopName:
				c.shop = client
			case who.Kind == ringi.Person:
				c.people[who.ID] = client
			}
		}
	}
	if err := os.WriteFile(w.keys(), []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		return fmt.Errorf("write the keys: %w", err)
	}
	return nil
}

// freeAddress finds a free port, which the server then has to itself through
// all its restarts.
func freeAddress() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	return ln.Addr().String(), ln.Close()
}

// urls are the servers as a client is told them, another one first for each:
// that one is asked as long as it answers.
func (w *world) urls(first int) string {
	var all []string
	for i := range w.addresses {
		all = append(all, "http://"+w.addresses[(first+i)%len(w.addresses)])
	}
	return strings.Join(all, ",")
}

// cluster reports whether there is more than one server.
func (w *world) cluster() bool { return len(w.addresses) > 1 }

// start starts everything: the services, then the servers, then the workers that
// connect the two.
func (w *world) start(ctx context.Context, seed uint64, call time.Duration) error {
	urls := map[string]string{}
	for _, name := range order.ServiceNames() {
		service := w.process(name, "demo", "service", name, "--db", order.BookPath(w.dir, name), "--orders", w.orders())
		service.Announces = true
		w.services = append(w.services, service)
		url, err := service.Start(ctx)
		if err != nil {
			return err
		}
		urls[name] = url
	}
	for i, address := range w.addresses {
		name, outbox, helper := "server", "outbox", workerName
		if w.cluster() {
			name, outbox, helper = nodeName(i), fmt.Sprintf("outbox-%d", i+1), fmt.Sprintf("%s %d", workerName, i+1)
		}
		w.servers = append(w.servers, w.process(name, "serve", "--database", w.database(), "--listen", address, "--keys", w.keys(),
			"--outbox", "file:"+filepath.Join(w.inner, outbox+".jsonl")))
		w.workers = append(w.workers, w.process(helper, "demo", "worker", "--server", w.urls(i), "--key-file", w.keyFile(workerName),
			"--stock", urls[order.Stock], "--payment", urls[order.Payment], "--shipping", urls[order.Shipping], "--mail", urls[order.Mail],
			"--seed", fmt.Sprint(seed), "--call", call.String()))
	}
	for i, p := range w.servers {
		if _, err := p.Start(ctx); err != nil {
			return err
		}
		if err := w.ready(ctx, i); err != nil {
			return err
		}
	}
	for _, p := range w.workers {
		if _, err := p.Start(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) process(name string, args ...string) *child.Process {
	return &child.Process{
		Life: w.life, Name: name, Binary: w.binary, Args: args, Dir: w.inner,
		Log: filepath.Join(w.inner, strings.ReplaceAll(name, " ", "-")+".log"), Died: w.died,
	}
}

// ready waits until a server answers durably.
func (w *world) ready(ctx context.Context, nth int) error {
	p := w.servers[nth]
	ctx, cancel := context.WithTimeoutCause(ctx, readyWithin, fmt.Errorf("%s did not answer within %s; see %s", p.Name, readyWithin, p.Log))
	defer cancel()
	for {
		err := w.checks[nth].Check(ctx)
		if err == nil {
			return nil
		}
		if err := pause(ctx, readyLook); err != nil {
			return err
		}
	}
}

// leased asks how many tasks are under lease.
func (w *world) leased(ctx context.Context) (int, error) {
	page, err := w.clerks[0].shop.List(ctx, ringi.WorkerQuery{Tenant: ringi.DefaultTenant})
	if err != nil {
		return 0, err
	}
	n := 0
	for _, q := range page.Queues {
		n += q.Leased
	}
	return n, nil
}

// stop ends everything in the order in which nobody misses anybody.
func (w *world) stop() error {
	var errs []error
	for _, c := range slices.Concat(w.clients, w.checks) { // first, since a server that ends waits for connections that were never used
		errs = append(errs, c.Close())
	}
	for _, p := range slices.Concat(w.workers, w.servers, w.services) {
		errs = append(errs, p.Stop())
	}
	return errors.Join(errs...)
}

// endDatabase ends the demo's own database, and keeps what it said last.
func (w *world) endDatabase() error {
	if w.own == nil {
		return nil
	}
	own := w.own
	w.own = nil
	kept := os.WriteFile(filepath.Join(w.inner, "postgres.log"), []byte(own.log()), 0o600)
	return errors.Join(own.close(), kept)
}
