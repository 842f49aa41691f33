package chaos

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib" // for the inbox

	"github.com/ringiflow/ringi/feed"
	"github.com/ringiflow/ringi/inbox"
	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/nats/natsserver"
	"github.com/ringiflow/ringi/outbox/postgres"
)

const (
	// workTime bounds one unit of work: what waits longer is cut off by a fault.
	workTime = 10 * time.Second

	// troublePause is the pause of a producer after an error.
	troublePause = 100 * time.Millisecond

	// retryFirst and retryMost are the pauses of a consumer after a failure, which is
	// the database's: a message has none of its own here.
	retryFirst = 100 * time.Millisecond
	retryMost  = time.Second

	// knew is what the ledger of a producer calls a commit that it knows of, and
	// unsure one whose outcome it did not learn.
	knew, unsure = "committed", "unknown"

	// dropped is what the ledger of a consumer calls a repeat that the inbox dropped.
	dropped = "repeated"

	// duplicates is how long the rig's own broker remembers ids: hardly, so that the
	// inbox has to know repeats.
	duplicates = 100 * time.Millisecond

	changed = "changed" // the type of every message
)

// A Member is one of the processes, as its command line says it.
type Member struct {
	Role     string // producer, consumer or broker
	Name     string
	Database string
	Family   string        // of aggregate types
	Ledger   string        // a file, for what only the process knows
	Every    time.Duration // of a producer: between two changes
	Sink     string        // of a consumer: what it reads back
	Dir      string        // of the broker
	Port     int           // of the broker

	Now func() time.Time
	// Told gets the line that the process announces.
	Told func(line string)
}

// Run does what the member does until ctx ends.
func (m Member) Run(ctx context.Context) error {
	switch m.Role {
	case roleProducer:
		return m.produce(ctx)
	case roleConsumer:
		return m.consume(ctx)
	case roleBroker:
		return natsserver.Serve(ctx, natsserver.Config{
			Dir: m.Dir, Port: m.Port, Stream: stream, Subjects: []string{outbox.TopicPrefix + ">"}, Duplicates: duplicates,
		}, m.Told)
	}
	return fmt.Errorf("chaos: there is no member %q", m.Role)
}

// A change is what a message says.
type change struct {
	ID  string `json:"id"`
	Key string `json:"key"`
	N   int64  `json:"n"`
}

// produce changes rows and writes messages until ctx ends.
func (m Member) produce(ctx context.Context) (err error) {
	pool, err := pgxpool.New(ctx, m.Database)
	if err != nil {
		return err
	}
	defer pool.Close()
	book, err := os.OpenFile(m.Ledger, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, book.Close()) }()
	for ctx.Err() == nil {
		id := outbox.NewID(m.Now())
		// Also a change under way is finished when the producer is asked to end.
		working, cancel := context.WithTimeout(context.WithoutCancel(ctx), workTime)
		err := makeChange(working, pool, m.Family, m.Name, id, rand.IntN(keys))
		cancel()
		line, rest := knew, m.Every
		if err != nil {
			line, rest = unsure, troublePause
			fmt.Fprintln(os.Stderr, err)
		}
		if _, err := fmt.Fprintln(book, line, id); err != nil {
			return err
		}
		_ = pause(ctx, rest) // its end is the loop's
	}
	return nil
}

// makeChange makes one change of a key, with its message.
func makeChange(ctx context.Context, pool *pgxpool.Pool, family, producer, id string, nth int) error {
	unit := outbox.UnitOfWork[pgx.Tx]{Database: postgres.Pool{Pool: pool}}
	return unit.Do(ctx, func(ctx context.Context, tx pgx.Tx) error {
		c := change{ID: id, Key: key(nth)}
		if err := tx.QueryRow(ctx, `update account set n = n + 1 where key = $1 returning n`, c.Key).Scan(&c.N); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `insert into change (id, key, n, producer) values ($1, $2, $3, $4)`, c.ID, c.Key, c.N, producer); err != nil {
			return err
		}
		payload, err := json.Marshal(c)
		if err != nil {
			return err
		}
		return unit.Add(ctx, outbox.Message{ID: id, AggregateType: lane(family, nth), AggregateID: c.Key, Type: changed, Payload: payload, ContentType: "application/json"})
	})
}

// consume has an effect for each message until ctx ends.
func (m Member) consume(ctx context.Context) (err error) {
	book, err := os.OpenFile(m.Ledger, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, book.Close()) }()
	db, err := sql.Open("pgx", m.Database)
	if err != nil {
		return err
	}
	defer db.Close()
	box, err := inbox.NewConsumer(inbox.Config{DB: db, Name: m.Family, Attempts: -1, Now: m.Now})
	if err != nil {
		return err
	}
	from, err := sources(m.Sink, m.Family)
	if err != nil {
		return err
	}
	opener := feed.Opener{Receiver: inbox.Receiver{
		PauseFirst: retryFirst, PauseMost: retryMost,
		Receive: func(ctx context.Context, d inbox.Delivery) (inbox.Outcome, error) {
			working, cancel := context.WithTimeout(ctx, workTime)
			defer cancel()
			return box.Receive(working, d, func(ctx context.Context, tx *sql.Tx) error { return haveEffect(ctx, tx, d, m.Name) })
		},
		Observe: func(d inbox.Delivery, outcome inbox.Outcome, err error) {
			if err != nil {
				fmt.Fprintln(os.Stderr, d.ID, err)
			}
			if outcome == inbox.Repeated {
				_, _ = fmt.Fprintln(book, dropped, d.ID) // only counted
			}
		},
	}}
	var running sync.WaitGroup
	for _, text := range from {
		source, err := opener.Open(text)
		if err != nil {
			return err
		}
		running.Go(func() {
			_ = source.Run(ctx) // it returns nil
			_ = source.Close()  // nothing is owed to the broker
		})
	}
	running.Wait()
	return nil
}

// haveEffect writes the effect of a message, in the transaction in which the inbox
// keeps its id.
func haveEffect(ctx context.Context, tx *sql.Tx, d inbox.Delivery, consumer string) error {
	var c change
	if err := json.Unmarshal(d.Body, &c); err != nil {
		return fmt.Errorf("message %s: %w", d.ID, err)
	}
	_, err := tx.ExecContext(ctx, `insert into effect (id, key, n, consumer, relay) values ($1, $2, $3, $4, $5)`, c.ID, c.Key, c.N, consumer, sourceHeader(d.Headers))
	return err
}

// sourceHeader is the relay that sent a message: its CloudEvents source, under the
// name that the broker allows.
func sourceHeader(headers map[string]string) string {
	for _, name := range []string{"ce-source", "ce_source"} {
		if relay := headers[name]; relay != "" {
			return relay
		}
	}
	return "unknown"
}
