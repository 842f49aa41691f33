package bench

import (
	"context"
	"errors"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/engine/replay"
	"github.com/ringiflow/ringi/workflow"
)

// W3Definition is the definition of the measure.
func W3Definition() (*workflow.Definition, []workflow.Problem) {
	return workflow.Parse("w3", []byte(w3))
}

// PublishW3 publishes it.
func PublishW3(ctx context.Context, service ringi.Service) error {
	_, err := service.Publish(ctx, ringi.Publication{Source: []byte(w3)})
	return err
}

// ServeW3 runs the worker of the measure until the returned function is called.
func ServeW3(service ringi.Service, slots int) (stop func() error, err error) {
	w, err := startW3Worker(context.Background(), &W3Config{Mode: ModeEmbedded, Inflight: slots}, service)
	return w.Stop, err
}

// Replayed folds every log of a database again and counts the runs.
func Replayed(ctx context.Context, named string) (runs int, err error) {
	p, err := placeOf(named)
	if err != nil {
		return 0, err
	}
	db, err := p.open(ctx)
	if err != nil {
		return 0, err
	}
	r, err := replay.Run(ctx, db, replay.Query{})
	if len(r.Mismatches) > 0 {
		err = errors.Join(err, errors.New(r.Mismatches[0].Detail))
	}
	return r.Runs, errors.Join(err, db.Close())
}
