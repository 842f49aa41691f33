package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/worker"
)

// Defaults and limits.
const (
	// DefaultSlots is how many programs of a queue run at once: processes cost
	// more than functions.
	DefaultSlots = 4
	// DefaultGrace is how long a program has between SIGTERM and SIGKILL: less
	// than what the engine waits beyond the end of an attempt.
	DefaultGrace = 3 * time.Second
	// MaxOutput is the most that a program may write to standard output, in bytes:
	// what a run can keep of one step.
	MaxOutput = ringi.MaxPayload
	// maxLine is where a line of standard error is cut, in bytes.
	maxLine = 8 << 10
	// maxLogged is how much of an attempt's standard error goes to the log, in
	// bytes; the rest is only looked through for words to the worker.
	maxLogged = 1 << 20
	// maxTail is how much of the end of standard error explains a failure, in bytes.
	maxTail = 2 << 10
	// afterDeath is how long output is waited for when the program has ended and
	// something that it started, and that left its group, still holds the pipes.
	afterDeath = time.Second
)

// Exit codes with a meaning, after sysexits.h.
const (
	ExitRefused  = 65 // a definite no: nothing happened, and never will
	ExitTryAgain = 75 // nothing happened yet
)

// CodeSilent is the code of an attempt whose program said nothing for too long.
const CodeSilent = "silent"

// Config says which program does what. Program and Activities are needed.
type Config struct {
	// Program is the file with its arguments. It is looked for in PATH unless it
	// has a slash.
	Program []string

	// Activities are what the program does; RINGI_TASK_ACTIVITY tells it which.
	Activities []string

	Queue string // "" is worker.DefaultQueue
	Slots int    // programs that run at once; 0 is DefaultSlots

	// Text takes standard output as a text, without the line break at its end.
	Text bool

	// Grace is how long a program has between SIGTERM and SIGKILL; 0 is
	// DefaultGrace.
	Grace time.Duration

	// Silence ends a program that has written nothing for so long; 0 is never. It
	// is for programs that may hang: a line on standard error says that they live.
	Silence time.Duration

	// Dir is the working directory; "" is that of the worker.
	Dir string

	// Env is the environment to which that of the task is added; nil is the
	// worker's own.
	Env []string

	// Log gets what programs write to standard error; nil drops it.
	Log *slog.Logger
}

// A Runner runs a program for each task. It may be used by any number of
// goroutines at once.
type Runner struct {
	config Config
	path   string
	shell  string // of guards; "" when there can be none
}

// New makes a runner. It fails when there is no such program.
func New(config Config) (*Runner, error) {
	if len(config.Program) == 0 {
		return nil, errors.New("command: Config.Program is empty: name the program to run")
	}
	path, err := exec.LookPath(config.Program[0])
	if err == nil { // Config.Dir must not change which file it is
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return nil, fmt.Errorf("command: the program cannot be run: %w", err)
	}
	if config.Slots == 0 {
		config.Slots = DefaultSlots
	}
	if config.Grace <= 0 {
		config.Grace = DefaultGrace
	}
	if config.Env == nil {
		config.Env = os.Environ()
	}
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	shell, err := findGuard()
	if err != nil {
		config.Log.Warn(err.Error())
	}
	return &Runner{config: config, path: path, shell: shell}, nil
}

// Queue is what a worker serves to run the program.
func (r *Runner) Queue() worker.Queue {
	q := worker.Queue{Name: r.config.Queue, Slots: r.config.Slots}
	for _, name := range r.config.Activities {
		q.Activities = append(q.Activities, worker.Func(name, r.Run))
	}
	return q
}

// Run runs the program once, for the task of its context, and returns its
// output. Its errors are *worker.Failure. It returns when the program and its
// process group have ended.
func (r *Runner) Run(ctx context.Context, input json.RawMessage) (json.RawMessage, error) {
	task := worker.Task(ctx)
	p := r.process(task, input)
	if r.shell != "" {
		g, err := startGuard(r.shell)
		if err != nil {
			p.err.log.Warn(err.Error())
		} else {
			p.guard = g
			defer g.release()
		}
	}
	if err := p.run(ctx); err != nil {
		return nil, &worker.Failure{Code: worker.CodeError, Message: err.Error(), Retryable: true, Applied: ringi.AppliedNo}
	}
	return p.verdict(ctx)
}

// environment is what the program is told about its task.
func environment(task ringi.Task) []string {
	direction := string(task.Direction)
	if task.Direction == ringi.Forward {
		direction = "forward"
	}
	return []string{
		"RINGI_TASK_RUN=" + string(task.Run),
		"RINGI_TASK_STEP=" + task.Step,
		"RINGI_TASK_DIRECTION=" + direction,
		fmt.Sprintf("RINGI_TASK_ATTEMPT=%d", task.Attempt),
		"RINGI_TASK_KEY=" + task.Key,
		"RINGI_TASK_ACTIVITY=" + task.Activity,
		"RINGI_TASK_QUEUE=" + task.Queue,
		"RINGI_TASK_DEFINITION=" + task.Definition,
		fmt.Sprintf("RINGI_TASK_VERSION=%d", task.Version),
		"RINGI_TASK_EFFECT=" + task.Effect,
		fmt.Sprintf("RINGI_TASK_TIMEOUT_MS=%d", task.Timeout.Milliseconds()),
	}
}
