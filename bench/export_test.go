package bench

import (
	"context"

	"github.com/ringiflow/ringi"
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
