//go:build unix

package pgtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// startTime bounds a start with the recovery after a crash.
	startTime = time.Minute
	// stopTime bounds a stop.
	stopTime = 30 * time.Second
	// lookEvery is how often a condition of the server is looked at.
	lookEvery = 5 * time.Millisecond
	// owner is the role that owns everything; it needs no password.
	owner = "ringi"
)

// Config configures a Server. The zero value works.
type Config struct {
	// Dir is where the data is kept, to be found again by a later Start; ""
	// is a temporary directory that Close removes.
	Dir string
	// Port is where it listens on 127.0.0.1; 0 is a free one.
	Port int
	// Settings are settings of the server on top of its defaults.
	Settings map[string]string
	// InitArgs are further arguments of initdb, for a new data directory.
	InitArgs []string
}

// A Server is a PostgreSQL server. Its methods must not be called concurrently.
type Server struct {
	conf     Config
	dir      string
	bin      string
	user     *account // nil: the user of this process
	temp     bool
	shell    *exec.Cmd
	leash    io.WriteCloser // its end ends the server
	ended    chan error
	postgres int // process id of the server; 0: it does not run
}

// Start makes the data directory if there is none, starts the server and waits
// until it answers.
func Start(ctx context.Context, c Config) (*Server, error) {
	bin, err := programs(ctx)
	if err != nil {
		return nil, err
	}
	s := &Server{conf: c, dir: c.Dir, bin: bin}
	if s.user, err = serviceUser(); err != nil {
		return nil, err
	}
	if err := s.makeDir(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("pgtest: %w", err), s.Close())
	}
	if err := s.Resume(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// makeDir makes the directory and a cluster in it, unless it holds one.
func (s *Server) makeDir(ctx context.Context) error {
	if err := s.makePlace(); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(s.data(), "PG_VERSION")); err == nil {
		return nil
	}
	// The new files need no sync: until the first answer nothing is promised.
	args := append([]string{"-D", s.data(), "-U", owner, "-A", "trust", "-E", "UTF8", "--locale=C", "-N"}, s.conf.InitArgs...)
	return s.run(ctx, "initdb", args...)
}

// makePlace makes the directory and finds a port.
func (s *Server) makePlace() (err error) {
	if s.dir == "" {
		s.temp = true
		if s.dir, err = os.MkdirTemp("", "ringi-pg-"); err != nil {
			return err
		}
	}
	if s.dir, err = filepath.Abs(s.dir); err != nil {
		return err
	}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	if err := s.user.own(s.dir); err != nil {
		return err
	}
	if s.conf.Port == 0 {
		if s.conf.Port, err = freePort(); err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// run runs a program of PostgreSQL as the service user.
func (s *Server) run(ctx context.Context, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, program), args...)
	s.user.become(cmd)
	cmd.Dir = s.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", program, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// leashScript starts the server, waits for the end of its standard input and
// then ends the server at once.
const leashScript = `"$@" </dev/null & pid=$!
cat >/dev/null
kill -QUIT $pid 2>/dev/null
wait $pid`

// Resume starts the server again after Stop or Crash, on the same port, and
// waits until it answers.
func (s *Server) Resume(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for {
		err := s.spawn()
		if err == nil {
			err = s.await(ctx)
		}
		if err == nil {
			return nil
		}
		// Processes of the crashed server may still be ending.
		if !strings.Contains(err.Error(), "shared memory") || ctx.Err() != nil {
			return fmt.Errorf("pgtest: start: %w", err)
		}
	}
}

func (s *Server) spawn() error {
	args := []string{
		"-c", leashScript, "sh", filepath.Join(s.bin, "postgres"), "-D", s.data(), "-k", s.dir, "-p", strconv.Itoa(s.conf.Port),
		"-c", "listen_addresses=127.0.0.1", "-c", "fsync=on", "-c", "max_connections=100", "-c", "shared_buffers=64MB",
	}
	names := make([]string, 0, len(s.conf.Settings))
	for name := range s.conf.Settings {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		args = append(args, "-c", name+"="+s.conf.Settings[name])
	}
	log, err := os.OpenFile(s.logFile(), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command("sh", args...)
	s.user.become(cmd)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, log, log
	cmd.SysProcAttr.Setpgid = true // a stop that a terminal sends is for its starter to pass on
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
	return string(text)
}

// await waits until the server that was just started answers.
func (s *Server) await(ctx context.Context) error {
	for {
		pid := s.pid()
		if pid != 0 {
			conn, err := pgconn.Connect(ctx, s.URL("postgres"))
			if err == nil {
				s.postgres = pid
				return conn.Close(ctx)
			}
		}
		if text := s.Log(); strings.Contains(text, "FATAL:") && pid == 0 {
			return errors.Join(errors.New(strings.TrimSpace(text)), s.release())
		}
		if err := pause(ctx); err != nil {
			return fmt.Errorf("it did not answer: %w\n%s", err, s.Log())
		}
	}
}

// pid is the process that holds the data directory; 0 when there is none.
func (s *Server) pid() int {
	text, err := os.ReadFile(filepath.Join(s.data(), "postmaster.pid"))
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil || syscall.Kill(pid, 0) != nil {
		return 0
	}
	return pid
}

// PID is the process id of the server, to be stopped and continued by a test;
// 0 when it does not run.
func (s *Server) PID() int { return s.postgres }

// Port is where the server listens on 127.0.0.1.
func (s *Server) Port() int { return s.conf.Port }

// URL is the address of a database, over TCP.
func (s *Server) URL(database string) string {
	return fmt.Sprintf("postgres://%s@127.0.0.1:%d/%s?sslmode=disable", owner, s.conf.Port, database)
}

// SocketURL is the address of a database, over the socket.
func (s *Server) SocketURL(database string) string {
	return fmt.Sprintf("postgres://%s@/%s?host=%s&port=%d&sslmode=disable", owner, database, s.dir, s.conf.Port)
}

// Exec runs SQL text in a database; several statements are one transaction.
func (s *Server) Exec(ctx context.Context, database, text string) error {
	conn, err := pgconn.Connect(ctx, s.URL(database))
	if err != nil {
		return fmt.Errorf("pgtest: %w", err)
	}
	_, err = conn.Exec(ctx, text).ReadAll()
	return errors.Join(err, conn.Close(ctx))
}

// Standby makes a copy of the server that follows it, and starts that. A
// statement of pg_promote on it ends the following.
func (s *Server) Standby(ctx context.Context) (*Server, error) {
	follower := &Server{bin: s.bin, user: s.user, conf: Config{Settings: s.conf.Settings}}
	err := follower.makePlace()
	if err == nil {
		err = follower.run(ctx, "pg_basebackup", "-D", follower.data(), "-R", "-X", "stream", "-c", "fast", "-N",
			"-h", "127.0.0.1", "-p", strconv.Itoa(s.conf.Port), "-U", owner)
	}
	if err == nil {
		err = follower.Resume(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("pgtest: standby: %w", err), follower.Close())
	}
	return follower, nil
}

// Stop ends the server as an administrator does: connections are ended, what
// is under way is rolled back.
func (s *Server) Stop() error { return s.end(syscall.SIGINT) }

// Crash ends all processes of the server at once; the next start recovers from
// its log, as after a power cut.
func (s *Server) Crash() error { return s.end(syscall.SIGQUIT) }

func (s *Server) end(signal syscall.Signal) error {
	if s.postgres == 0 {
		return nil
	}
	// It may have ended by itself.
	if err := syscall.Kill(s.postgres, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("pgtest: end: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	for s.pid() == s.postgres {
		if err := pause(ctx); err != nil {
			return fmt.Errorf("pgtest: the server does not end: %w\n%s", err, s.Log())
		}
	}
	s.postgres = 0
	return s.release()
}

// release ends the shell between.
func (s *Server) release() error {
	if s.shell == nil {
		return nil
	}
	err := s.leash.Close()
	<-s.ended // says how the server ended, which its end was asked for
	s.shell = nil
	return err
}

// Close stops the server and removes a temporary directory. It is idempotent.
func (s *Server) Close() error {
	err := errors.Join(s.Stop(), s.release())
	if s.temp {
		err = errors.Join(err, os.RemoveAll(s.dir))
	}
	return err
}

// pause waits until a condition is looked at again.
func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(lookEvery):
		return nil
	}
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	return port, l.Close()
}
