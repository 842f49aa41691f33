package server

import (
	"context"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/cmd/ringi/cli"
	"github.com/ringiflow/ringi/cmd/ringi/delivery"
	"github.com/ringiflow/ringi/feed"
	"github.com/ringiflow/ringi/metric"
)

// fed is the service as the feeds of the server use it: they act as the system, for
// the tenant that there is.
type fed struct{ prompt }

// Do implements ringi.Service.
func (s fed) Do(ctx context.Context, commands ...ringi.Command) []ringi.Result {
	for i := range commands {
		commands[i].Actor = ringi.Actor{ID: "feed", Kind: ringi.System}
	}
	return s.prompt.Do(ctx, commands...)
}

// openFeeds opens what the server receives from brokers, if there is a file of it.
func (n *Node) openFeeds(ctx context.Context, m *metric.Metrics) (err error) {
	if !n.Feeds || n.p.Get(cli.SetFeeds) == "" {
		return nil
	}
	numbers := feed.NewMetrics()
	m.Registry.MustRegister(numbers)
	if n.feeds, n.endFeeds, err = delivery.OpenFeeds(ctx, n.p, fed{prompt{n.Engine}}, n.Log, numbers); err != nil {
		return err
	}
	if err := n.feeds.Open(); err != nil {
		return cli.Usage("ringi help feed shows how sources are written", "%v", err)
	}
	return nil
}

// feed receives until ctx ends.
func (n *Node) feed(ctx context.Context) error {
	if n.feeds == nil {
		return nil
	}
	delivery.AnnounceFeeds(n.Log, n.feeds)
	return n.feeds.Run(ctx)
}
