package kafka_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/ringiflow/ringi/servertest"
)

// shared is the Kafka broker in a process of its own that the tests of this
// package share; the first that asks starts it.
var shared struct {
	once   sync.Once
	server *servertest.Server
	err    error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.server != nil {
		if err := shared.server.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

func sharedServer(t *testing.T) *servertest.Server {
	t.Helper()
	shared.once.Do(func() { shared.server, shared.err = servertest.Kafka(context.Background()) })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.server
}
