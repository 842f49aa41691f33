package inbox

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Defaults of Config, each with its reason.
const (
	DefaultRetention = 7 * 24 * time.Hour // a week: longer than the redelivery of common brokers and an operator's second thoughts
	DefaultAttempts  = 10                 // with a broker's growing pauses some minutes of trouble
)

// MaxBody is the largest body in bytes that is kept of a message set aside. One
// that is larger is not set aside: it fails for ever, visibly, and is not lost.
const MaxBody = 16 << 20

// recordTime bounds the record of a failure. It is made also when the context of
// the work has ended, which is often why it failed.
const recordTime = 10 * time.Second

// maxReason is the longest error text kept, in bytes.
const maxReason = 1 << 10

// Config configures a Consumer. DB and Name are needed.
type Config struct {
	// DB is the consumer's own database, on which the schema of its dialect has been run.
	DB *sql.DB

	// Dialect is how DB writes statements; the zero value is for SQLite and PostgreSQL.
	Dialect Dialect

	// Name is the consumer: part of the key, so it must never change.
	Name string

	// Attempts is how often a message is tried before it is set aside; 0 is
	// DefaultAttempts, negative never sets one aside: a message that fails for
	// ever then stops those behind it, as some orders demand.
	Attempts int

	// Retention is how long ids are kept; 0 is DefaultRetention. Redelivery is the
	// longest time after which a copy may still come; a shorter retention is refused.
	Retention  time.Duration
	Redelivery time.Duration

	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Delivery is one copy of a message as it arrived.
type Delivery struct {
	// ID is the same for every copy, such as the id of a message of package outbox.
	ID string

	// Body and Headers are kept if the message is set aside.
	Body    []byte
	Headers map[string]string

	// Attempt is the broker's own count of deliveries of this message, from 1; 0
	// if it does not count. It catches the message that kills the process.
	Attempt int
}

// Outcome is what became of a delivery.
type Outcome int

// The outcomes. All but Failed are to be acknowledged.
const (
	// Failed: nothing was changed; the broker shall deliver it again.
	Failed Outcome = iota
	// Handled: done, just now.
	Handled
	// Repeated: done before.
	Repeated
	// Poisoned: set aside after too many failures, now or before; see Consumer.Poison.
	Poisoned
)

// Consumer handles messages once. Safe for concurrent use.
type Consumer struct {
	cfg Config
	sql statements
}

// NewConsumer checks cfg and fills its defaults in.
func NewConsumer(cfg Config) (*Consumer, error) {
	if cfg.DB == nil {
		return nil, errors.New("inbox: a consumer needs its database; set DB")
	}
	if err := checkName("consumer", cfg.Name); err != nil {
		return nil, err
	}
	if cfg.Attempts == 0 {
		cfg.Attempts = DefaultAttempts
	}
	if cfg.Retention == 0 {
		cfg.Retention = DefaultRetention
	}
	if cfg.Retention < cfg.Redelivery || cfg.Retention < 0 {
		return nil, fmt.Errorf("inbox: ids are kept for %s, but copies may come for %s; keep them longer", cfg.Retention, cfg.Redelivery)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Consumer{cfg: cfg, sql: cfg.Dialect.statements()}, nil
}

// Receive handles one delivery: it begins a transaction, does the work in it
// unless that was done before, and commits. The outcome says whether to
// acknowledge; the error says why it failed or was set aside. A panic of the work
// goes through, and counts as a failure.
func (c *Consumer) Receive(ctx context.Context, d Delivery, work func(ctx context.Context, tx *sql.Tx) error) (Outcome, error) {
	if err := checkName("message id", d.ID); err != nil {
		return Failed, err
	}
	failures, poisoned, err := c.past(ctx, d.ID)
	switch {
	case err != nil:
		return Failed, err
	case poisoned:
		return Poisoned, nil
	}
	if c.cfg.Attempts > 0 && max(failures, d.Attempt-1) >= c.cfg.Attempts {
		return c.record(ctx, d, fmt.Errorf("inbox: no answer to any of %d deliveries: the consumer stopped while it handled them", d.Attempt-1), true)
	}
	last := c.cfg.Attempts > 0 && max(failures+1, d.Attempt) >= c.cfg.Attempts
	defer func() {
		if p := recover(); p != nil {
			// A panic usually ends the process, and not every broker counts what it
			// delivered to one that ended. When this cannot be recorded, it comes again.
			_, _ = c.record(ctx, d, fmt.Errorf("inbox: the work panicked: %v", p), last)
			panic(p) //nolint:forbidigo // it is that of the work, which goes on as it came
		}
	}()
	fresh, err := c.inTx(ctx, d.ID, work)
	switch {
	case err == nil && fresh:
		return Handled, nil
	case err == nil:
		return Repeated, nil
	case ctx.Err() != nil:
		return Failed, err // a shutdown is nobody's fault
	}
	return c.record(ctx, d, err, last)
}

// inTx does the work in a transaction of its own.
func (c *Consumer) inTx(ctx context.Context, id string, work func(context.Context, *sql.Tx) error) (fresh bool, err error) {
	tx, err := c.cfg.DB.BeginTx(ctx, nil)
	if err != nil {
		return false, fmt.Errorf("inbox: begin: %w", err)
	}
	// After a commit it does nothing. While a panic goes through, it runs too.
	defer tx.Rollback()
	fresh, err = c.cfg.Dialect.handle(ctx, tx, c.cfg.Name, id, c.cfg.Now(), func(ctx context.Context) error { return work(ctx, tx) })
	if err != nil || !fresh {
		return false, err
	}
	if err := tx.Commit(); err != nil {
		return false, fmt.Errorf("inbox: commit of message %s: %w", id, err)
	}
	return true, nil
}

// What another copy of the message was set aside with stays: it was acknowledged
// for that, and may never come again.
const (
	pastFailures = `select failures, poisoned_at from inbox_poison where consumer = $1 and message = $2`
	recordOne    = `insert into inbox_poison (consumer, message, failures, failed_at, last_error, poisoned_at, body, headers) values ($1, $2, 1, $3, $4, $5, $6, $7)
		on conflict (consumer, message) do update set failures = inbox_poison.failures + 1, failed_at = excluded.failed_at, last_error = excluded.last_error,
			poisoned_at = coalesce(inbox_poison.poisoned_at, excluded.poisoned_at), body = coalesce(inbox_poison.body, excluded.body),
			headers = coalesce(inbox_poison.headers, excluded.headers)`
)

// past returns what is known about a message that is not handled yet.
func (c *Consumer) past(ctx context.Context, id string) (failures int, poisoned bool, err error) {
	var at sql.NullInt64
	err = c.cfg.DB.QueryRowContext(ctx, c.sql.pastFailures, c.cfg.Name, id).Scan(&failures, &at)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("inbox: look for failures of message %s: %w", id, err)
	}
	return failures, at.Valid, nil
}

// record writes a failure down, in a transaction of its own, since that of the
// work was rolled back. When it cannot, the message only comes once more.
func (c *Consumer) record(ctx context.Context, d Delivery, cause error, last bool) (Outcome, error) {
	at := c.cfg.Now().UnixMicro()
	var poisonedAt, body, headers any
	if last && len(d.Body) <= MaxBody {
		text, err := json.Marshal(d.Headers)
		if err != nil {
			return Failed, errors.Join(cause, err)
		}
		poisonedAt, body, headers = at, base64.StdEncoding.EncodeToString(d.Body), string(text)
	}
	recording, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	if _, err := c.cfg.DB.ExecContext(recording, c.sql.recordOne, c.cfg.Name, d.ID, at, reason(cause), poisonedAt, body, headers); err != nil {
		return Failed, errors.Join(cause, fmt.Errorf("inbox: record the failure of message %s: %w", d.ID, err))
	}
	if poisonedAt == nil {
		return Failed, cause
	}
	return Poisoned, cause
}
