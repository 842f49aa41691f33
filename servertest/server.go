//go:build unix

package servertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// startTime bounds a start with the recovery after a crash.
	startTime = 2 * time.Minute
	// stopTime bounds a stop.
	stopTime = time.Minute
	// lookEvery is how often a condition of a server is looked at.
	lookEvery = 10 * time.Millisecond
)

// A kind is a program and how it is run.
type kind struct {
	name   string
	path   string                // of the program; "": looked for by its name
	run    string                // what is run with args; "": the program
	ports  int                   // how many it listens on; 0: one
	before func(s *Server) error // what is done in the new directory
	args   func(s *Server) []string
	env    func(s *Server) []string
	answer func(ctx context.Context, s *Server) error // nil once the server answers
}

// A Server is a server in a process of its own. Its methods must not be called
// concurrently.
type Server struct {
	kind  kind
	path  string // of the program
	dir   string
	port  int         // the first of ports
	ports []int       // reserved for it until Close
	holds []io.Closer // of the ports
	shell *exec.Cmd   // nil: the server does not run
	leash io.Closer   // its end is the server's, also when this process is killed
	ended chan error
}

// start makes a directory, starts the server in it and waits until it answers.
func start(ctx context.Context, k kind, debian string) (*Server, error) {
	if k.path == "" {
		k.path = k.name
	}
	path, err := program(ctx, k.path, debian)
	if err != nil {
		return nil, err
	}
	if k.run == "" {
		k.run = path
	}
	s := &Server{kind: k, path: path}
	if err := s.reserve(max(1, k.ports)); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if s.dir, err = os.MkdirTemp("", "ringi-"+k.name+"-"); err != nil {
		return nil, errors.Join(fmt.Errorf("servertest: %w", err), s.Close())
	}
	if k.before != nil {
		err = k.before(s)
	}
	if err == nil {
		err = s.Resume(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// reserve gives the server its ports.
func (s *Server) reserve(count int) error {
	for range count {
		port, hold, err := reservePort()
		if err != nil {
			return fmt.Errorf("servertest: %w", err)
		}
		s.ports, s.holds = append(s.ports, port), append(s.holds, hold)
	}
	s.port = s.ports[0]
	return nil
}

// write writes files into the directory, by their names.
func (s *Server) write(files map[string]string) error {
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
			return fmt.Errorf("servertest: %w", err)
		}
	}
	return nil
}

// leashScript starts the server and leaves its process id in a file; what BESIDE
// holds runs beside it. When the standard input of the script ends, so does all
// that it started.
const leashScript = `exec 3<&0
[ -z "$BESIDE" ] || { sh -c "exec $BESIDE" </dev/null 3<&- & beside=$!; }
"$@" </dev/null 3<&- & pid=$!
echo $pid >server.pid
(cat <&3 >/dev/null; kill -KILL 0) &
wait $pid
[ -z "$BESIDE" ] || { kill -KILL $beside; wait $beside; }`

// Resume starts the server again after Stop or Crash, on the same port and with
// the same data, and waits until it answers.
func (s *Server) Resume(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	if err := s.spawn(); err != nil {
		return fmt.Errorf("servertest: start %s: %w", s.kind.name, err)
	}
	for {
		err := s.kind.answer(ctx, s)
		if err == nil {
			return nil
		}
		select {
		case <-s.ended:
			s.shell = nil
			return fmt.Errorf("servertest: %s ended at once:\n%s", s.kind.name, s.Log())
		case <-ctx.Done():
			return fmt.Errorf("servertest: %s does not answer: %w\n%s", s.kind.name, err, s.Log())
		case <-time.After(lookEvery):
		}
	}
}

func (s *Server) spawn() error {
	log, err := os.OpenFile(s.logFile(), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command("sh", append([]string{"-c", leashScript, "sh", s.kind.run}, s.kind.args(s)...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, log, log
	cmd.Env = s.Env()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that its end takes along all that it started
	if s.leash, err = cmd.StdinPipe(); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	s.shell, s.ended = cmd, ended
	return nil
}

func (s *Server) logFile() string { return filepath.Join(s.dir, "server.log") }

// Log is what the server wrote since it was started last.
func (s *Server) Log() string {
	text, err := os.ReadFile(s.logFile())
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(text))
}

// Address is HOST:PORT.
func (s *Server) Address() string { return "127.0.0.1:" + strconv.Itoa(s.port) }

// PID is the process id of the server; 0 when it does not run.
func (s *Server) PID() int {
	if s.shell == nil {
		return 0
	}
	text, err := os.ReadFile(filepath.Join(s.dir, "server.pid"))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return pid
}

// Env is the environment in which the server's own tools find it.
func (s *Server) Env() []string {
	if s.kind.env == nil {
		return os.Environ()
	}
	return append(os.Environ(), s.kind.env(s)...)
}

// Freeze stops the server as SIGSTOP does, until Thaw: it keeps its connections
// and says nothing. It returns when all threads of the server stand still, where the
// system shows that.
func (s *Server) Freeze() error {
	if err := s.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	late := time.NewTimer(freezeTime)
	defer late.Stop()
	for !s.still() {
		select {
		case <-tick.C:
		case <-late.C:
			return fmt.Errorf("servertest: %s was stopped and still runs after %v", s.kind.name, freezeTime)
		}
	}
	return nil
}

// freezeTime is far longer than a signal takes on a busy machine.
const freezeTime = 30 * time.Second

// still reports whether no thread of the server runs; true where nobody can tell.
func (s *Server) still() bool {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", s.PID()))
	if err != nil {
		return true
	}
	for _, file := range threads {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		// The state stands behind the name, which is in parentheses and may hold any.
		text := string(stat)
		if !strings.HasPrefix(text[strings.LastIndexByte(text, ')')+1:], " T") {
			return false
		}
	}
	return true
}

// Thaw lets a frozen server go on.
func (s *Server) Thaw() error { return s.signal(syscall.SIGCONT) }

func (s *Server) signal(signal syscall.Signal) error {
	pid := s.PID()
	if pid == 0 {
		return fmt.Errorf("servertest: %s does not run", s.kind.name)
	}
	return syscall.Kill(pid, signal)
}

// Stop asks the server to end, and waits until it has.
func (s *Server) Stop() error { return s.end(syscall.SIGTERM) }

// Crash ends the server as kill -9 does.
func (s *Server) Crash() error { return s.end(syscall.SIGKILL) }

// end sends the server a signal and waits for its end.
func (s *Server) end(signal syscall.Signal) error {
	pid := s.PID()
	if pid == 0 {
		return nil
	}
	// It may have ended by itself.
	if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("servertest: end %s: %w", s.kind.name, err)
	}
	select {
	case <-s.ended: // says how it ended, which its end was asked for
	case <-time.After(stopTime):
		return fmt.Errorf("servertest: %s does not end:\n%s", s.kind.name, s.Log())
	}
	s.shell = nil
	return nil
}

// Close ends the server and removes its data. It is idempotent.
func (s *Server) Close() error {
	err := s.Crash()
	if s.dir != "" {
		err = errors.Join(err, os.RemoveAll(s.dir))
	}
	for _, hold := range s.holds {
		err = errors.Join(err, hold.Close())
	}
	s.holds = nil
	return err
}

// dial is an answer for a server that is ready when it takes connections.
func dial(ctx context.Context, address string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", address)
}
