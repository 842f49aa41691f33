package postgres

import (
	"context"
	"encoding/hex"
	"fmt"
	"hash/fnv"

	"github.com/jackc/pgx/v5/pgconn"
)

// A statement is the text of a statement with its arguments as $1, $2, …, each
// cast to its type. The texts are few and constant, so that each connection
// keeps them prepared.
type statement string

// A call is a statement that is run once, and what to do with each row of its
// result.
type call struct {
	statement
	args
	row func(cells) error // nil: the rows are of no interest
}

// conn is one connection. It belongs to whoever took it from its pool.
type conn struct {
	pg         *pgconn.PgConn
	prepared   map[statement]*pgconn.StatementDescription
	generation int64
	room       int // a message of so many bytes is sent in one go
}

// everyBinary asks for every column of a result in the binary format.
// constant: only read
var everyBinary = []int16{1}

// prepare makes the server parse the statements, each once per connection.
func (c *conn) prepare(ctx context.Context, list ...statement) error {
	for _, s := range list {
		if c.prepared[s] != nil {
			continue
		}
		desc, err := c.pg.Prepare(ctx, nameOf(s), string(s), nil)
		if err != nil {
			return fmt.Errorf("prepare: %w in %q", err, string(s))
		}
		c.prepared[s] = desc
	}
	return nil
}

// nameOf names a statement by its text: two programs behind one pooler that
// mean different texts never mean the same name.
func nameOf(s statement) string {
	h := fnv.New128a()
	h.Write([]byte(s))
	return "ringi_" + hex.EncodeToString(h.Sum(nil))
}

// batch is statements that go to the server as one message and are, outside of
// a transaction, one transaction: the server commits when it reaches the end
// of the message and nothing failed.
type batch struct {
	msg   pgconn.Batch
	calls []*call
	bytes int
}

// formats says that every argument is in the binary format.
func (c *call) formats() []int16 {
	list := make([]int16, len(c.values))
	for i := range list {
		list[i] = 1
	}
	return list
}

// add puts a call into the batch. With named it must be prepared.
func (b *batch) add(c *conn, call *call, named bool) {
	formats := call.formats()
	b.bytes += call.size() + 64
	if named {
		b.msg.ExecStatement(c.prepared[call.statement], call.values, formats, everyBinary)
	} else {
		b.bytes += len(call.statement)
		b.msg.ExecParams(string(call.statement), call.values, call.oids, formats, everyBinary)
	}
	b.calls = append(b.calls, call)
}

// send sends the batch and hands over the rows of its calls. The error of the
// server comes back as it is; an error of a row's function is returned too,
// after the results were read.
func (c *conn) send(ctx context.Context, b *batch) error {
	results := c.pg.ExecBatch(ctx, &b.msg)
	var failed error
	for i := 0; results.NextResult(); i++ {
		rows := results.ResultReader()
		for rows.NextRow() {
			if failed == nil && b.calls[i].row != nil {
				failed = b.calls[i].row(rows.Values())
			}
		}
		if _, err := rows.Close(); err != nil {
			break // the same error ends the batch
		}
	}
	if err := results.Close(); err != nil {
		return err
	}
	return failed
}

// run runs calls as one message. Without named the statements are not kept.
func (c *conn) run(ctx context.Context, named bool, calls ...*call) error {
	b := &batch{}
	for _, call := range calls {
		if named {
			if err := c.prepare(ctx, call.statement); err != nil {
				return err
			}
		}
		b.add(c, call, named)
	}
	return c.send(ctx, b)
}

// alone runs one call under a statement without a name that is parsed in a
// message of its own.
func (c *conn) alone(ctx context.Context, one *call) error {
	desc, err := c.pg.Prepare(ctx, "", string(one.statement), one.oids)
	if err != nil {
		return err
	}
	b := &batch{calls: []*call{one}}
	b.msg.ExecStatement(desc, one.values, one.formats(), everyBinary)
	return c.send(ctx, b)
}

// simple runs texts without arguments, such as begin and commit.
func (c *conn) simple(ctx context.Context, text string) error {
	return c.pg.Exec(ctx, text).Close()
}
