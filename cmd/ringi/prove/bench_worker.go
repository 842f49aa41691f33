package prove

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/ringiflow/ringi/bench"
	"github.com/ringiflow/ringi/cmd/ringi/cli"
)

// benchWorkerCommand is the worker of a measurement as a process of its own. It
// answers each line of its standard input with the processor time that it has
// used, and ends with it.
func (p program) benchWorkerCommand() *cobra.Command {
	slots := 0
	cmd := &cobra.Command{
		Use: "worker", Short: "The worker of bench w3; that starts it", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := p.Service()
			if err != nil {
				return err
			}
			w, err := bench.NewW3Worker(client, slots)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithCancel(cmd.Context())
			ended := make(chan error, 1)
			go func() { ended <- w.Run(ctx) }()
			asked := bufio.NewScanner(p.Stdin)
			for asked.Scan() {
				if _, err := fmt.Fprintln(p.Stdout, bench.CPU().Microseconds()); err != nil {
					break // nobody listens any more
				}
			}
			cancel()
			return errors.Join(asked.Err(), <-ended)
		},
	}
	cmd.Flags().IntVar(&slots, "slots", bench.DefaultInflight, "functions that run at once")
	return cmd
}

// startWorker starts that process. It ends with its standard input, and so with
// this process at the latest.
func (p program) startWorker(_ context.Context, server, keyFile string, slots int) (bench.WorkerProcess, error) {
	self, err := os.Executable()
	if err != nil {
		return bench.WorkerProcess{}, err
	}
	child := exec.Command(self, "bench", "worker", "--slots", strconv.Itoa(slots), "--"+cli.SetServer, server, "--"+cli.SetKeyFile, keyFile)
	child.Stderr, child.Env = p.Stderr, os.Environ()
	ask, err := child.StdinPipe()
	if err != nil {
		return bench.WorkerProcess{}, err
	}
	answers, err := child.StdoutPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		return bench.WorkerProcess{}, fmt.Errorf("start the worker: %w", err)
	}
	lines := bufio.NewScanner(answers)
	return bench.WorkerProcess{
		CPU: func() (time.Duration, error) {
			if _, err := fmt.Fprintln(ask); err != nil {
				return 0, fmt.Errorf("the worker has ended: %w", err)
			}
			if !lines.Scan() {
				return 0, errors.Join(errors.New("the worker has ended"), lines.Err())
			}
			us, err := strconv.ParseInt(lines.Text(), 10, 64)
			return time.Duration(us) * time.Microsecond, err
		},
		Stop: func() error { return errors.Join(ask.Close(), child.Wait()) },
	}, nil
}
