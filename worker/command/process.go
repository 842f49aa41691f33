package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"sync"
	"time"

	"github.com/ringiflow/ringi"
)

// A process is one attempt.
type process struct {
	config Config
	task   ringi.Task
	cmd    *exec.Cmd
	out    *output
	err    *lines
	guard  *guard // nil: nothing watches over what the program starts
	silent bool   // it was ended since it had said nothing
}

func (r *Runner) process(task ringi.Task, input json.RawMessage) *process {
	log := r.config.Log.With("run", task.Run, "step", task.Step, "attempt", task.Attempt, "activity", task.Activity)
	heard := make(chan struct{}, 1)
	p := &process{
		config: r.config, task: task,
		cmd: &exec.Cmd{Path: r.path, Args: r.config.Program, Dir: r.config.Dir, WaitDelay: afterDeath},
		out: &output{full: make(chan struct{}), heard: heard},
		err: &lines{log: log, heard: heard},
	}
	p.cmd.Env = append(append(p.cmd.Env, r.config.Env...), environment(task)...)
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = bytes.NewReader(input), p.out, p.err
	inGroup(p.cmd)
	return p
}

// run starts the program and returns when it has ended, by itself or because it
// had to. An error says that it never began.
//
// The kernel's promise to kill the program with the worker is tied to the thread
// that started it, so that this goroutine keeps its thread for as long.
func (p *process) run(ctx context.Context) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("the program did not start: %w", err)
	}
	if p.guard != nil {
		p.guard.watch(p.cmd.Process.Pid)
	}
	ended := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() { p.watch(ctx, ended) })
	err := p.cmd.Wait()
	close(ended)
	watching.Wait()
	killGroup(p.cmd) // what it left behind; the group is gone when it left nothing
	p.err.end()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		p.err.log.Warn("the pipes of the program failed", "err", err)
	}
	return nil
}

// watch ends the program when it has to: first asked, then killed.
func (p *process) watch(ctx context.Context, ended <-chan struct{}) {
	silence, stop := p.silence()
	defer stop()
	for wait := true; wait; {
		select {
		case <-ended:
			return
		case <-p.out.full:
			killGroup(p.cmd)
			return
		case <-p.out.heard:
			stop()
			silence, stop = p.silence()
		case <-silence:
			p.silent, wait = true, false
		case <-ctx.Done():
			wait = false
		}
	}
	askGroup(p.cmd)
	timer := time.NewTimer(p.config.Grace)
	defer timer.Stop()
	select {
	case <-ended:
		return
	case <-p.out.full:
	case <-timer.C:
	}
	killGroup(p.cmd)
}

// silence is a channel on which something comes when the program has said
// nothing for too long.
func (p *process) silence() (<-chan time.Time, func()) {
	if p.config.Silence <= 0 {
		return nil, func() {}
	}
	timer := time.NewTimer(p.config.Silence)
	return timer.C, func() { timer.Stop() }
}
