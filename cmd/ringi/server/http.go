package server

import (
	"context"
	"crypto/rand"
	"strings"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/cmd/ringi/cli"
	"github.com/ringiflow/ringi/worker"
	"github.com/ringiflow/ringi/worker/httpstep"
)

// httpDrain is how long calls of http steps may take to end when the server
// stops: most of cli.DrainTime, so that the rest of it is left for what
// they report.
const httpDrain = 20 * time.Second

// newPerformer makes what performs http steps.
func newPerformer(p *cli.Program) (*httpstep.Performer, error) {
	allowed, err := cli.Networks(p.Get(cli.SetHTTPAllow))
	if err != nil {
		return nil, err
	}
	return httpstep.New(httpstep.Config{AllowNetworks: allowed, UserAgent: "ringi/" + cli.BuildOf().Version, Now: p.Now}), nil
}

// performHTTP makes the calls of http steps until ctx ends, and then until those
// under way have ended. It is a worker like any other, in the process of the
// server.
func (n *Node) performHTTP(ctx context.Context) error {
	trouble := n.p.Trouble(n.Log, "the caller of http steps met trouble")
	name := "http-" + strings.ToLower(rand.Text())
	w, err := worker.New(worker.Config{
		Service: n.Engine, Name: name, Actor: ringi.Actor{ID: name, Kind: ringi.System}, Drain: httpDrain,
		Queues: []worker.Queue{n.performer.Queue()},
		Trouble: func(err error) {
			if !n.away() {
				trouble(err)
			}
		},
	})
	if err != nil {
		return err
	}
	if err := w.Run(ctx); err != nil {
		n.Log.Warn("calls of http steps did not end in time", "err", err)
	}
	return nil
}
