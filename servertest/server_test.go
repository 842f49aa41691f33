//go:build unix

package servertest_test

import (
	"context"
	"net"
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	"github.com/ringiflow/ringi/servertest"
)

func TestAServerIsStoppedCrashedAndStartedAgain(t *testing.T) {
	for name, start := range map[string]func(context.Context, ...string) (*servertest.Server, error){
		"redis": servertest.Redis, "rabbitmq": servertest.RabbitMQ, "kafka": servertest.Kafka, "mariadb": servertest.MariaDB,
	} {
		t.Run(name, func(t *testing.T) { stopCrashResume(t, start) })
	}
}

func stopCrashResume(t *testing.T, start func(context.Context, ...string) (*servertest.Server, error)) {
	s, err := start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	address := s.Address()
	for what, end := range map[string]func() error{"stop": s.Stop, "crash": s.Crash} {
		pid := s.PID()
		if err := end(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if s.PID() != 0 || syscall.Kill(pid, 0) == nil {
			t.Errorf("%s: process %d is still there", what, pid)
		}
		if conn, err := net.Dial("tcp", address); err == nil {
			t.Errorf("%s: something still answers at %s", what, conn.RemoteAddr())
		}
		if err := s.Resume(t.Context()); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if s.Address() != address {
			t.Errorf("%s: it came back at %s", what, s.Address())
		}
	}
}

// A server that cannot start says why.
func TestAServerThatCannotStartSaysWhy(t *testing.T) {
	_, err := servertest.Redis(t.Context(), "--no-such-option", "1")
	if err == nil {
		t.Fatal("it started")
	}
	t.Log(err)
	if out, _ := exec.Command("pgrep", "-P", strconv.Itoa(syscall.Getpid()), "redis").Output(); len(out) > 0 {
		t.Errorf("left behind: %s", out)
	}
}
