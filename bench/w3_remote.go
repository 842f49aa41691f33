package bench

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/api"
)

// headerTime bounds how long a request's head may take to come: on loopback
// only a process that hangs is that slow.
const headerTime = 10 * time.Second

// startRemote serves the API of a service on loopback and starts a worker there,
// in a process of its own.
func startRemote(ctx context.Context, cfg *W3Config, service ringi.Service) (_ WorkerProcess, err error) {
	dir, err := os.MkdirTemp("", "ringi-bench-")
	if err != nil {
		return WorkerProcess{}, err
	}
	key := rand.Text()
	file := filepath.Join(dir, "key")
	server, served, url, err := serveRemote(ctx, service, key)
	if err == nil {
		err = os.WriteFile(file, []byte(key+"\n"), 0o600)
	}
	end := func() error {
		if server == nil {
			return os.RemoveAll(dir)
		}
		err := server.Close()
		if cause := <-served; !errors.Is(cause, http.ErrServerClosed) {
			err = errors.Join(err, cause)
		}
		return errors.Join(err, os.RemoveAll(dir))
	}
	if err != nil {
		return WorkerProcess{}, errors.Join(err, end())
	}
	w, err := cfg.Worker(ctx, url, file, cfg.slots())
	if err != nil {
		return WorkerProcess{}, errors.Join(err, end())
	}
	return WorkerProcess{CPU: w.CPU, Stop: func() error { return errors.Join(w.Stop(), end()) }}, nil
}

// serveRemote serves the API on loopback to who has the key.
func serveRemote(ctx context.Context, service ringi.Service, key string) (_ *http.Server, served chan error, url string, err error) {
	handler, err := api.New(api.Config{Service: service, Who: func(r *http.Request) (api.Identity, error) {
		if r.Header.Get("Authorization") != "Bearer "+key {
			return api.Identity{}, &ringi.Error{Code: ringi.CodeUnauthenticated, Message: "the key is another one", Hint: "this server is for one worker"}
		}
		return api.Identity{
			Actor: ringi.Actor{ID: "bench-worker", Kind: ringi.Machine}, Tenant: ringi.DefaultTenant, Scopes: []string{api.ScopeWork},
		}, nil
	}})
	if err != nil {
		return nil, nil, "", err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, "", err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: headerTime}
	served = make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	return server, served, "http://" + listener.Addr().String(), nil
}
