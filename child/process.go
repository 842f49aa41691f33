// Package child runs programs as processes of their own that are killed, stopped
// and started again: the demonstrations and rigs that show what survives.
//
// A Process does not outlive who started it: the end of its life ends it, and on
// Linux so does the death of the starter itself. Elsewhere the children of a
// program that is itself killed have to be ended by hand.
package child

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// StopGrace is how long a process may take to end by itself before it
	// is killed: a drain of calls that take a second, with room for a slow disk.
	StopGrace = 15 * time.Second
	// tailBytes is how much of a log is shown when a process ends by itself.
	tailBytes = 2 << 10
)

// A Process can be killed and started again. Life, Name, Binary, Dir and Log are
// needed. Its methods are for one goroutine; only its end is watched by another.
type Process struct {
	Life   context.Context // of its starter; a process carries it through its restarts
	Name   string          // as people are told of it
	Binary string          // what it runs, usually the ringi program
	Args   []string        // of the binary
	Dir    string          // where it runs
	Log    string          // the file that what it says is added to

	// Announces says that the first line of its stdout is for its starter, such as
	// the URL on which it can be called.
	Announces bool
	// Died is told, from a goroutine of its own, when it ended although nobody ended
	// it; nil is nobody.
	Died func(error)

	now *incarnation // the incarnation that runs, or the last one
}

// An incarnation is one incarnation of a process, from its start to its end.
type incarnation struct {
	cmd  *exec.Cmd
	gone chan struct{} // closed once it has ended

	mu    sync.Mutex
	meant bool // its end was ordered
}

// Start starts the process and does not wait for it to be of use. It returns the
// line that the process announces, for which it waits until ctx ends, or "" if
// it announces nothing.
func (p *Process) Start(ctx context.Context) (line string, err error) {
	log, err := os.OpenFile(p.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return "", fmt.Errorf("open the log of %s: %w", p.Name, err)
	}
	defer func() { err = errors.Join(err, log.Close()) }() // the child has its own copy
	cmd := exec.CommandContext(p.Life, p.Binary, p.Args...)
	cmd.Dir, cmd.Env = p.Dir, Environment(os.Environ())
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = attributes()
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = StopGrace
	announced, err := p.spawn(cmd)
	if err != nil {
		return "", fmt.Errorf("start %s: %w", p.Name, err)
	}
	now := &incarnation{cmd: cmd, gone: make(chan struct{})}
	p.now = now
	go p.watch(now)
	if announced == nil {
		return "", nil
	}
	return p.announcement(ctx, announced)
}

// spawn starts the command and returns what it says to stdout, or nil if that
// is not for the demo. Only the child writes into the pipe, so that its end is
// the end of what can be read and nothing that it said before is missed.
func (p *Process) spawn(cmd *exec.Cmd) (announced *os.File, err error) {
	if !p.Announces {
		return nil, cmd.Start()
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout = write
	err = errors.Join(cmd.Start(), write.Close())
	if err != nil {
		return nil, errors.Join(err, read.Close())
	}
	return read, nil
}

// watch waits for the end of an incarnation and tells of one that nobody meant.
func (p *Process) watch(now *incarnation) {
	err := now.cmd.Wait()
	close(now.gone)
	if now.ordered() || p.Life.Err() != nil || p.Died == nil {
		return
	}
	how := "ended by itself"
	if err != nil {
		how += ": " + err.Error()
	}
	p.Died(fmt.Errorf("%s %s; the end of its log %s:\n%s", p.Name, how, p.Log, LogTail(p.Log)))
}

// announcement reads the first line that the child writes to its stdout.
func (p *Process) announcement(ctx context.Context, from *os.File) (string, error) {
	type heard struct {
		line string
		err  error
	}
	first := make(chan heard, 1)
	go func() {
		line, err := bufio.NewReader(from).ReadString('\n')
		first <- heard{strings.TrimSpace(line), err}
		_ = from.Close() // nothing more is expected
	}()
	select {
	case h := <-first:
		if h.err != nil {
			return "", fmt.Errorf("%s ended before it said where it can be called; the end of its log %s:\n%s", p.Name, p.Log, LogTail(p.Log))
		}
		return h.line, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// PID returns the process id of the running incarnation.
func (p *Process) PID() int { return p.now.cmd.Process.Pid }

// ExitCode is the exit code of the last incarnation when it has ended; -1 when it
// runs, never ran, or was ended by a signal.
func (p *Process) ExitCode() int {
	if p.now == nil || p.Running() {
		return -1
	}
	return p.now.cmd.ProcessState.ExitCode()
}

// Running tells whether the incarnation has not ended yet.
func (p *Process) Running() bool {
	if p.now == nil {
		return false
	}
	select {
	case <-p.now.gone:
		return false
	default:
		return true
	}
}

// Kill ends the process at once with SIGKILL and waits until it is gone. It
// reports false if the process had ended before, so that this was no kill.
func (p *Process) Kill() bool {
	if !p.Running() {
		return false
	}
	p.now.order()
	hit := p.now.cmd.Process.Kill() == nil
	<-p.now.gone
	return hit
}

// Stop asks the process to end, waits, and kills it when it takes longer than
// StopGrace, which is an error.
func (p *Process) Stop() error {
	if !p.Running() {
		return nil
	}
	p.now.order()
	if err := p.now.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.Kill() // a system without this signal, or it ended just now
		return nil
	}
	late := time.NewTimer(StopGrace)
	defer late.Stop()
	select {
	case <-p.now.gone:
		return nil
	case <-late.C:
		p.Kill()
		return fmt.Errorf("%s did not end within %s and was killed; see %s", p.Name, StopGrace, p.Log)
	}
}

func (l *incarnation) order() {
	l.mu.Lock()
	l.meant = true
	l.mu.Unlock()
}

func (l *incarnation) ordered() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.meant
}

// Environment leaves the settings of ringi out: whoever runs this may
// have some for a server of their own, which this is not.
func Environment(all []string) []string {
	var kept []string
	for _, setting := range all {
		if !strings.HasPrefix(setting, "RINGI_") {
			kept = append(kept, setting)
		}
	}
	return kept
}

// LogTail returns the last lines of a log, at most 2 KiB.
func LogTail(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	if cut := len(data) - tailBytes; cut > 0 {
		data = data[cut:]
		if end := bytes.IndexByte(data, '\n'); end >= 0 {
			data = data[end+1:]
		}
	}
	return strings.TrimRight(string(data), "\n")
}
