package rabbitmq_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	_ "modernc.org/sqlite"

	"github.com/ringiflow/ringi/inbox"
	"github.com/ringiflow/ringi/inbox/rabbitmq"
	"github.com/ringiflow/ringi/servertest"
)

// A shop is a consuming service: its database, and a queue of its own at a broker
// that all tests of this file share, since one takes seconds to begin.
type shop struct {
	*servertest.Server
	queue string
	db    *sql.DB
	inbox *inbox.Consumer

	mu    sync.Mutex
	fail  map[string]int // how often the work of a message fails
	slow  map[string]time.Duration
	came  []inbox.Delivery
	ended []inbox.Outcome
}

// A consumer of a queue that RabbitMQ keeps.
func TestAConsumerOfAQueue(t *testing.T) {
	node, err := servertest.RabbitMQ(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := node.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, tc := range []struct {
		name string
		test func(*testing.T, *shop)
	}{
		{"every message has one effect in order", oneEffectInOrder},          // O9
		{"two processes keep the order", twoProcessesKeepTheOrder},           // O8
		{"shared processes share the work", sharedProcessesShare},            // O9
		{"a repeat in the queue has no second effect", repeatHasNoEffect},    // O-13, O9
		{"a failure is tried again until it is poison", triedUntilPoison},    // O-8
		{"a message that kills the process is set aside", killerIsSetAside},  // O-17
		{"a message without an id stays", withoutIDStays},                    // O9
		{"a consumer that stops gives its message back", givesBack},          // O9
		{"a message is acknowledged only after the work", acknowledgedAfter}, // O9, crashes the broker: the last
	} {
		t.Run(tc.name, func(t *testing.T) { tc.test(t, open(t, node)) })
	}
}

func open(t *testing.T, node *servertest.Server) *shop {
	t.Helper()
	s := &shop{Server: node, queue: t.Name(), fail: map[string]int{}, slow: map[string]time.Duration{}}
	if _, err := s.channel(t).QueueDeclare(s.queue, true, false, false, false, amqp.Table{"x-queue-type": "quorum"}); err != nil {
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

func (s *shop) url() string { return "amqp://guest:guest@" + s.Address() }

func (s *shop) channel(t *testing.T) *amqp.Channel {
	t.Helper()
	conn, err := amqp.Dial(s.url())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	return ch
}

// send publishes messages with their names as ids.
func (s *shop) send(t *testing.T, names ...string) {
	t.Helper()
	var msgs []amqp.Publishing
	for _, name := range names {
		msgs = append(msgs, amqp.Publishing{MessageId: "id-" + name, Type: "order.placed", Headers: amqp.Table{"n": int32(7)}, Body: []byte(name)})
	}
	s.publish(t, msgs...)
}

func (s *shop) publish(t *testing.T, msgs ...amqp.Publishing) {
	t.Helper()
	ch := s.channel(t)
	if err := ch.Confirm(false); err != nil {
		t.Fatal(err)
	}
	for _, m := range msgs {
		m.DeliveryMode = amqp.Persistent
		confirm, err := ch.PublishWithDeferredConfirm("", s.queue, true, false, m)
		if err != nil {
			t.Fatal(err)
		}
		if !confirm.Wait() {
			t.Fatal("a message was not taken")
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
func (s *shop) consume(t *testing.T, change func(*rabbitmq.Config)) (stop func()) {
	t.Helper()
	cfg := rabbitmq.Config{
		URL: s.url(), Queue: s.queue, StandBy: 50 * time.Millisecond, Receive: s.receive, Observe: s.observe,
		PauseFirst: 10 * time.Millisecond, PauseMost: 20 * time.Millisecond,
	}
	if change != nil {
		change(&cfg)
	}
	c, err := rabbitmq.New(cfg)
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

func names(n int) (all []string) {
	for i := 1; i <= n; i++ {
		all = append(all, fmt.Sprintf("a/%d", i))
	}
	return all
}

// left is how many messages the queue holds that nobody has.
func (s *shop) left(t *testing.T) int {
	t.Helper()
	q, err := s.channel(t).QueueDeclarePassive(s.queue, true, false, false, false, amqp.Table{"x-queue-type": "quorum"})
	if err != nil {
		t.Fatal(err)
	}
	return q.Messages
}

func oneEffectInOrder(t *testing.T, s *shop) {
	s.send(t, names(30)...)
	stop := s.consume(t, nil)
	until(t, "30 deliveries", func() bool { return s.outcomes(inbox.Handled) == 30 })
	s.send(t, "b/1") // while it waits
	until(t, "one more", func() bool { return s.outcomes(inbox.Handled) == 31 })
	if got := s.effects(t); !slices.Equal(got, append(names(30), "b/1")) {
		t.Errorf("effects %v", got)
	}
	stop()
	if n := s.left(t); n != 0 {
		t.Errorf("%d messages are left, want all acknowledged", n)
	}
	d := s.came[2]
	if d.ID != "id-a/3" || d.Attempt > 1 || d.Headers["n"] != "7" || d.Headers[rabbitmq.HeaderKey] != s.queue || d.Headers[rabbitmq.HeaderType] != "order.placed" {
		t.Errorf("delivery %+v", d)
	}
}

// One reads, the other stands by and takes over.
func twoProcessesKeepTheOrder(t *testing.T, s *shop) {
	s.send(t, names(20)...)
	stop := s.consume(t, nil)
	defer s.consume(t, nil)()
	until(t, "20 deliveries", func() bool { return s.outcomes(inbox.Handled) == 20 })
	stop()
	s.send(t, "b/1", "b/2")
	until(t, "two more", func() bool { return s.outcomes(inbox.Handled) == 22 })
	if got := s.effects(t); !slices.Equal(got, append(names(20), "b/1", "b/2")) {
		t.Errorf("effects %v", got)
	}
}

// A message that takes long holds up only its own process.
func sharedProcessesShare(t *testing.T, s *shop) {
	s.slow["a/1"] = 700 * time.Millisecond
	s.send(t, names(10)...)
	shared := func(c *rabbitmq.Config) { c.Shared = true }
	defer s.consume(t, shared)()
	defer s.consume(t, shared)()
	until(t, "ten deliveries", func() bool { return s.outcomes(inbox.Handled) == 10 })
	got := s.effects(t)
	slices.Sort(got)
	want := names(10)
	slices.Sort(want)
	if !slices.Equal(got, want) || s.outcomes(inbox.Repeated) != 0 {
		t.Errorf("effects %v", got)
	}
}

func repeatHasNoEffect(t *testing.T, s *shop) {
	s.send(t, "a/1", "a/1")
	s.publish(t, amqp.Publishing{Headers: amqp.Table{"ce-id": "id-a/1"}, Body: []byte("copy")})
	defer s.consume(t, nil)()
	until(t, "three deliveries", func() bool { return s.outcomes(inbox.Handled) == 1 && s.outcomes(inbox.Repeated) == 2 })
}

// A failure holds up those behind it, in order, until it is poison. It is not
// handed out again meanwhile.
func triedUntilPoison(t *testing.T, s *shop) {
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
		if d.Attempt > 1 {
			t.Errorf("message %s was handed out %d times, want once", d.ID, d.Attempt)
		}
	}
}

// It was handed out three times to processes that ended.
func killerIsSetAside(t *testing.T, s *shop) {
	s.send(t, names(2)...)
	for range 3 {
		ch := s.channel(t)
		if err := ch.Qos(1, 0, false); err != nil {
			t.Fatal(err)
		}
		from, err := ch.Consume(s.queue, "", false, false, false, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		if d := <-from; string(d.Body) != "a/1" {
			t.Fatalf("%s came, want a/1", d.Body)
		}
		if err := ch.Close(); err != nil {
			t.Fatal(err)
		}
	}
	defer s.consume(t, nil)()
	until(t, "the second", func() bool { return s.outcomes(inbox.Handled) == 1 })
	if got := s.effects(t); !slices.Equal(got, []string{"a/2"}) || s.outcomes(inbox.Poisoned) != 1 {
		t.Errorf("effects %v, %d set aside", got, s.outcomes(inbox.Poisoned))
	}
}

func withoutIDStays(t *testing.T, s *shop) {
	s.publish(t, amqp.Publishing{Body: []byte("who?")})
	stop := s.consume(t, nil)
	until(t, "failures", func() bool { return s.outcomes(inbox.Failed) > 1 })
	stop()
	if n := s.left(t); n != 1 {
		t.Errorf("%d messages are left, want the one", n)
	}
}

func givesBack(t *testing.T, s *shop) {
	s.fail["a/1"] = 1
	s.send(t, names(2)...)
	stop := s.consume(t, func(c *rabbitmq.Config) { c.PauseFirst, c.PauseMost = time.Hour, time.Hour })
	until(t, "the failure", func() bool { return s.outcomes(inbox.Failed) == 1 })
	stop()
	defer s.consume(t, nil)()
	until(t, "both", func() bool { return s.outcomes(inbox.Handled) == 2 })
	if got := s.effects(t); !slices.Equal(got, names(2)) {
		t.Errorf("effects %v", got)
	}
}

// The broker crashes after the work and before the acknowledgement. The message
// comes again and nothing is done again.
func acknowledgedAfter(t *testing.T, s *shop) {
	s.send(t, names(3)...)
	// RabbitMQ 3 forgets in a crash where the log of a quorum queue is that was made
	// within the last minutes.
	if err := errors.Join(s.Stop(), s.Resume(t.Context())); err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	receive := func(ctx context.Context, d inbox.Delivery) (inbox.Outcome, error) {
		outcome, err := s.receive(ctx, d)
		once.Do(func() {
			if err := s.Crash(); err != nil {
				t.Error(err)
			}
		})
		return outcome, err
	}
	defer s.consume(t, func(c *rabbitmq.Config) { c.Receive = receive })()
	until(t, "the first effect", func() bool { return s.outcomes(inbox.Handled) == 1 })
	if err := s.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	until(t, "a repeat and the others", func() bool { return s.outcomes(inbox.Handled) == 3 && s.outcomes(inbox.Repeated) >= 1 })
	if got := s.effects(t); !slices.Equal(got, names(3)) {
		t.Errorf("effects %v", got)
	}
}

func TestAConsumerSaysWhatItNeeds(t *testing.T) {
	for _, cfg := range []rabbitmq.Config{{}, {URL: "amqp://h", Queue: "q"}, {URL: "http://h", Queue: "q", Receive: new(shop).receive}} {
		if _, err := rabbitmq.New(cfg); err == nil || !strings.HasPrefix(err.Error(), "rabbitmq: ") {
			t.Errorf("%+v: %v", cfg.URL, err)
		}
	}
}
