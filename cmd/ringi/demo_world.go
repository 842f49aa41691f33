package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/access"
	"github.com/ringiflow/ringi/api"
	"github.com/ringiflow/ringi/examples/order"
)

const (
	// demoReady is how long a server may take to answer after it was started: a
	// second is usual, and a machine that does much else is slow.
	demoReady = 30 * time.Second
	// demoReadyLook is how often it is asked meanwhile.
	demoReadyLook = 20 * time.Millisecond
	// demoEngineDir is the directory within the demo's that holds what the check
	// of the books does not read: database, keys and logs.
	demoEngineDir = "ringi"
)

// A demoWorld is the processes of a demo and the directory that they work in.
type demoWorld struct {
	life    context.Context // of its processes
	dir     string          // the books
	inner   string          // database, keys, logs
	binary  string          // this program
	address string          // of the server
	died    func(error)

	server, worker *demoProcess
	services       []*demoProcess
	clerk          *demoClerk
	clients        []*api.Client
}

// newDemoWorld prepares the directory; nothing runs yet. The processes live as
// long as life, at most; died is told when one ends that nobody ended.
func newDemoWorld(life context.Context, now time.Time, dir string, orders []byte, died func(error)) (*demoWorld, error) {
	binary, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program, which the demo starts several times: %w", err)
	}
	w := &demoWorld{life: life, dir: dir, inner: filepath.Join(dir, demoEngineDir), binary: binary, died: died}
	if err := os.MkdirAll(w.inner, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory of the demo: %w", err)
	}
	if err := os.WriteFile(w.orders(), orders, 0o600); err != nil {
		return nil, fmt.Errorf("write the orders: %w", err)
	}
	if err := makeKeys(w.keys(), now, w.people()...); err != nil {
		return nil, fmt.Errorf("make the keys of the demo: %w", err)
	}
	if w.address, err = demoAddress(); err != nil {
		return nil, err
	}
	return w, w.makeClerk()
}

// orders is the file of all orders that may be fed, with the faults that the
// services act out.
func (w *demoWorld) orders() string { return filepath.Join(w.inner, "planned.jsonl") }

func (w *demoWorld) keyFile(name string) string { return filepath.Join(w.inner, name+".key") }

func (w *demoWorld) keys() string { return filepath.Join(w.inner, "keys") }

func (w *demoWorld) database() string { return "sqlite:" + filepath.Join(w.inner, "ringi.db") }

const (
	demoShop   = "shop"   // starts, cancels and looks
	demoWorker = "worker" // does the work
)

// people are everybody with a key: a shop and a worker, which are machines, and
// two of finance. The shop asks for every order, so that nobody votes on their own.
func (w *demoWorld) people() []madeKey {
	finance := []string{"finance"}
	voter := []string{api.ScopeRead, api.ScopeDecide}
	return []madeKey{
		{w.keyFile(demoShop), access.Principal{ID: demoShop, Kind: ringi.Machine, Scopes: []string{api.ScopeRead, api.ScopeStart, api.ScopeOperate, api.ScopePublish}}},
		{w.keyFile(demoWorker), access.Principal{ID: demoWorker, Kind: ringi.Machine, Scopes: []string{api.ScopeWork}}},
		{w.keyFile("alice"), access.Principal{ID: "alice", Kind: ringi.Person, Groups: finance, Scopes: voter}},
		{w.keyFile("bob"), access.Principal{ID: "bob", Kind: ringi.Person, Groups: finance, Scopes: voter}},
	}
}

// demoAddress finds a free port, which the server then has to itself through
// all its restarts.
func demoAddress() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	return ln.Addr().String(), ln.Close()
}

func (w *demoWorld) url() string { return "http://" + w.address }

// makeClerk makes the clients with which the shop and its people act.
func (w *demoWorld) makeClerk() error {
	w.clerk = &demoClerk{people: map[string]ringi.Service{}}
	for _, k := range w.people() {
		key, err := readKey(k.file)
		if err != nil {
			return fmt.Errorf("read the key of %s: %w", k.who.ID, err)
		}
		client, err := api.NewClient(api.ClientConfig{Address: w.url(), Key: key})
		if err != nil {
			return err
		}
		w.clients = append(w.clients, client)
		switch {
		case k.who.ID == demoShop:
			w.clerk.shop = client
		case k.who.Kind == ringi.Person:
			w.clerk.people[k.who.ID] = client
		}
	}
	return nil
}

// start starts everything: the services, then the server, then the worker that
// connects the two.
func (w *demoWorld) start(ctx context.Context, seed uint64, call time.Duration) error {
	urls := map[string]string{}
	for _, name := range order.ServiceNames() {
		service := w.process(name, "demo", "service", name, "--db", order.BookPath(w.dir, name), "--orders", w.orders())
		service.announces = true
		w.services = append(w.services, service)
		url, err := service.start(ctx)
		if err != nil {
			return err
		}
		urls[name] = url
	}
	w.server = w.process("server", "serve", "--database", w.database(), "--listen", w.address, "--keys", w.keys(),
		"--outbox", "file:"+filepath.Join(w.inner, "outbox.jsonl"))
	w.worker = w.process("worker", "demo", "worker", "--server", w.url(), "--key-file", w.keyFile(demoWorker),
		"--stock", urls[order.Stock], "--payment", urls[order.Payment], "--shipping", urls[order.Shipping], "--mail", urls[order.Mail],
		"--seed", fmt.Sprint(seed), "--call", call.String())
	if _, err := w.server.start(ctx); err != nil {
		return err
	}
	if err := w.ready(ctx); err != nil {
		return err
	}
	_, err := w.worker.start(ctx)
	return err
}

func (w *demoWorld) process(name string, args ...string) *demoProcess {
	return &demoProcess{
		life: w.life, name: name, binary: w.binary, args: args, dir: w.inner,
		log: filepath.Join(w.inner, name+".log"), died: w.died,
	}
}

// ready waits until the server answers durably.
func (w *demoWorld) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, demoReady, fmt.Errorf("the server did not answer within %s; see %s", demoReady, w.server.log))
	defer cancel()
	client := w.clients[0]
	for {
		err := client.Check(ctx)
		if err == nil {
			return nil
		}
		if err := demoPause(ctx, demoReadyLook); err != nil {
			return err
		}
	}
}

// leased asks how many tasks are under lease.
func (w *demoWorld) leased(ctx context.Context) (int, error) {
	page, err := w.clerk.shop.List(ctx, ringi.WorkerQuery{Tenant: ringi.DefaultTenant})
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
func (w *demoWorld) stop() error {
	var errs []error
	for _, c := range w.clients { // first, since a server that ends waits for connections that were never used
		errs = append(errs, c.Close())
	}
	for _, p := range append([]*demoProcess{w.worker, w.server}, w.services...) {
		if p != nil {
			errs = append(errs, p.stop())
		}
	}
	return errors.Join(errs...)
}
