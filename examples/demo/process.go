package demo

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
	// stopGrace is how long a process may take to end by itself before it
	// is killed: a drain of calls that take a second, with room for a slow disk.
	stopGrace = 15 * time.Second
	// tailBytes is how much of a log is shown when a process ends by itself.
	tailBytes = 2 << 10
)

// A process is a process that the demo started. It can be killed and
// started again, and does not outlive the demo: the end of its life ends it, and
// on Linux so does the death of the demo itself. Its methods are for one
// goroutine; only its end is watched by another.
type process struct {
	life   context.Context // of the demo; a process carries it through its restarts
	name   string          // as the story calls it
	binary string          // what it runs, usually the ringi program
	args   []string        // of the binary
	dir    string          // where it runs
	log    string          // the file that what it says is added to

	// announces says that the first line of its stdout is for the demo: the
	// URL on which it can be called.
	announces bool
	// died is told when it ended although nobody ended it.
	died func(error)

	now *incarnation // the incarnation that runs, or the last one
}

// An incarnation is one incarnation of a process, from its start to its end.
type incarnation struct {
	cmd  *exec.Cmd
	gone chan struct{} // closed once it has ended

	mu    sync.Mutex
	meant bool // its end was ordered
}

// start starts the process and does not wait for it to be of use. It returns the
// line that the process announces, for which it waits until ctx ends, or "" if
// it announces nothing.
func (p *process) start(ctx context.Context) (line string, err error) {
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return "", fmt.Errorf("open the log of %s: %w", p.name, err)
	}
	defer func() { err = errors.Join(err, log.Close()) }() // the child has its own copy
	cmd := exec.CommandContext(p.life, p.binary, p.args...)
	cmd.Dir, cmd.Env = p.dir, environment(os.Environ())
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = attributes()
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopGrace
	announced, err := p.spawn(cmd)
	if err != nil {
		return "", fmt.Errorf("start %s: %w", p.name, err)
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
func (p *process) spawn(cmd *exec.Cmd) (announced *os.File, err error) {
	if !p.announces {
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
func (p *process) watch(now *incarnation) {
	err := now.cmd.Wait()
	close(now.gone)
	if now.ordered() || p.life.Err() != nil || p.died == nil {
		return
	}
	how := "ended by itself"
	if err != nil {
		how += ": " + err.Error()
	}
	p.died(fmt.Errorf("%s %s; the end of its log %s:\n%s", p.name, how, p.log, logTail(p.log)))
}

// announcement reads the first line that the child writes to its stdout.
func (p *process) announcement(ctx context.Context, from *os.File) (string, error) {
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
			return "", fmt.Errorf("%s ended before it said where it can be called; the end of its log %s:\n%s", p.name, p.log, logTail(p.log))
		}
		return h.line, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// pid returns the number of the running incarnation.
func (p *process) pid() int { return p.now.cmd.Process.Pid }

// running tells whether the incarnation has not ended yet.
func (p *process) running() bool {
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

// kill ends the process at once with SIGKILL and waits until it is gone. It
// reports false if the process had ended before, so that this was no kill.
func (p *process) kill() bool {
	if !p.running() {
		return false
	}
	p.now.order()
	hit := p.now.cmd.Process.Kill() == nil
	<-p.now.gone
	return hit
}

// stop asks the process to end, waits, and kills it when it takes longer than
// stopGrace, which is an error.
func (p *process) stop() error {
	if !p.running() {
		return nil
	}
	p.now.order()
	if err := p.now.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.kill() // a system without this signal, or it ended just now
		return nil
	}
	late := time.NewTimer(stopGrace)
	defer late.Stop()
	select {
	case <-p.now.gone:
		return nil
	case <-late.C:
		p.kill()
		return fmt.Errorf("%s did not end within %s and was killed; see %s", p.name, stopGrace, p.log)
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

// environment leaves the settings of ringi out: whoever runs the demo may
// have some for a server of their own, which this is not.
func environment(all []string) []string {
	var kept []string
	for _, setting := range all {
		if !strings.HasPrefix(setting, "RINGI_") {
			kept = append(kept, setting)
		}
	}
	return kept
}

// logTail returns the last lines of a log.
func logTail(path string) string {
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
