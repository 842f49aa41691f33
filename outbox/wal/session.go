package wal

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

const (
	// statusEvery is how often the server hears what is settled; it is also how
	// late the end of a context is noticed at most.
	statusEvery = time.Second

	// setupTime bounds the statements at the beginning, closeTime those at the end.
	setupTime = 30 * time.Second
	closeTime = 5 * time.Second

	// senderTimeout is after how long without an answer the server drops the
	// connection, and the slot with it, also where its own setting is never: a
	// process that was stopped holds the log no longer.
	senderTimeout = "60s"

	// heartbeat marks our messages in the log.
	heartbeat = "ringi_outbox"
)

// session is the life of one slot.
type session struct {
	*Reader
	slot  string
	place place
	conn  *pgconn.PgConn
	table table

	state atomic.Int32
	beat  atomic.Int64 // when the last heartbeat that came back was written, in microseconds
	seen  pglogrepl.LSN

	retained int64 // at the last look; only watch reads and writes it
}

// streamed tells whether the slot was read from.
func (s *session) streamed() bool { return State(s.state.Load()) == Streaming }

// run makes a slot and reads it until something is wrong with it.
func (s *session) run(ctx context.Context) error {
	setup, cancel := context.WithTimeout(ctx, setupTime)
	defer cancel()
	var err error
	if s.place, err = s.find(setup); err != nil {
		return err
	}
	if s.conn, err = pgconn.ConnectConfig(setup, s.connect()); err != nil {
		return explained(err, s.place.user)
	}
	defer s.close()
	s.beat.Store(s.cfg.Now().UnixMicro())
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer stop(nil)
	watching.Go(func() { s.watch(ctx, stop) })
	err = s.read(ctx)
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return explained(err, s.place.user)
}

// connect is how the replication connection is made.
func (s *session) connect() *pgconn.Config {
	c := s.cfg.Connect.Copy()
	if c.RuntimeParams == nil {
		c.RuntimeParams = map[string]string{}
	}
	c.RuntimeParams["replication"] = "database"
	c.RuntimeParams["wal_sender_timeout"] = senderTimeout
	c.RuntimeParams["statement_timeout"] = "0" // making the slot may take long
	if c.ValidateConnect == nil {
		c.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsPrimary
	}
	return c
}

// close ends the connection, and the slot with it.
func (s *session) close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	_ = s.conn.Close(ctx) // it may be closed, which is what is wanted
}

// read makes the slot and reads what it sends.
func (s *session) read(ctx context.Context) error {
	s.become(Starting)
	// Should ctx end while the server waits for open transactions, the connection
	// asks it to stop.
	made, err := pglogrepl.CreateReplicationSlot(ctx, s.conn, s.slot, "pgoutput", pglogrepl.CreateReplicationSlotOptions{
		Temporary: true, SnapshotAction: "NOEXPORT_SNAPSHOT", Mode: pglogrepl.LogicalReplication,
	})
	if err != nil {
		return fmt.Errorf("make the slot: %w", err)
	}
	from, err := pglogrepl.ParseLSN(made.ConsistentPoint)
	if err != nil {
		return fmt.Errorf("make the slot: %w", err)
	}
	err = pglogrepl.StartReplication(ctx, s.conn, s.slot, from, pglogrepl.StartReplicationOptions{
		Mode: pglogrepl.LogicalReplication,
		PluginArgs: []string{
			"proto_version '1'", "messages 'true'",
			fmt.Sprintf("publication_names '%s'", quoteText(quote(s.place.publication))),
		},
	})
	if err != nil {
		return fmt.Errorf("read the slot: %w", err)
	}
	s.seen = from
	s.beat.Store(s.cfg.Now().UnixMicro())
	s.desk.reset(from)
	s.become(Streaming)
	return s.stream(ctx)
}

// become tells a new state.
func (s *session) become(state State) {
	s.state.Store(int32(state))
	s.cfg.Observe(Report{At: s.cfg.Now(), State: state, Slot: s.slot, Bound: s.bound()})
}

// stream reads until the connection or ctx ends. The deadline of the socket stands
// for a context at every message, which would cost more than the message.
func (s *session) stream(ctx context.Context) error {
	socket := s.conn.Conn()
	ended := context.AfterFunc(ctx, func() { _ = socket.SetReadDeadline(time.Unix(1, 0)) }) // the read fails then, or has already
	defer ended()
	for {
		if err := s.confirm(ctx); err != nil {
			return err
		}
		due := time.Now().Add(statusEvery)
		if err := socket.SetReadDeadline(due); err != nil {
			return err
		}
		for ctx.Err() == nil && time.Now().Before(due) {
			asked, err := s.receive()
			if err != nil && !pgconn.Timeout(err) {
				return err
			}
			if asked || err != nil {
				break
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// confirm tells the server what is settled.
func (s *session) confirm(ctx context.Context) error {
	done := s.desk.confirmed()
	return pglogrepl.SendStandbyStatusUpdate(ctx, s.conn, pglogrepl.StandbyStatusUpdate{
		WALWritePosition: s.seen, WALFlushPosition: done, WALApplyPosition: done,
	})
}

// receive takes one message; asked says that the server wants an answer at once.
func (s *session) receive() (asked bool, err error) {
	raw, err := s.conn.ReceiveMessage(context.Background())
	if err != nil {
		return false, err
	}
	switch m := raw.(type) {
	case *pgproto3.ErrorResponse:
		return false, pgconn.ErrorResponseToPgError(m)
	case *pgproto3.CopyData:
		return s.data(m.Data)
	case *pgproto3.CopyDone:
		return false, errors.New("the server ended the stream")
	}
	return false, nil
}

func (s *session) data(data []byte) (asked bool, err error) {
	if len(data) == 0 {
		return false, errors.New("an empty message from the server")
	}
	switch data[0] {
	case pglogrepl.PrimaryKeepaliveMessageByteID:
		alive, err := pglogrepl.ParsePrimaryKeepaliveMessage(data[1:])
		if err != nil {
			return false, err
		}
		s.seen = max(s.seen, alive.ServerWALEnd)
		s.desk.passed(alive.ServerWALEnd)
		return alive.ReplyRequested, nil
	case pglogrepl.XLogDataByteID:
		x, err := pglogrepl.ParseXLogData(data[1:])
		if err != nil {
			return false, err
		}
		s.seen = max(s.seen, x.WALStart)
		return false, s.entry(x.WALData)
	}
	return false, nil
}
