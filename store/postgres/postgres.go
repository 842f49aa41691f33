package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	pgoutbox "github.com/ringiflow/ringi/outbox/postgres"
	"github.com/ringiflow/ringi/store"
)

// The defaults of Config.
const (
	DefaultWriters = 6                // committers, claims, heartbeats, sweeps and some to spare
	DefaultReaders = 4                // lists and loads beside each other
	DefaultTimeout = 15 * time.Second // longer than statementTime, so that the server's answer comes first
)

// What the server grants our transactions. A node that stopped in the middle
// of one lets go of its locks after idleTime.
const (
	statementTime = 10 * time.Second
	lockTime      = 2 * time.Second
	idleTime      = 5 * time.Second
)

// Config configures a Store. Only URL must be set.
type Config struct {
	// URL is postgres://user:password@host:port/database with the parameters
	// that libpq knows, among them sslmode, search_path and several hosts, of
	// which the one that takes writes is used. A further parameter,
	// default_query_exec_mode=exec, says that no prepared statements can be kept,
	// as behind a pooler in transaction mode; it is also found out, by an error.
	URL string
	// Writers and Readers are how many connections there may be for changes and
	// for reading; 0 is DefaultWriters and DefaultReaders.
	Writers, Readers int
	// Timeout is how long an answer of the server is waited for once a request
	// was sent; 0 is DefaultTimeout.
	Timeout time.Duration
	// Foreign says that the times which are passed in are not the database's, as
	// in a test with a clock of its own. A node that is frozen while its commit is
	// under way may then write rows that others find only after ten minutes.
	Foreign bool
	// Warn is told, once per reason, when the server is set up so that what was
	// answered may be lost. Nil tells nobody.
	Warn func(text string)
}

func (c *Config) setDefaults() {
	if c.Writers == 0 {
		c.Writers = DefaultWriters
	}
	if c.Readers == 0 {
		c.Readers = DefaultReaders
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.Warn == nil {
		c.Warn = func(string) {}
	}
}

// Store is a PostgreSQL database. It fulfils all five contracts of package
// store and is safe for concurrent use, by any number of processes.
type Store struct {
	conf    Config
	config  *pgconn.Config
	writers *pool
	readers *pool
	unnamed atomic.Bool // prepared statements do not stay
	warned  sync.Map    // reasons that were told
	floors  floors
	queues  queues
	relay   *sql.DB
	outbox  *pgoutbox.Outbox
}

var (
	_ store.Store     = (*Store)(nil)
	_ store.Records   = (*Store)(nil)
	_ store.Catalog   = (*Store)(nil)
	_ store.Events    = (*Store)(nil)
	_ store.Inspector = (*Store)(nil)
)

// Open connects, makes or migrates the tables, and returns the store. Errors
// say what to do.
func Open(ctx context.Context, c Config) (*Store, error) {
	s, err := open(c)
	if err != nil {
		return nil, err
	}
	if err := s.migrate(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("postgres: open %s: %w", s.name(), err), s.Close())
	}
	return s, nil
}

// clientEncoding is what texts are sent in. A role or a database may be set to
// another one: then the server would read ours as that, and store something else.
const clientEncoding = "client_encoding"

// execMode is the parameter that other programs with the same driver know.
const execMode = "default_query_exec_mode"

func open(c Config) (*Store, error) {
	c.setDefaults()
	if c.URL == "" {
		return nil, errors.New("postgres: no database is named; give postgres://user:password@host:port/database")
	}
	config, err := pgconn.ParseConfig(c.URL)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	s := &Store{conf: c, config: config, floors: floors{foreign: c.Foreign}}
	switch mode := config.RuntimeParams[execMode]; mode {
	case "", "cache_statement":
	case "exec", "cache_describe", "describe_exec", "simple_protocol":
		s.unnamed.Store(true)
	default:
		return nil, fmt.Errorf("postgres: %s=%s is not known: use exec behind a pooler in transaction mode, else leave it out", execMode, mode)
	}
	delete(config.RuntimeParams, execMode)
	config.RuntimeParams[clientEncoding] = "UTF8"
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "ringi"
	}
	if config.ConnectTimeout == 0 || config.ConnectTimeout > connectTime {
		config.ConnectTimeout = connectTime
	}
	if config.ValidateConnect == nil && len(config.Fallbacks) > 0 {
		config.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	config.DialFunc = dial
	if s.relay, err = openRelay(c.URL); err != nil {
		return nil, err
	}
	s.outbox = pgoutbox.New(s.relay)
	s.writers = newPool(config, c.Writers, s.connected)
	s.readers = newPool(config, c.Readers, s.connected)
	return s, nil
}

// name is the database without its password.
func (s *Store) name() string {
	return fmt.Sprintf("%s on %s port %d", s.config.Database, s.config.Host, s.config.Port)
}

// The settings of our transactions. Where the session is our own they are set
// once, else with every message for its transaction. Plans of kept statements
// are made once, perhaps when a table was still empty; without the pins such a
// plan would read the whole table for ever after. The server's end of the
// connection is to notice within seconds that ours is gone.
const (
	textSettings = `select set_config('statement_timeout', $1::text, LOCAL), set_config('lock_timeout', $2::text, LOCAL),
		set_config('idle_in_transaction_session_timeout', $3::text, LOCAL),
		set_config('enable_seqscan', 'off', LOCAL), set_config('enable_hashjoin', 'off', LOCAL),
		set_config('enable_mergejoin', 'off', LOCAL), set_config('enable_bitmapscan', 'off', LOCAL), set_config('jit', 'off', LOCAL), ` + textFlushed
	// textFlushed: nothing is answered before its flush to the disk, not an event,
	// a definition or a claim either. What commits later and is flushed flushes
	// what came before it, but it may not come.
	textFlushed = `set_config('synchronous_commit', case current_setting('synchronous_commit') when 'off' then 'on' else current_setting('synchronous_commit') end, LOCAL)`
	// textSession is for sessions of our own. Conditions of writes are read in each
	// statement anew; under a stricter isolation a transaction would fail instead
	// of waiting for another one and seeing what it did.
	textSession = `, set_config('default_transaction_isolation', 'read committed', LOCAL), set_config('tcp_keepalives_idle', '5', LOCAL), set_config('tcp_keepalives_interval', '2', LOCAL), set_config('tcp_keepalives_count', '3', LOCAL)`
)

// settings are the settings for the session, or for one transaction.
func settings(session bool) *call {
	c := &call{statement: statement(strings.ReplaceAll(textSettings, "LOCAL", "true"))}
	if session {
		c.statement = statement(strings.ReplaceAll(textSettings+textSession, "LOCAL", "false"))
	}
	for _, d := range []time.Duration{statementTime, lockTime, idleTime} {
		c.text(fmt.Sprintf("%dms", d.Milliseconds()))
	}
	return c
}

// framed puts before calls what their transaction needs to have set.
func (s *Store) framed(calls []*call) []*call {
	if !s.unnamed.Load() {
		return calls
	}
	return append([]*call{settings(false)}, calls...)
}

// durabilityText reads what decides whether an answer survives the power.
const durabilityText statement = `select current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit'),
	current_setting('server_encoding'), current_setting('default_transaction_isolation')`

// connected sets up a new connection. What lay below the floors may have come
// back: every restore and every failover breaks all connections.
func (s *Store) connected(ctx context.Context, c *conn) error {
	s.floors.reset()
	s.queues.forget()
	var encoding string
	durability := &call{statement: durabilityText, row: func(row cells) error {
		encoding = row.text(3)
		if level := row.text(4); level != "read committed" && s.unnamed.Load() {
			s.warn(fmt.Sprintf("the database's setting default_transaction_isolation is %s, which makes commits fail that would only have waited; set it to read committed", level))
		}
		for i, setting := range []string{"fsync", "full_page_writes", "synchronous_commit"} {
			// A synchronous_commit that is off is overridden, see textFlushed.
			if value := row.text(i); value == "off" && i < 2 || value == "local" {
				s.warn(fmt.Sprintf("the database's setting %s is %s: what was answered may be lost when its machine fails; set it to on", setting, value))
			}
		}
		return nil
	}}
	calls := []*call{durability}
	if !s.unnamed.Load() {
		calls = append(calls, settings(true))
	}
	if err := c.run(ctx, false, calls...); err != nil {
		return err
	}
	if encoding != "UTF8" {
		return fmt.Errorf("the database's encoding is %s: make one with encoding UTF8", encoding)
	}
	return nil
}

// warn tells a reason once.
func (s *Store) warn(text string) {
	if _, told := s.warned.LoadOrStore(text, true); !told {
		s.conf.Warn(text)
	}
}

// Committers is how many batches an engine had best have in the making: while the
// server writes one, the engine decides the next. Measured, see docs/performance.md.
func (s *Store) Committers() int { return 2 }

// Close waits for calls under way and closes the connections.
func (s *Store) Close() error {
	s.writers.close()
	s.readers.close()
	return s.relay.Close()
}

// patience is a context for waiting for an answer. It does not end with its
// parent: what was sent will be done or not whatever we do, and the answer says
// which.
func (s *Store) patience(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), s.conf.Timeout)
}

// with runs do on a connection of the pool. When the server does not keep
// prepared statements, which do may find out as long as nothing was done, it
// is run again without them.
func (s *Store) with(ctx context.Context, p *pool, do func(ctx context.Context, c *conn) error) error {
	for {
		c, err := p.take(ctx)
		if err != nil {
			return err
		}
		unnamed := s.unnamed.Load()
		waiting, cancel := s.patience(ctx)
		err = do(waiting, c)
		cancel()
		p.give(c)
		switch faultOf(err) {
		case faultUnnamed:
			if !unnamed {
				s.forget()
				continue
			}
		case faultStandby:
			s.writers.suspect()
			s.readers.suspect()
		}
		return err
	}
}

// forget stops keeping prepared statements: somebody between us and the server
// gives us another of its connections for each transaction.
func (s *Store) forget() {
	s.unnamed.Store(true)
	s.warn("the server forgets prepared statements, as behind a pooler in transaction mode; they are not used any more: add " + execMode + "=exec to the URL to say so from the start")
}

// change runs calls that change something as one transaction.
func (s *Store) change(ctx context.Context, calls ...*call) error {
	return s.with(ctx, s.writers, func(ctx context.Context, c *conn) error {
		return sent(c, c.run(ctx, !s.unnamed.Load(), s.framed(calls)...))
	})
}

// read runs calls that only read.
func (s *Store) read(ctx context.Context, calls ...*call) error {
	return away(s.with(ctx, s.readers, func(ctx context.Context, c *conn) error {
		return c.run(ctx, !s.unnamed.Load(), s.framed(calls)...)
	}))
}

// view runs calls that only read and see one moment.
func (s *Store) view(ctx context.Context, calls ...*call) error {
	all := append([]*call{{statement: `begin transaction isolation level repeatable read, read only`}}, s.framed(calls)...)
	all = append(all, &call{statement: `commit`})
	return away(s.with(ctx, s.readers, func(ctx context.Context, c *conn) error {
		return c.run(ctx, !s.unnamed.Load(), all...)
	}))
}

// list runs a read whose text was put together for this call and is not kept.
func (s *Store) list(ctx context.Context, text string, a args, row func(cells) error) error {
	return away(s.with(ctx, s.readers, func(ctx context.Context, c *conn) error {
		return c.run(ctx, false, &call{statement: statement(text), args: a, row: row})
	}))
}
