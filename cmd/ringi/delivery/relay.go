package delivery

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ringiflow/ringi/api"
	"github.com/ringiflow/ringi/cmd/ringi/cli"
	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/crash"
	"github.com/ringiflow/ringi/outbox/wal"
	"github.com/ringiflow/ringi/relay"
)

func (p program) relayCommand() *cobra.Command {
	var points bool
	var metrics string
	cmd := &cobra.Command{
		Use: "relay", Short: "Deliver the messages of a service's outbox", Args: cobra.NoArgs,
		Long: `Delivers the messages of an outbox: of any database that has the table (ringi
outbox schema prints it), at least once and in order per aggregate. Each
--outbox is a destination; those after the first have a name, for the messages
that name them. Passwords, secrets and keys are named by files.

  stdout
  file:PATH
  kafka://HOST:PORT[,…]      ?topic-prefix= source= max-bytes= headers=debezium tls=true
                              user= password-file= sasl=PLAIN|SCRAM-SHA-256|SCRAM-SHA-512
  nats://HOST[:PORT][,…]     ?stream= subject-prefix= source= max-bytes= creds=FILE
  nats+tls://…               the same over TLS
  amqp://HOST[:PORT][/VHOST] ?exchange= key-prefix= source= max-bytes= user=
                              password-file=   RabbitMQ; amqps:// over TLS
  redis://HOST[:PORT][/DB]   ?stream-prefix= source= max-bytes= user= password-file=
                              keep=ENTRIES replicas=N cluster=true; rediss:// over TLS
  webhook+https://HOST/PATH  ?secret-file= allow-network=CIDR source= max-bytes= parallel=
  ringi+https://HOST         ?key-file=   starts runs, and sends all else as events

With --source wal PostgreSQL's write-ahead log says which messages were committed,
and none waits for the next poll. That needs wal_level = logical, a role with the
attribute REPLICATION that owns the table, and a connection to the server itself.
What is missing is said, and polling does it until then.

Any number may run on one PostgreSQL, MariaDB or MySQL database: they share the
work, and one that stops is replaced when its lease ends. After SIGTERM or SIGINT
it claims nothing new, finishes what is being sent within 30 s and exits with 0.`,
		Example: `  ringi relay --database postgres://shop@db/shop --outbox 'kafka://kafka:9092?topic-prefix=shop.'
  ringi relay --database postgres://shop@db/shop --outbox nats://nats --source wal
  ringi relay --database sqlite:shop.db --outbox file:events.ndjson --outbox 'hooks=webhook+https://example.org/in?secret-file=secret'`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if points {
				return p.printCrashPoints()
			}
			p.Drain()
			cli.CollectLess()
			return p.relay(cmd.Context(), metrics)
		},
	}
	cli.SettingFlags(cmd, slices.Concat([]string{cli.SetDatabase, cli.SetOutbox, cli.SetLogFormat}, cli.TuningSettings())...)
	cmd.Flags().StringVar(&metrics, "metrics", "", "serve /metrics for Prometheus at this address, as in 127.0.0.1:9464")
	cmd.Flags().BoolVar(&points, "list-crashpoints", false, "list the places at which a binary built with -tags crashpoints kills itself when RINGI_CRASHPOINT names one")
	return cmd
}

func (p program) printCrashPoints() error {
	out := struct {
		CrashPoints []string `json:"crashPoints"`
	}{crash.Points()}
	var t cli.Table
	for _, point := range out.CrashPoints {
		t.Row(point)
	}
	return p.Print(out, t)
}

// relay runs until ctx ends.
func (p program) relay(ctx context.Context, address string) (err error) {
	if p.Get(cli.SetOutbox) == "" || p.Get(cli.SetOutbox) == cli.OutboxOff {
		return cli.Usage("name one with --outbox: "+relay.Forms, "there is no destination")
	}
	db, err := p.openOutbox(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := db.Spare(ctx); err != nil {
		return err
	}
	log, metrics := p.Logger(), relay.NewMetrics(db.Outbox.Backlog, p.Now)
	journal := &relay.Journal{Log: log, Now: p.Now}
	written, err := OpenLog(p.Program, p.databaseName(), journal, metrics)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, written.Close()) }()
	relays, sinks, err := OpenRelays(p.Program, p.Get(cli.SetOutbox), outbox.RelayConfig{Source: db.Outbox, Fleet: db.Fleet, Feed: written.Feed()}, journal, metrics)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, relay.CloseAll(sinks)) }()
	stop, err := serveMetrics(address, metrics.Handler(), log)
	if err != nil {
		return err
	}
	defer stop()
	defer written.Begin(ctx)()
	log.Info("relaying", "database", db.Name, "destinations", len(sinks))
	go func() {
		relay.Announce(ctx, log, sinks)
		relay.Warn(ctx, log, db.Outbox, sinks)
		<-ctx.Done()
		log.Info("draining", "for at most", cli.DrainTime)
	}()
	return relays.RunUntil(ctx, cli.DrainTime)
}

// OpenLog makes ready to read the write-ahead log, if the settings want it; else what
// it returns tells nothing.
func OpenLog(p *cli.Program, database string, journal *relay.Journal, m *relay.Metrics) (*relay.Log, error) {
	if p.Get(cli.SetSource) != cli.SourceWAL {
		return nil, nil
	}
	limit, _ := strconv.ParseInt(p.Get(cli.SetWALLimit), 10, 64) // it was checked
	lines := &relay.LogJournal{Journal: journal}
	log, err := relay.OpenLog(database, relay.LogConfig{MostWAL: limit << 20, Now: p.Now, Observe: func(r wal.Report) {
		lines.Observe(r)
		m.ObserveLog(r)
	}})
	if errors.Is(err, relay.ErrNoLog) {
		return nil, cli.Usage("leave --source out", "%v", err)
	}
	return log, err
}

// OpenRelays opens the destinations and the relays to them.
func OpenRelays(p *cli.Program, text string, c outbox.RelayConfig, journal *relay.Journal, m *relay.Metrics) (*relay.Relays, []*relay.Sink, error) {
	places, err := relay.ParsePlaces(text)
	if err != nil {
		return nil, nil, cli.Usage("", "%v", err)
	}
	sinks, err := relay.Opener{Stdout: p.Stdout, Path: p.Path, Ringi: p.RingiSink}.Open(places)
	if place := (*fs.PathError)(nil); errors.As(err, &place) {
		return nil, nil, err // it is written well, and the place is not good
	}
	if err != nil {
		return nil, nil, cli.Usage("ringi help relay shows how they are written", "%v", err)
	}
	number := func(name string) int { n, _ := strconv.Atoi(p.Get(name)); return n } // both were checked
	span := func(name string) time.Duration { d, _ := time.ParseDuration(p.Get(name)); return d }
	c.Batch, c.Attempts = number(cli.SetOutboxBatch), number(cli.SetOutboxAttempts)
	c.Lease, c.PollMost, c.Retention = span(cli.SetOutboxLease), span(cli.SetOutboxPoll), span(cli.SetOutboxKeep)
	c.AfterLast = outbox.Policy(slices.Index(cli.AfterLast(), p.Get(cli.SetOutboxAfter)))
	host, _ := os.Hostname() // only for people who look at the table
	c.Name = fmt.Sprintf("%s-%d", host, os.Getpid())
	c.Observe = func(r outbox.Report) {
		journal.Observe(r)
		m.Observe(r)
	}
	relays, err := relay.New(c, sinks...)
	if err != nil {
		return nil, nil, errors.Join(err, relay.CloseAll(sinks))
	}
	return relays, sinks, nil
}

// serveMetrics answers scrapes at an address; empty is none.
func serveMetrics(address string, numbers http.Handler, log *slog.Logger) (stop func(), err error) {
	if address == "" {
		return func() {}, nil
	}
	if numbers, err = api.Guard("", numbers); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, cli.Usage("as in 127.0.0.1:9464", "--metrics: %v", err)
	}
	server := &http.Server{Handler: numbers, ReadHeaderTimeout: cli.HeaderTime}
	go func() { _ = server.Serve(listener) }() // it ends with its listener
	log.Info("metrics", "url", "http://"+listener.Addr().String()+"/metrics")
	return func() { _ = server.Close() }, nil // nothing is owed to a scrape
}

// openOutbox opens the outbox in the database that the setting names.
func (p program) openOutbox(ctx context.Context) (*relay.Database, error) {
	db, err := relay.Open(ctx, p.databaseName())
	switch {
	case err == nil:
		return db, nil
	case errors.Is(err, relay.ErrAway):
		return nil, &cli.Ending{Code: cli.ExitUnreachable, Message: err.Error(), Err: err}
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, relay.ErrNoOutbox):
		return nil, &cli.Ending{Code: cli.ExitNotFound, Message: err.Error(), Hint: "--database names the database of the service: sqlite:PATH, postgres://… or mysql://…", Err: err}
	}
	return nil, err
}

// databaseName is the database that the setting names, a file by its whole path.
func (p program) databaseName() string {
	name := p.Get(cli.SetDatabase)
	if path, file := strings.CutPrefix(name, "sqlite:"); file {
		name = "sqlite:" + p.Path(path)
	}
	return name
}
