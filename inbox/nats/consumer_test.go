package nats_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	_ "modernc.org/sqlite"

	"github.com/ringiflow/ringi/inbox"
	"github.com/ringiflow/ringi/inbox/nats"
)

const (
	stream  = "ORDERS"
	subject = "outbox.event.Order"
)

// shop is a consuming service: its database, and a NATS server in this process.
type shop struct {
	*server.Server
	options server.Options
	db      *sql.DB
	inbox   *inbox.Consumer

	mu    sync.Mutex
	fail  map[string]int // how often the work of a message fails
	slow  map[string]time.Duration
	came  []inbox.Delivery
	ended []inbox.Outcome
}

func open(t *testing.T) *shop {
	t.Helper()
	s := &shop{fail: map[string]int{}, slow: map[string]time.Duration{}, options: server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true,
	}}
	s.start(t)
	s.options.Port = s.Addr().(*net.TCPAddr).Port
	t.Cleanup(func() { s.stop() })
	if _, err := s.client(t).CreateStream(t.Context(), jetstream.StreamConfig{Name: stream, Subjects: []string{"outbox.event.>"}}); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "shop.db")+"?_txlock=immediate&_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if _, err := db.ExecContext(t.Context(), inbox.Schema+`create table effect (n integer primary key, message text)`); err != nil {
		t.Fatal(err)
	}
	s.db = db
	s.inbox, err = inbox.NewConsumer(inbox.Config{DB: db, Name: "shop", Attempts: 3})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// start begins a server; after stop it is the same one, restarted.
func (s *shop) start(t *testing.T) {
	t.Helper()
	options := s.options // the server writes into it
	node, err := server.NewServer(&options)
	if err != nil {
		t.Fatal(err)
	}
	node.Start()
	if !node.ReadyForConnections(20 * time.Second) {
		t.Fatal("the NATS server did not start in time")
	}
	s.Server = node
}

func (s *shop) stop() {
	s.Shutdown()
	s.WaitForShutdown()
}

func (s *shop) address() string { return fmt.Sprintf("nats://127.0.0.1:%d", s.options.Port) }

func (s *shop) client(t *testing.T) jetstream.JetStream {
	t.Helper()
	conn, err := natsgo.Connect(s.address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// send publishes messages with their names as ids.
func (s *shop) send(t *testing.T, names ...string) {
	t.Helper()
	js := s.client(t)
	for _, name := range names {
		if _, err := js.Publish(t.Context(), subject, []byte(name), jetstream.WithMsgID("id-"+name)); err != nil {
			t.Fatal(err)
		}
	}
}

// receive does the work of a message: one row, in the inbox's transaction.
func (s *shop) receive(ctx context.Context, d inbox.Delivery) (inbox.Outcome, error) {
	name := string(d.Body)
	return s.inbox.Receive(ctx, d, func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `insert into effect (message) values ($1)`, name); err != nil {
			return err
		}
		s.mu.Lock()
		slow, fails := s.slow[name], s.fail[name] > 0
		s.fail[name]--
		s.mu.Unlock()
		if fails {
			return errors.New("no stock")
		}
		if slow > 0 {
			<-time.After(slow)
		}
		return nil
	})
}

func (s *shop) observe(d inbox.Delivery, o inbox.Outcome, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.came, s.ended = append(s.came, d), append(s.ended, o)
}

// consume runs a consumer until stop is called.
func (s *shop) consume(t *testing.T, change func(*nats.Config)) (stop func()) {
	t.Helper()
	cfg := nats.Config{
		Servers: []string{s.address()}, Stream: stream, Name: "shop", Receive: s.receive, Observe: s.observe,
		PauseFirst: 10 * time.Millisecond, PauseMost: 20 * time.Millisecond,
	}
	if change != nil {
		change(&cfg)
	}
	c, err := nats.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- c.Run(ctx) }()
	return sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
}

// effects are the rows that the work left, in order.
func (s *shop) effects(t *testing.T) (messages []string) {
	t.Helper()
	rows, err := s.db.QueryContext(t.Context(), `select message from effect order by n`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var m string
		if err := rows.Scan(&m); err != nil {
			t.Fatal(err)
		}
		messages = append(messages, m)
	}
	return messages
}

func (s *shop) outcomes(o inbox.Outcome) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.ended {
		if e == o {
			n++
		}
	}
	return n
}

// until waits for a condition.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("in vain: %s", what)
		}
		<-time.After(5 * time.Millisecond)
	}
}

// unanswered is how many messages the server waits for or has not handed out.
func (s *shop) unanswered(t *testing.T) int {
	t.Helper()
	c, err := s.client(t).Consumer(t.Context(), stream, "shop")
	if err != nil {
		t.Fatal(err)
	}
	return c.CachedInfo().NumAckPending + int(c.CachedInfo().NumPending)
}

func names(n int) (all []string) {
	for i := 1; i <= n; i++ {
		all = append(all, fmt.Sprintf("a/%d", i))
	}
	return all
}

// O9: every message has one effect, in the order of the stream, and the server
// knows that all are done.
func TestEveryMessageHasOneEffectInOrder(t *testing.T) {
	s := open(t)
	s.send(t, names(30)...)
	defer s.consume(t, nil)()
	until(t, "30 deliveries", func() bool { return s.outcomes(inbox.Handled) == 30 })
	if got := s.effects(t); !slices.Equal(got, names(30)) {
		t.Errorf("effects %v", got)
	}
	until(t, "all acknowledged", func() bool { return s.unanswered(t) == 0 })
	d := s.came[2]
	if d.ID != "id-a/3" || d.Attempt != 1 || d.Headers[nats.HeaderSubject] != subject || d.Headers[nats.HeaderPlace] != stream+"/3" {
		t.Errorf("delivery %+v", d)
	}
}

// O-13, O9: the same message came into the stream twice, as it does after the
// duplicate window; the inbox is the defence.
func TestARepeatInTheStreamHasNoSecondEffect(t *testing.T) {
	s := open(t)
	s.send(t, "a/1")
	js := s.client(t)
	for _, id := range []string{"ce-id", "other"} {
		msg := &natsgo.Msg{Subject: subject, Data: []byte("copy"), Header: natsgo.Header{id: {"id-a/1"}}}
		if _, err := js.PublishMsg(t.Context(), msg); err != nil {
			t.Fatal(err)
		}
	}
	defer s.consume(t, nil)()
	until(t, "three deliveries", func() bool { return s.outcomes(inbox.Handled) == 2 && s.outcomes(inbox.Repeated) == 1 })
	if d := s.came[2]; d.ID != stream+"/3" {
		t.Errorf("a message without an id is known as %q, want its place", d.ID)
	}
}

// O9: the server goes away after the work and before the acknowledgement. The
// message comes again and nothing is done again.
func TestAMessageIsAcknowledgedOnlyAfterTheWork(t *testing.T) {
	s := open(t)
	s.send(t, names(3)...)
	var once sync.Once
	receive := func(ctx context.Context, d inbox.Delivery) (inbox.Outcome, error) {
		outcome, err := s.receive(ctx, d)
		once.Do(s.stop)
		return outcome, err
	}
	defer s.consume(t, func(c *nats.Config) {
		c.Receive, c.AckWait = receive, 500*time.Millisecond
		c.Options = []natsgo.Option{natsgo.ReconnectBufSize(-1)} // an answer is not kept for later
	})()
	until(t, "the first effect", func() bool { return s.outcomes(inbox.Handled) == 1 })
	s.start(t)
	until(t, "a repeat and the others", func() bool { return s.outcomes(inbox.Handled) == 3 && s.outcomes(inbox.Repeated) >= 1 })
	if got := s.effects(t); !slices.Equal(got, names(3)) {
		t.Errorf("effects %v", got)
	}
}

// O-8: a failure holds up those behind it, in order, until it is poison. It is
// not handed out again meanwhile.
func TestAFailureIsTriedAgainUntilItIsPoison(t *testing.T) {
	s := open(t)
	s.fail["a/2"], s.fail["a/3"] = 2, 1000
	s.send(t, names(5)...)
	defer s.consume(t, nil)()
	until(t, "the last", func() bool { return s.outcomes(inbox.Handled) == 4 })
	if got, want := s.effects(t), []string{"a/1", "a/2", "a/4", "a/5"}; !slices.Equal(got, want) {
		t.Errorf("effects %v, want %v", got, want)
	}
	poison, err := s.inbox.Poison(t.Context(), "", 10)
	if err != nil || len(poison) != 1 || poison[0].ID != "id-a/3" || string(poison[0].Body) != "a/3" {
		t.Errorf("set aside: %+v, %v", poison, err)
	}
	for _, d := range s.came {
		if d.Attempt != 1 {
			t.Errorf("message %s was handed out %d times, want once", d.ID, d.Attempt)
		}
	}
}

// O-17: a message that was handed out too often without an answer, as happens
// when it kills the process, is set aside without another try.
func TestAMessageThatKillsTheProcessIsSetAside(t *testing.T) {
	s := open(t)
	s.send(t, names(2)...)
	consumer, err := s.client(t).CreateOrUpdateConsumer(t.Context(), stream, jetstream.ConsumerConfig{
		Durable: "shop", AckPolicy: jetstream.AckExplicitPolicy, AckWait: nats.DefaultAckWait, MaxAckPending: 1, MaxDeliver: -1,
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		msg, err := consumer.Next()
		if err != nil {
			t.Fatal(err)
		}
		if err := msg.Nak(); err != nil {
			t.Fatal(err)
		}
	}
	defer s.consume(t, nil)()
	until(t, "the second", func() bool { return s.outcomes(inbox.Handled) == 1 })
	if got := s.effects(t); !slices.Equal(got, []string{"a/2"}) || s.outcomes(inbox.Poisoned) != 1 {
		t.Errorf("effects %v, %d set aside", got, s.outcomes(inbox.Poisoned))
	}
}

// Work that takes longer than the server waits is not given to somebody else.
func TestLongWorkIsNotHandedOutTwice(t *testing.T) {
	s := open(t)
	s.slow["a/1"] = 900 * time.Millisecond
	s.send(t, names(2)...)
	fast := func(c *nats.Config) { c.AckWait = 300 * time.Millisecond }
	defer s.consume(t, fast)()
	defer s.consume(t, fast)()
	until(t, "both", func() bool { return s.outcomes(inbox.Handled) == 2 })
	if n := s.outcomes(inbox.Repeated) + s.outcomes(inbox.Failed); n != 0 {
		t.Errorf("%d further deliveries, want none", n)
	}
}

// A consumer may start before its server and its stream.
func TestAConsumerWaitsForItsServer(t *testing.T) {
	s := open(t)
	s.send(t, "a/1")
	s.stop()
	defer s.consume(t, nil)()
	s.start(t)
	until(t, "the message", func() bool { return s.outcomes(inbox.Handled) == 1 })
	if _, err := nats.New(nats.Config{Servers: []string{"nats://127.0.0.1:1"}, Stream: "s", Name: "n"}); err == nil || !strings.Contains(err.Error(), "Receive") {
		t.Errorf("without Receive: %v", err)
	}
}
