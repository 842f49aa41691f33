package inbox

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Poison is a message that was set aside.
type Poison struct {
	Delivery

	Failures   int
	LastError  string
	PoisonedAt time.Time
}

// ErrNotPoison says that no message with this id is set aside.
var ErrNotPoison = errors.New("inbox: no such message is set aside; list those that are")

const (
	listPoison = `select message, failures, last_error, poisoned_at, body, headers from inbox_poison
		where consumer = $1 and poisoned_at is not null and message > $2 order by message limit $3`
	onePoison  = `select message, failures, last_error, poisoned_at, body, headers from inbox_poison where consumer = $1 and poisoned_at is not null and message = $2`
	dropPoison = `delete from inbox_poison where consumer = $1 and message = $2 and poisoned_at is not null`
	dropFailed = `delete from inbox_poison where consumer = $1 and message in (select message from inbox_poison
		where consumer = $1 and poisoned_at is null and failed_at < $2 order by message limit $3)`
	pruneIDs = `delete from inbox where consumer = $1 and message in (select message from inbox
		where consumer = $1 and handled_at < $2 order by handled_at limit $3)`
)

// Poison lists at most limit messages that are set aside, by id, after one of them.
func (c *Consumer) Poison(ctx context.Context, after string, limit int) ([]Poison, error) {
	rows, err := c.cfg.DB.QueryContext(ctx, c.sql.listPoison, c.cfg.Name, after, limit)
	if err != nil {
		return nil, fmt.Errorf("inbox: list what is set aside: %w", err)
	}
	defer rows.Close()
	var list []Poison
	for rows.Next() {
		p, err := scanPoison(rows.Scan)
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, rows.Err()
}

func scanPoison(scan func(...any) error) (Poison, error) {
	var p Poison
	var at int64
	var body, headers string
	if err := scan(&p.ID, &p.Failures, &p.LastError, &at, &body, &headers); err != nil {
		return p, err
	}
	p.PoisonedAt = time.UnixMicro(at).UTC()
	var err error
	if p.Body, err = base64.StdEncoding.DecodeString(body); err != nil {
		return p, fmt.Errorf("inbox: body of message %s: %w", p.ID, err)
	}
	if err := json.Unmarshal([]byte(headers), &p.Headers); err != nil {
		return p, fmt.Errorf("inbox: headers of message %s: %w", p.ID, err)
	}
	return p, nil
}

// Retry does the work of a message that is set aside and forgets its failures, in
// one transaction; if it fails, the message stays where it is.
func (c *Consumer) Retry(ctx context.Context, messageID string, work func(ctx context.Context, tx *sql.Tx, p Poison) error) (Outcome, error) {
	p, err := scanPoison(c.cfg.DB.QueryRowContext(ctx, c.sql.onePoison, c.cfg.Name, messageID).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		return Failed, ErrNotPoison
	}
	if err != nil {
		return Failed, fmt.Errorf("inbox: read message %s: %w", messageID, err)
	}
	fresh, err := c.inTx(ctx, messageID, func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, c.sql.dropPoison, c.cfg.Name, messageID); err != nil {
			return err
		}
		return work(ctx, tx, p)
	})
	if err != nil {
		return Failed, err
	}
	if !fresh {
		return Repeated, c.Drop(ctx, messageID)
	}
	return Handled, nil
}

// Drop forgets a message that is set aside, for good: it was never handled, and a
// copy that comes later is handled as if it were new.
func (c *Consumer) Drop(ctx context.Context, messageID string) error {
	return c.DropIn(ctx, c.cfg.DB, messageID)
}

// DropIn is Drop in the caller's open transaction, for whoever writes down beside it
// who dropped the message and why.
func (c *Consumer) DropIn(ctx context.Context, tx Tx, messageID string) error {
	res, err := tx.ExecContext(ctx, c.sql.dropPoison, c.cfg.Name, messageID)
	if err != nil {
		return fmt.Errorf("inbox: drop message %s: %w", messageID, err)
	}
	n, err := res.RowsAffected()
	if err != nil {
		return fmt.Errorf("inbox: drop message %s: %w", messageID, err)
	}
	if n == 0 {
		return ErrNotPoison
	}
	return nil
}

// Prune deletes at most limit ids whose retention is over, and as many failures
// that old of messages that never came again. It returns how many ids went. What
// is set aside stays.
func (c *Consumer) Prune(ctx context.Context, limit int) (int, error) {
	before := c.cfg.Now().Add(-c.cfg.Retention).UnixMicro()
	res, err := c.cfg.DB.ExecContext(ctx, c.sql.pruneIDs, c.cfg.Name, before, limit)
	if err != nil {
		return 0, fmt.Errorf("inbox: prune: %w", err)
	}
	n, err := res.RowsAffected()
	if err != nil {
		return 0, fmt.Errorf("inbox: prune: %w", err)
	}
	if _, err := c.cfg.DB.ExecContext(ctx, c.sql.dropFailed, c.cfg.Name, before, limit); err != nil {
		return int(n), fmt.Errorf("inbox: prune failures: %w", err)
	}
	return int(n), nil
}

// reason is an error as a text that every database can store.
func reason(err error) string {
	s := strings.ToValidUTF8(strings.ReplaceAll(err.Error(), "\x00", ""), "")
	if len(s) > maxReason {
		s = strings.ToValidUTF8(s[:maxReason], "")
	}
	return s
}
