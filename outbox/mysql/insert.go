package mysql

import (
	"context"
	"fmt"
	"strings"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/table"
)

const (
	insertHead = `insert into aggregate_head (tenant, aggregatetype, aggregateid, seq) values `
	raiseHead  = ` on duplicate key update seq = seq + values(seq)`

	insertRows = `insert into outbox (id, tenant, destination, aggregatetype, aggregateid, type, payload, contenttype, headers, seq, next_at, created_at) values `
	headOf     = `(select seq - ? from aggregate_head where tenant = ? and aggregatetype = ? and aggregateid = ?)`

	// clock is the database's, whatever the time zone of the session.
	clock = `timestampdiff(microsecond, '1970-01-01', utc_timestamp(6))`

	// statementRows bounds the rows of one statement, far below the most parameters
	// that there may be, and statementBytes what they carry, far below the least
	// max_allowed_packet that a server is given by default. One row is sent whatever
	// its size.
	statementRows  = 200
	statementBytes = 512 << 10
)

// Insert writes messages in the caller's open transaction, numbered per aggregate in
// the order given. It is the last thing the transaction should do: it takes the
// aggregates' head rows, in key order, and holds them until the commit, which is
// what makes the numbers follow the order of commits.
//
// Every message is checked before anything is written. After any error the caller
// must roll back: some rows may stand already, and after a deadlock the database has
// undone the transaction by itself. outbox.ErrDuplicate is one error, and ErrAgain
// another, after which the transaction may be done again.
func Insert(ctx context.Context, tx outbox.Tx, msgs ...outbox.Message) error {
	groups, err := table.Arrange(msgs)
	if err != nil {
		return err
	}
	if err := raise(ctx, tx, groups); err != nil {
		return err
	}
	behind := make([]int, len(msgs)) // how far below the head; negative when unordered
	for i := range behind {
		behind[i] = -1
	}
	for _, g := range groups {
		for i, m := range g.Members {
			behind[m] = len(g.Members) - 1 - i
		}
	}
	for first := 0; first < len(msgs); {
		last, size := first, 0
		for last < len(msgs) && last-first < statementRows {
			more := carried(&msgs[last])
			if last > first && size+more > statementBytes {
				break
			}
			size += more
			last++
		}
		if err := insert(ctx, tx, msgs[first:last], behind[first:last], size); err != nil {
			return err
		}
		first = last
	}
	return nil
}

// carried is how many bytes of payload and headers a message has.
func carried(m *outbox.Message) int {
	n := len(m.Payload)
	for name, value := range m.Headers {
		n += len(name) + len(value)
	}
	return n
}

// raise takes the heads of the keys, in their order, and counts the messages there.
func raise(ctx context.Context, tx outbox.Tx, groups []table.Group) error {
	for len(groups) > 0 {
		now := groups[:min(len(groups), statementRows)]
		args := make([]any, 0, 4*len(now))
		for _, g := range now {
			args = append(args, g.Key.Tenant, g.Key.AggregateType, g.Key.AggregateID, len(g.Members))
		}
		if _, err := tx.ExecContext(ctx, insertHead+repeat("(?, ?, ?, ?)", len(now))+raiseHead, args...); err != nil {
			return fmt.Errorf("outbox: number the messages of %d aggregates, %s %s among them: %w", len(now), now[0].Key.AggregateType, now[0].Key.AggregateID, again(err))
		}
		groups = groups[len(now):]
	}
	return nil
}

// insert writes messages of so many bytes in one statement.
func insert(ctx context.Context, tx outbox.Tx, msgs []outbox.Message, behind []int, size int) error {
	var text strings.Builder
	text.WriteString(insertRows)
	args := make([]any, 0, 15*len(msgs))
	for i := range msgs {
		m := &msgs[i]
		headers, err := table.EncodeHeaders(m.Headers)
		if err != nil {
			return fmt.Errorf("outbox: message %s: encode headers: %w", m.ID, err)
		}
		payload := m.Payload
		if payload == nil {
			payload = []byte{}
		}
		if i > 0 {
			text.WriteString(", ")
		}
		args = append(args, m.ID, m.Tenant, m.Destination, m.AggregateType, m.AggregateID, m.Type, payload, m.ContentType, headers)
		seq := "0"
		if behind[i] >= 0 {
			seq = headOf
			args = append(args, behind[i], m.Tenant, m.AggregateType, m.AggregateID)
		}
		// It is due when it is written, and at once if the writer's clock is ahead of
		// the database's, by which relays go: it would hold up its key for as long.
		text.WriteString("(?, ?, ?, ?, ?, ?, ?, ?, ?, " + seq + ", least(?, " + clock + "), ?)")
		args = append(args, m.CreatedAt.UnixMicro(), m.CreatedAt.UnixMicro())
	}
	if _, err := tx.ExecContext(ctx, text.String(), args...); err != nil {
		return fmt.Errorf("outbox: insert %d messages, %s first: %w", len(msgs), msgs[0].ID, fault(err, size))
	}
	return nil
}

// repeat is a list of n times the same.
func repeat(text string, n int) string {
	return strings.TrimSuffix(strings.Repeat(text+", ", n), ", ")
}
