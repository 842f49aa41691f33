// Package natsserver runs a NATS server with JetStream in this process, for tools and
// demonstrations that need a broker where none is installed. Its streams are on disk:
// a server that is killed and started again with the same directory and port has
// every message that it acknowledged.
package natsserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// readyTime bounds the start, with the recovery after a kill.
	readyTime = 30 * time.Second

	// bindTime bounds the wait for the port, which the connections of the server
	// before may hold for a moment.
	bindTime = 10 * time.Second

	// bindPause is the pause between two tries to take the port.
	bindPause = 50 * time.Millisecond
)

// Config says what is served. Dir, Stream and Subjects are needed.
type Config struct {
	Dir  string // where the streams are kept
	Port int    // on 127.0.0.1; 0 is a free one

	// Stream takes what is published on Subjects. It is made unless it is there.
	Stream   string
	Subjects []string

	// Duplicates is how long the stream remembers message ids; 0 is the server's
	// default of two minutes.
	Duplicates time.Duration
}

// Serve serves until ctx ends. ready is called once, with the URL, when the stream
// takes messages.
func Serve(ctx context.Context, c Config, ready func(url string)) error {
	if err := awaitPort(ctx, c.Port); err != nil {
		return err
	}
	port := c.Port
	if port == 0 {
		port = server.RANDOM_PORT
	}
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: port, JetStream: true, StoreDir: c.Dir, NoLog: true, NoSigs: true,
	})
	if err != nil {
		return fmt.Errorf("natsserver: %w", err)
	}
	s.Start()
	defer func() {
		s.Shutdown()
		s.WaitForShutdown()
	}()
	if !s.ReadyForConnections(readyTime) {
		return fmt.Errorf("natsserver: the server was not ready within %s; look whether the disk of %s is full or slow", readyTime, c.Dir)
	}
	if err := makeStream(ctx, s.ClientURL(), c); err != nil {
		return err
	}
	ready(s.ClientURL())
	<-ctx.Done()
	return nil
}

// awaitPort waits until the port can be taken. The server itself would end the
// process when it cannot.
func awaitPort(ctx context.Context, port int) error {
	if port == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, bindTime)
	defer cancel()
	for {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			return l.Close()
		}
		timer := time.NewTimer(bindPause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("natsserver: %w", errors.Join(err, ctx.Err()))
		}
	}
}

func makeStream(ctx context.Context, url string, c Config) error {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	conn, err := nats.Connect(url)
	if err != nil {
		return fmt.Errorf("natsserver: %w", err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err == nil {
		_, err = js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{Name: c.Stream, Subjects: c.Subjects, Storage: jetstream.FileStorage, Duplicates: c.Duplicates})
	}
	if err != nil {
		return fmt.Errorf("natsserver: make the stream %s: %w", c.Stream, err)
	}
	return nil
}
