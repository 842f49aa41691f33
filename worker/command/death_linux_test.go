package command_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/worker/command"
)

// asWorker makes the test binary a worker that runs one program in its directory.
const asWorker = "RINGI_TEST_AS_WORKER"

func TestMain(m *testing.M) {
	if os.Getenv(asWorker) == "" {
		os.Exit(m.Run())
	}
	r, err := command.New(command.Config{Program: []string{"sh", "-c", "echo $$ > program; exec sleep 1000"}, Activities: []string{"a"}})
	if err != nil {
		panic(err)
	}
	_, _ = r.Queue().Activities[0].Call(context.Background(), ringi.Task{Input: json.RawMessage(`{}`)})
}

// A worker that is killed takes its programs along: nobody would hear what they
// say, and the engine gives the task to another.
func TestAProgramDiesWithItsWorker(t *testing.T) { // W31
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), asWorker+"=1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	program := pidIn(cmd.Dir, "program")
	if program == 0 {
		t.Fatal("the program does not start")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if !await(func() bool { return gone(program) }) {
		t.Errorf("process %d outlives its worker", program)
	}
}
