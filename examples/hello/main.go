// Command hello is a worker with one activity, for the process in hello.yaml.
// Start `ringi dev`, then this in the same directory.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"github.com/ringiflow/ringi/api"
	"github.com/ringiflow/ringi/worker"
)

type in struct {
	Who string `json:"who"`
}

type out struct {
	Text string `json:"text"`
}

func greet(_ context.Context, i in) (out, error) {
	return out{Text: "Hello, " + i.Who}, nil
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "hello:", err)
		os.Exit(1)
	}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	key, err := os.ReadFile(".ringi/ringi.db.key")
	if err != nil {
		return fmt.Errorf("no key here: run `ringi dev` in this directory first: %w", err)
	}
	client, err := api.NewClient(api.ClientConfig{Address: "http://127.0.0.1:7070", Key: strings.TrimSpace(string(key))})
	if err != nil {
		return err
	}
	w, err := worker.New(worker.Config{
		Service: client,
		Queues:  []worker.Queue{{Activities: []worker.Activity{worker.Func("hello.greet", greet)}}},
	})
	if err != nil {
		return err
	}
	fmt.Println("hello.greet is served; stop it with Ctrl-C")
	return w.Run(ctx)
}
