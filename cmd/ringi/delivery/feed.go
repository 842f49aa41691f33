package delivery

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/cmd/ringi/cli"
	"github.com/ringiflow/ringi/feed"
	"github.com/ringiflow/ringi/inbox"
	"github.com/ringiflow/ringi/relay"
)

// inboxSuffix is how the file of an inbox ends beside a database.
const inboxSuffix = ".inbox"

func (p program) feedCommand() *cobra.Command {
	var metrics string
	cmd := &cobra.Command{
		Use: "feed", Short: "Bring messages of brokers to runs: as events, or to start them", Args: cobra.NoArgs,
		Long: `Receives messages from brokers and makes of each an event that runs wait for, or the
start of a run, as the file of --feeds says. A message is acknowledged when ringi
has committed what became of it, and has one effect however often it comes: ringi
knows it by its id. ringi serve --feeds does the same inside a server.

  feeds:
    - name: payments                       # what broker and inbox remember it by
      from: kafka://kafka:9092?topic=shop.payment
      when: message.type == "received"     # others are passed over
      event: payment.received              # else the message's own type
      key: ${ message.data.order_id }      # else the message's aggregate id
    - name: orders
      from: nats://nats:4222?stream=ORDERS&subject=orders.placed
      start: order_fulfilment              # version: N for one that is not the latest
      input: ${ message.data }             # else the payload
      key: ${ message.data.order_id }      # else the definition's start.key, else the id

Expressions know message.id, .type, .key, .headers and .data. Sources are written as
the destinations of ringi relay, with the same parameters for TLS, users and files
of passwords:

  kafka://HOST:PORT[,…]      ?topic=T (several) create=true session=45s tls= user= password-file= sasl=
  nats://HOST[:PORT][,…]     ?stream=S subject= (several) ack-wait=30s creds=FILE; nats+tls://
  amqp://HOST[:PORT][/VHOST] ?queue=Q declare=true user= password-file=; amqps://
  redis://HOST[:PORT][/DB]   ?stream=S ack-wait=30s user= password-file= cluster=true; rediss://

All take group=, the group of consumers (RabbitMQ apart); any number of processes may
run the same feeds. Messages of a key are handled in their order. While ringi is away
nothing is received and nothing counted; a message that it refuses ten times
(attempts:), or of which the file's expressions make nothing, is set aside in --inbox.`,
		Example: `  ringi feed --feeds feeds.yaml --server https://ringi.example.com --key-file feed.key
  ringi feed list
  ringi feed retry payments 0198c2d2-7c5e-7a63-9a6c-0f6b5a0d2f11 --feeds feeds.yaml`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p.Drain()
			return p.feed(cmd.Context(), metrics)
		},
	}
	cli.SettingFlags(cmd, cli.SetFeeds, cli.SetInbox, cli.SetDatabase, cli.SetLogFormat)
	cmd.Flags().StringVar(&metrics, "metrics", "", "serve /metrics for Prometheus at this address, as in 127.0.0.1:9464")
	cmd.AddCommand(p.feedListCommand(), p.feedRetryCommand(), p.feedDropCommand(), p.feedDropsCommand())
	return cmd
}

// feed runs until ctx ends.
func (p program) feed(ctx context.Context, address string) (err error) {
	service, err := p.Service()
	if err != nil {
		return err
	}
	log, numbers := p.Logger(), feed.NewMetrics()
	feeds, end, err := OpenFeeds(ctx, p.Program, service, log, numbers)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	if err := feeds.Open(); err != nil {
		return cli.Usage("ringi help feed shows how sources are written", "%v", err)
	}
	stop, err := serveMetrics(address, numbers.Handler(), log)
	if err != nil {
		return err
	}
	defer stop()
	AnnounceFeeds(log, feeds)
	return feeds.Run(ctx)
}

// AnnounceFeeds logs what is received from where.
func AnnounceFeeds(log *slog.Logger, feeds *feed.Feeds) {
	names := feeds.Names()
	for _, name := range slices.Sorted(maps.Keys(names)) {
		log.Info("receiving", "feed", name, "from", names[name])
	}
}

// OpenFeeds reads the file of the setting and opens the inbox, but no source yet. end
// gives everything back.
func OpenFeeds(ctx context.Context, p *cli.Program, service ringi.Service, log *slog.Logger, m feed.Metrics) (_ *feed.Feeds, end func() error, err error) {
	definitions, err := readFeeds(p)
	if err != nil {
		return nil, nil, err
	}
	db, err := feed.OpenBox(ctx, inboxName(p))
	if err != nil {
		return nil, nil, &cli.Ending{Code: cli.ExitUnreachable, Message: err.Error(), Hint: "--inbox names it: sqlite:PATH or postgres://…", Err: err}
	}
	journal := &feed.Journal{Log: log, Now: p.Now}
	feeds, err := feed.New(feed.Config{
		Definitions: definitions, DB: db, Sink: relay.Runs(service), Path: p.Path, Now: p.Now, Trouble: journal.Trouble,
		Observe: func(name string, d inbox.Delivery, outcome inbox.Outcome, err error) {
			journal.Observe(name, d, outcome, err)
			m.Observe(name, d, outcome, err)
		},
	})
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	return feeds, func() error { return errors.Join(feeds.Close(), db.Close()) }, nil
}

func readFeeds(p *cli.Program) ([]feed.Definition, error) {
	file := p.Get(cli.SetFeeds)
	if file == "" {
		return nil, cli.Usage("ringi help feed shows one", "name the file that says what comes from where, --feeds FILE")
	}
	text, err := os.ReadFile(p.Path(file))
	if err != nil {
		return nil, err
	}
	definitions, err := feed.Parse(file, text)
	if err != nil {
		return nil, cli.Usage("ringi help feed shows how feeds are written", "%v", err)
	}
	return definitions, nil
}

// inboxName is the database of the inbox.
func inboxName(p *cli.Program) string {
	name := p.Get(cli.SetInbox)
	if name == "" {
		if name = p.Get(cli.SetDatabase); cli.IsPostgres(name) {
			return name
		}
		return "sqlite:" + p.BesideDatabase() + inboxSuffix
	}
	if path, isFile := strings.CutPrefix(name, "sqlite:"); isFile {
		return "sqlite:" + p.Path(path)
	}
	return name
}

// asideView is a message that was set aside, as programs print it.
type asideView struct {
	Feed       string            `json:"feed"`
	ID         string            `json:"id"`
	Failures   int               `json:"failures"`
	SetAsideAt time.Time         `json:"setAsideAt"`
	Error      string            `json:"error"`
	Headers    map[string]string `json:"headers,omitempty"`
	Body       json.RawMessage   `json:"body,omitempty"`       // if it is JSON
	BodyBase64 []byte            `json:"bodyBase64,omitempty"` // if it is not
}

func (p program) feedListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "List the messages that were set aside", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.withBox(cmd.Context(), func(ctx context.Context, db *sql.DB) error {
				list, err := feed.Aside(ctx, db)
				if err != nil {
					return err
				}
				out := struct {
					Messages []asideView `json:"messages"`
				}{[]asideView{}}
				t := cli.Table{Head: []string{"FEED", "ID", "TRIES", "SET ASIDE", "ERROR"}}
				for _, a := range list {
					v := asideView{Feed: a.Feed, ID: a.ID, Failures: a.Failures, SetAsideAt: a.PoisonedAt, Error: a.LastError, Headers: a.Headers}
					if json.Valid(a.Body) {
						v.Body = a.Body
					} else {
						v.BodyBase64 = a.Body
					}
					out.Messages = append(out.Messages, v)
					t.Row(v.Feed, v.ID, strconv.Itoa(v.Failures), v.SetAsideAt.Format(time.RFC3339), v.Error)
				}
				return p.Print(out, t)
			})
		},
	}
	cli.SettingFlags(cmd, cli.SetInbox, cli.SetDatabase)
	return cmd
}

func (p program) feedRetryCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "retry FEED ID...", Short: "Give messages that were set aside to ringi again", Args: cobra.MinimumNArgs(2),
		Long: `Gives messages that were set aside to ringi again, by the file of --feeds as it is
now. One that fails again stays where it is.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			service, err := p.Service()
			if err != nil {
				return err
			}
			feeds, end, err := OpenFeeds(cmd.Context(), p.Program, service, p.Logger(), feed.NewMetrics())
			if err != nil {
				return err
			}
			for _, id := range args[1:] {
				if err = asideFault(id, feeds.Retry(cmd.Context(), args[0], id)); err != nil {
					break
				}
			}
			if err := errors.Join(err, end()); err != nil {
				return err
			}
			return p.printAsideChange("retry", args, "")
		},
	}
	cli.SettingFlags(cmd, cli.SetFeeds, cli.SetInbox, cli.SetDatabase, cli.SetLogFormat)
	return cmd
}

func (p program) feedDropCommand() *cobra.Command {
	reason := ""
	cmd := &cobra.Command{
		Use: "drop FEED ID...", Short: "Forget messages that were set aside, for good", Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.TrimSpace(reason) == "" {
				return cli.Usage("say why, for those who look at this later", "--reason is missing")
			}
			return p.withBox(cmd.Context(), func(ctx context.Context, db *sql.DB) error {
				for _, id := range args[1:] {
					if err := asideFault(id, feed.Drop(ctx, db, feed.Dropped{At: time.Now(), Feed: args[0], ID: id, Because: reason})); err != nil {
						return err
					}
				}
				return p.printAsideChange("drop", args, reason)
			})
		},
	}
	cli.SettingFlags(cmd, cli.SetInbox, cli.SetDatabase)
	cmd.Flags().StringVar(&reason, "reason", "", "why; it is kept: ringi feed drops")
	return cmd
}

// dropView is a message that was dropped, as programs print it.
type dropView struct {
	At     time.Time `json:"at"`
	Feed   string    `json:"feed"`
	ID     string    `json:"id"`
	Reason string    `json:"reason"`
}

func (p program) feedDropsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "drops", Short: "List the messages that were dropped, and why", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.withBox(cmd.Context(), func(ctx context.Context, db *sql.DB) error {
				list, err := feed.Drops(ctx, db)
				if err != nil {
					return err
				}
				out := struct {
					Drops []dropView `json:"drops"`
				}{[]dropView{}}
				t := cli.Table{Head: []string{"AT", "FEED", "ID", "REASON"}}
				for _, d := range list {
					out.Drops = append(out.Drops, dropView{d.At, d.Feed, d.ID, d.Because})
					t.Row(d.At.Format(time.RFC3339), d.Feed, d.ID, d.Because)
				}
				return p.Print(out, t)
			})
		},
	}
	cli.SettingFlags(cmd, cli.SetInbox, cli.SetDatabase)
	return cmd
}

func (p program) printAsideChange(verb string, args []string, reason string) error {
	out := struct {
		Verb     string   `json:"verb"`
		Feed     string   `json:"feed"`
		Messages []string `json:"messages"`
		Reason   string   `json:"reason,omitempty"`
	}{verb, args[0], args[1:], reason}
	var t cli.Table
	t.Row(verb, args[0], cli.Counted(len(args)-1, "message"), reason)
	return p.Print(out, t)
}

// asideFault gives the error about a message its exit code.
func asideFault(id string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, inbox.ErrNotPoison), errors.Is(err, feed.ErrNoFeed):
		return &cli.Ending{Code: cli.ExitNotFound, Message: fmt.Sprintf("message %s: %v", id, err), Hint: "ringi feed list shows them", Err: err}
	}
	return fmt.Errorf("message %s: %w", id, err)
}

func (p program) withBox(ctx context.Context, do func(context.Context, *sql.DB) error) error {
	db, err := feed.OpenBox(ctx, inboxName(p.Program))
	if err != nil {
		return &cli.Ending{Code: cli.ExitUnreachable, Message: err.Error(), Hint: "--inbox names it: sqlite:PATH or postgres://…", Err: err}
	}
	return errors.Join(do(ctx, db), db.Close())
}
