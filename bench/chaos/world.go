package chaos

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ringiflow/ringi/child"
	"github.com/ringiflow/ringi/outbox"
)

// What a process is for.
const (
	roleProducer = "producer"
	roleRelay    = "relay"
	roleConsumer = "consumer"
	roleBroker   = "broker"
)

const (
	// relayLease is how long a relay that died holds its messages: below the time for
	// which faults stop a relay.
	relayLease = "2s"
	// relayPoll and relayBatch keep batches small, so that a kill finds many of them.
	relayPoll  = "100ms"
	relayBatch = "50"

	// idleLimit is how long a process that is stopped in the middle of a transaction
	// keeps its locks, in milliseconds.
	idleLimit = "3000"

	// restartPause is how long a process that ended by itself stays away, as under a
	// supervisor.
	restartPause = 200 * time.Millisecond

	// readyWithin bounds the start of the broker.
	readyWithin = time.Minute

	// firstPort and lastPort bound the ports of the broker. The system gives none of
	// them to connections, so that one can be taken again.
	firstPort, lastPort = 20_000, 30_000

	// dropTime bounds the removal of the schema, which is done also after Ctrl-C.
	dropTime = 30 * time.Second
)

// relayGivesUp are the exit codes with which ringi relay ends when its database is
// away at its start: it cannot be reached, or does not say what it holds.
// constant: only read.
var relayGivesUp = []int{10, 3}

// A server is a PostgreSQL server of the rig's own.
type server struct {
	url    string
	crash  func() error
	resume func(context.Context) error
	close  func() error
}

// A world is everything that runs.
type world struct {
	Config
	dir      string
	family   string
	database string // with the schema
	sink     string
	fail     func(error)
	endLife  context.CancelFunc
	life     context.Context
	keeping  sync.WaitGroup

	own     *server // nil: the database is somebody else's
	drop    func() error
	members map[string][]*member
	ledger  *ledger
	count   counts

	telling sync.Mutex
	began   time.Time
}

// A member is a process that is kept running.
type member struct {
	mu   sync.Mutex // of the process
	p    *child.Process
	role string
	away bool       // it was ended, and is to stay so
	fell chan error // it ended by itself
}

func memberName(role string, n int) string { return fmt.Sprintf("%s-%d", role, n+1) }

// newWorld prepares the directory; nothing runs yet.
func newWorld(ctx context.Context, c Config, fail func(error)) (*world, error) {
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return nil, err
	}
	w := &world{Config: c, dir: dir, fail: fail, members: map[string][]*member{}, began: c.Now()}
	w.family = "Chaos" + strings.ReplaceAll(outbox.NewID(c.Now()), "-", "") + "n"
	// Also after Ctrl-C one ends after the other.
	w.life, w.endLife = context.WithCancel(context.WithoutCancel(ctx))
	return w, nil
}

func (w *world) now() time.Time { return w.Now() }

// tell tells the story.
func (w *world) tell(format string, args ...any) {
	w.telling.Lock()
	defer w.telling.Unlock()
	fmt.Fprintf(w.Story, "%7.1f s  %s\n", w.now().Sub(w.began).Seconds(), fmt.Sprintf(format, args...))
}

// open starts everything: the database, its tables, the broker, and those who use them.
func (w *world) open(ctx context.Context) error {
	if err := w.openDatabase(ctx); err != nil {
		return err
	}
	w.sink = w.Sink
	if w.sink == "" {
		if err := w.openBroker(ctx); err != nil {
			return fmt.Errorf("start a NATS server: %w", err)
		}
	}
	if _, err := sources(w.sink, w.family); err != nil {
		return err
	}
	every := time.Second * producers / time.Duration(w.Rate)
	for n := range consumers {
		w.add(roleConsumer, n, "bench", "chaos-member", roleConsumer, "--sink", w.sink, "--ledger", w.ledgerOf(roleConsumer, n))
	}
	for n := range relays {
		name := memberName(roleRelay, n)
		w.addPlain(roleRelay, n, "relay", "--database", w.database, "--outbox", withParam(w.sink, "source", name),
			"--outbox-lease", relayLease, "--outbox-poll", relayPoll, "--outbox-batch", relayBatch)
	}
	for n := range producers {
		w.add(roleProducer, n, "bench", "chaos-member", roleProducer, "--ledger", w.ledgerOf(roleProducer, n), "--every", every.String())
	}
	for _, role := range []string{roleConsumer, roleRelay, roleProducer} {
		for _, m := range w.members[role] {
			if err := w.start(ctx, m); err != nil {
				return err
			}
		}
	}
	return nil
}

// openDatabase starts the server unless one is named, and makes the tables in a
// schema of their own.
func (w *world) openDatabase(ctx context.Context) error {
	url := w.Database
	if url == "" {
		own, err := startDatabase(ctx)
		if err != nil {
			return fmt.Errorf("start a PostgreSQL server: %w", err)
		}
		w.own, url = own, own.url
	}
	schema := strings.ToLower("ringi_" + w.family)
	w.drop = func() error {
		if w.own != nil {
			return nil // it goes with the server
		}
		ctx, cancel := context.WithTimeout(context.Background(), dropTime)
		defer cancel()
		return execOnce(ctx, url, "drop schema "+schema+" cascade")
	}
	if err := execOnce(ctx, url, "create schema "+schema); err != nil {
		return fmt.Errorf("make a schema: %w", err)
	}
	w.database = withParam(withParam(url, "search_path", schema), "idle_in_transaction_session_timeout", idleLimit)
	pool, err := pgxpool.New(ctx, w.database)
	if err != nil {
		return err
	}
	w.ledger = &ledger{pool: pool, seen: func() string { return outbox.NewID(w.now()) }}
	return w.ledger.makeTables(ctx)
}

func execOnce(ctx context.Context, url, statement string) error {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	_, err = pool.Exec(ctx, statement)
	return err
}

// openBroker starts the NATS server, on a port that it keeps.
func (w *world) openBroker(ctx context.Context) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	w.addPlain(roleBroker, 0, "bench", "chaos-member", roleBroker, "--dir", filepath.Join(w.dir, "nats"), "--port", strconv.Itoa(port))
	broker := w.members[roleBroker][0]
	broker.p.Announces = true
	if err := w.start(ctx, broker); err != nil {
		return err
	}
	w.sink = fmt.Sprintf("nats://127.0.0.1:%d?stream=%s", port, stream)
	return nil
}

// freePort finds a port of which the system makes no use by itself.
func freePort() (port int, err error) {
	for port = firstPort + os.Getpid()%(lastPort-firstPort); port < lastPort+lastPort-firstPort; port++ {
		l, listenErr := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if listenErr == nil {
			return port, l.Close()
		}
		err = listenErr
	}
	return 0, err
}

// ledgerOf is the file in which a process writes what only it knows.
func (w *world) ledgerOf(role string, n int) string {
	return filepath.Join(w.dir, memberName(role, n)+ledgerSuffix)
}

// add adds a process of the rig's own kind.
func (w *world) add(role string, n int, args ...string) {
	w.addPlain(role, n, append(args, "--name", memberName(role, n), "--database", w.database, "--family", w.family)...)
}

// addPlain adds a process, which runs from the first start on.
func (w *world) addPlain(role string, n int, args ...string) {
	m := &member{role: role, fell: make(chan error, 1)}
	name := memberName(role, n)
	m.p = &child.Process{
		Life: w.life, Name: name, Binary: w.Binary, Args: args, Dir: w.dir, Log: filepath.Join(w.dir, name+".log"),
		Died: func(err error) { m.fell <- err },
	}
	w.members[role] = append(w.members[role], m)
	w.keeping.Go(func() { w.keep(m) })
}

// start starts a process, and waits for the broker to take messages.
func (w *world) start(ctx context.Context, m *member) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.away = false
	return m.start(ctx)
}

func (m *member) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	_, err := m.p.Start(ctx)
	return err
}

// keep starts a process again that ended because its database was away, as a
// supervisor does. Any other end by itself ends the rig.
func (w *world) keep(m *member) {
	for {
		select {
		case <-w.life.Done():
			return
		case err := <-m.fell:
			m.mu.Lock()
			if m.role != roleRelay || !slices.Contains(relayGivesUp, m.p.ExitCode()) {
				w.fail(err)
			} else if pause(w.life, restartPause) == nil && !m.away {
				if err := m.start(w.life); err != nil {
					w.fail(err)
				}
			}
			m.mu.Unlock()
		}
	}
}

// end asks the processes of a role to end, and waits.
func (w *world) end(role string) error {
	var errs []error
	for _, m := range w.members[role] {
		m.mu.Lock()
		m.away = true
		errs = append(errs, m.p.Stop())
		m.mu.Unlock()
	}
	return errors.Join(errs...)
}

// close ends everything.
func (w *world) close() error {
	var errs []error
	for _, role := range []string{roleProducer, roleRelay, roleConsumer, roleBroker} {
		errs = append(errs, w.end(role))
	}
	w.endLife()
	w.keeping.Wait()
	if w.ledger != nil {
		w.ledger.pool.Close()
	}
	if w.drop != nil {
		errs = append(errs, w.drop())
	}
	if w.own != nil {
		errs = append(errs, w.own.close())
	}
	return errors.Join(errs...)
}
