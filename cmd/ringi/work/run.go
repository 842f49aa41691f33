package work

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ringiflow/ringi/cmd/ringi/cli"
	"github.com/ringiflow/ringi/worker"
	"github.com/ringiflow/ringi/worker/command"
)

// program is the program as the commands of this package see it.
type program struct{ *cli.Program }

// Commands are worker and queue, with what belongs to them.
func Commands(p *cli.Program) []*cobra.Command {
	c := program{p}
	workers := &cobra.Command{Use: "worker", Short: "Run a program as a worker, and list the workers"}
	workers.AddCommand(c.runCommand(), c.listWorkersCommand())
	queues := &cobra.Command{Use: "queue", Short: "Look at the queues of tasks"}
	queues.AddCommand(c.listQueuesCommand())
	return []*cobra.Command{workers, queues}
}

// runFlags are those of worker run.
type runFlags struct {
	command command.Config
	name    string
	drain   time.Duration
}

func (p program) runCommand() *cobra.Command {
	var flags runFlags
	cmd := &cobra.Command{
		Use: "run --activity NAME [--activity NAME…] [--queue NAME] -- PROGRAM [ARGUMENT…]", Short: "Run a program for each task of an activity",
		Args: cli.AtLeastOne("PROGRAM"),
		Long: `Runs a program for each task of an activity, so that a script, or the client of a
container runtime, can be a step of a process.

The program gets the input as JSON on standard input, and RINGI_TASK_RUN, _STEP,
_DIRECTION (forward, undo or probe), _ATTEMPT, _KEY (the idempotency key),
_ACTIVITY, _QUEUE, _DEFINITION, _VERSION, _EFFECT and _TIMEOUT_MS in its
environment. Exit code 0 is a success, and what it wrote to standard output the
output: one JSON value, or nothing for null. Exit code 65 is a definite no, 75
means that nothing happened and another try may help, and any other code is tried
again as the effect of the step allows. A line on standard error such as

  ::ringi {"code":"card_declined","message":"no money","retryable":false,"applied":"no"}

says more about a failure; other lines go to the log. When its time is up or the
run is cancelled, the program and its process group get SIGTERM, and SIGKILL
after --grace.

On SIGTERM or SIGINT the worker takes no more tasks, lets running programs end
for --drain, and exits with 0. docs/command-workers.md has examples.`,
		Example: `  ringi worker run --activity mail.send -- ./send-mail.sh
  ringi worker run --activity pdf.render -- docker run --rm -i renderer:2`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.ContainsRune(args[0], filepath.Separator) { // else PATH says which
				args[0] = p.Path(args[0])
			}
			flags.command.Program = args
			return p.runWorker(cmd, flags)
		},
	}
	f := cmd.Flags()
	f.SetInterspersed(false) // the flags behind PROGRAM are its own
	f.StringArrayVar(&flags.command.Activities, "activity", nil, "name of an activity that the program does; may be given several times")
	f.StringVar(&flags.command.Queue, "queue", worker.DefaultQueue, "queue to serve")
	f.IntVar(&flags.command.Slots, "slots", command.DefaultSlots, "programs that run at once")
	f.BoolVar(&flags.command.Text, "text", false, "take standard output as a text, not as JSON")
	f.DurationVar(&flags.command.Grace, "grace", command.DefaultGrace, "time between SIGTERM and SIGKILL")
	f.DurationVar(&flags.command.Silence, "silence", 0, "end a program that has written nothing for so long (default never)")
	f.DurationVar(&flags.drain, "drain", worker.DefaultDrain, "how long programs may take to end when the worker stops")
	f.StringVar(&flags.name, "name", "", "name of this worker process, which no other has (default host and process id)")
	cli.SettingFlags(cmd, cli.SetLogFormat)
	return cmd
}

func (p program) runWorker(cmd *cobra.Command, flags runFlags) error {
	p.Drain()
	switch c := flags.command; {
	case len(c.Activities) == 0:
		return cli.Usage("as in --activity mail.send", "--activity is missing: which tasks is the program for?")
	case c.Slots < 1:
		return cli.Usage("", "--slots is %d, and must be at least 1", c.Slots)
	}
	log := p.Logger()
	flags.command.Log, flags.command.Dir = log, p.Dir
	runner, err := command.New(flags.command)
	if err != nil {
		return cli.Usage("name a file that can be executed", "%v", err)
	}
	service, err := p.Service()
	if err != nil {
		return err
	}
	if flags.name == "" {
		host, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("this machine has no name: give --name: %w", err)
		}
		flags.name = fmt.Sprintf("%s-%d", host, os.Getpid())
	}
	w, err := worker.New(worker.Config{
		Service: service, Name: flags.name, Queues: []worker.Queue{runner.Queue()}, Drain: flags.drain,
		Trouble: p.Trouble(log, "the worker met trouble"),
	})
	if err != nil {
		return cli.Usage("", "%v", err)
	}
	log.Info("working", "worker", w.Name(), "queue", flags.command.Queue, "activities", flags.command.Activities, "server", p.Get(cli.SetServer))
	return w.Run(cmd.Context())
}
