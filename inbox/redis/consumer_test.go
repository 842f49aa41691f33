package redis_test

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

	redisgo "github.com/redis/go-redis/v9"
	_ "modernc.org/sqlite"

	"github.com/ringiflow/ringi/inbox"
	"github.com/ringiflow/ringi/inbox/redis"
	"github.com/ringiflow/ringi/servertest"
)

const stream = "outbox.event.Order"

// shop is a consuming service: its database, and a Redis server.
type shop struct {
	*servertest.Server
	client *redisgo.Client
	db     *sql.DB
	inbox  *inbox.Consumer

	mu    sync.Mutex
	fail  map[string]int // how often the work of a message fails
	slow  map[string]time.Duration
	came  []inbox.Delivery
	ended []inbox.Outcome
}

func open(t *testing.T) *shop {
	t.Helper()
	node, err := servertest.Redis(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := node.Close(); err != nil {
			t.Error(err)
		}
	})
	s := &shop{Server: node, fail: map[string]int{}, slow: map[string]time.Duration{}, client: redisgo.NewClient(&redisgo.Options{Addr: node.Address()})}
	t.Cleanup(func() { _ = s.client.Close() })
	s.db, err = sql.Open("sqlite", filepath.Join(t.TempDir(), "shop.db")+"?_txlock=immediate&_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.db.Close() })
	if _, err := s.db.ExecContext(t.Context(), inbox.Schema+`create table effect (n integer primary key, message text)`); err != nil {
		t.Fatal(err)
	}
	s.inbox, err = inbox.NewConsumer(inbox.Config{DB: s.db, Name: "shop", Attempts: 3})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *shop) url() string { return "redis://" + s.Address() }

// send appends messages with their names as ids.
func (s *shop) send(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		s.add(t, "ce-id", "id-"+name, "data", name)
	}
}

func (s *shop) add(t *testing.T, fields ...string) {
	t.Helper()
	if err := s.client.XAdd(t.Context(), &redisgo.XAddArgs{Stream: stream, Values: fields}).Err(); err != nil {
		t.Fatal(err)
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
func (s *shop) consume(t *testing.T, change func(*redis.Config)) (stop func()) {
	t.Helper()
	cfg := redis.Config{
		URL: s.url(), Stream: stream, Name: "shop", Receive: s.receive, Observe: s.observe,
		PauseFirst: 10 * time.Millisecond, PauseMost: 20 * time.Millisecond,
	}
	if change != nil {
		change(&cfg)
	}
	c, err := redis.New(cfg)
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

// unanswered is how many entries are out.
func (s *shop) unanswered(t *testing.T) int {
	t.Helper()
	out, err := s.client.XPending(t.Context(), stream, "shop").Result()
	if err != nil {
		t.Fatal(err)
	}
	return int(out.Count)
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
	s.send(t, "b/1") // while it waits
	until(t, "one more", func() bool { return s.outcomes(inbox.Handled) == 31 })
	if got := s.effects(t); !slices.Equal(got, append(names(30), "b/1")) {
		t.Errorf("effects %v", got)
	}
	until(t, "all acknowledged", func() bool { return s.unanswered(t) == 0 })
	d := s.came[2]
	if d.ID != "id-a/3" || d.Attempt != 1 || d.Headers[redis.HeaderStream] != stream || !strings.HasPrefix(d.Headers[redis.HeaderPlace], stream+"/") || d.Headers["data"] != "" {
		t.Errorf("delivery %+v", d)
	}
}

// Two processes of one name: one entry is out at a time, so that the order holds.
func TestTwoProcessesKeepTheOrder(t *testing.T) {
	s := open(t)
	s.send(t, names(40)...)
	defer s.consume(t, nil)()
	defer s.consume(t, nil)()
	until(t, "40 deliveries", func() bool { return s.outcomes(inbox.Handled) == 40 })
	if got := s.effects(t); !slices.Equal(got, names(40)) {
		t.Errorf("effects %v", got)
	}
}

// O-13, O9: the same message came into the stream twice; the inbox is the defence.
// An entry without an id is known by its place.
func TestARepeatInTheStreamHasNoSecondEffect(t *testing.T) {
	s := open(t)
	s.send(t, "a/1", "a/1")
	s.add(t, "other", "x")
	defer s.consume(t, nil)()
	until(t, "three deliveries", func() bool { return s.outcomes(inbox.Handled) == 2 && s.outcomes(inbox.Repeated) == 1 })
	if d := s.came[2]; d.ID != d.Headers[redis.HeaderPlace] || len(d.Body) != 0 {
		t.Errorf("a message without an id: %+v", d)
	}
}

// O9: the server crashes after the work and before the acknowledgement. The entry
// comes again and nothing is done again.
func TestAnEntryIsAcknowledgedOnlyAfterTheWork(t *testing.T) {
	s := open(t)
	s.send(t, names(3)...)
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
	impatient := redisgo.NewClient(&redisgo.Options{Addr: s.Address(), MaxRetries: -1, DialerRetries: 1}) // an answer is not tried again
	defer impatient.Close()
	defer s.consume(t, func(c *redis.Config) { c.Client, c.Receive, c.AckWait = impatient, receive, 500*time.Millisecond })()
	until(t, "the first effect", func() bool { return s.outcomes(inbox.Handled) == 1 })
	if err := s.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
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

// O-17: an entry that was handed out too often without an answer, as happens when
// it kills the process, is set aside without another try.
func TestAMessageThatKillsTheProcessIsSetAside(t *testing.T) {
	s := open(t)
	s.send(t, names(2)...)
	ctx := t.Context()
	if err := s.client.XGroupCreate(ctx, stream, "shop", "0").Err(); err != nil {
		t.Fatal(err)
	}
	read, err := s.client.XReadGroup(ctx, &redisgo.XReadGroupArgs{Group: "shop", Consumer: "gone", Streams: []string{stream, ">"}, Count: 1}).Result()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.client.XClaim(ctx, &redisgo.XClaimArgs{Stream: stream, Group: "shop", Consumer: "gone", Messages: []string{read[0].Messages[0].ID}}).Err(); err != nil {
			t.Fatal(err)
		}
	}
	defer s.consume(t, func(c *redis.Config) { c.AckWait = 100 * time.Millisecond })()
	until(t, "the second", func() bool { return s.outcomes(inbox.Handled) == 1 })
	if got := s.effects(t); !slices.Equal(got, []string{"a/2"}) || s.outcomes(inbox.Poisoned) != 1 {
		t.Errorf("effects %v, %d set aside", got, s.outcomes(inbox.Poisoned))
	}
}

// Work that takes longer than an entry waits is not given to somebody else, and a
// consumer that stops while it fails gives its entry back at once.
func TestWhoHasAnEntryIsToldBySignsOfLife(t *testing.T) {
	s := open(t)
	s.slow["a/1"] = 900 * time.Millisecond
	s.fail["a/3"] = 1
	s.send(t, names(3)...)
	fast := func(c *redis.Config) { c.AckWait = 300 * time.Millisecond }
	stop := s.consume(t, func(c *redis.Config) { fast(c); c.PauseFirst, c.PauseMost = time.Hour, time.Hour })
	until(t, "the failure", func() bool { return s.outcomes(inbox.Failed) == 1 })
	stop()
	defer s.consume(t, func(c *redis.Config) { c.AckWait = time.Hour })()
	until(t, "all", func() bool { return s.outcomes(inbox.Handled) == 3 })
	if n := s.outcomes(inbox.Repeated) + s.outcomes(inbox.Failed); n != 1 {
		t.Errorf("%d further deliveries, want the failure alone", n)
	}
	if got := s.effects(t); !slices.Equal(got, names(3)) {
		t.Errorf("effects %v", got)
	}
}

// What was trimmed while it was out is not waited for.
func TestATrimmedEntryHoldsNobodyUp(t *testing.T) {
	s := open(t)
	s.send(t, names(3)...)
	ctx := t.Context()
	if err := s.client.XGroupCreate(ctx, stream, "shop", "0").Err(); err != nil {
		t.Fatal(err)
	}
	if err := s.client.XReadGroup(ctx, &redisgo.XReadGroupArgs{Group: "shop", Consumer: "gone", Streams: []string{stream, ">"}, Count: 2}).Err(); err != nil {
		t.Fatal(err)
	}
	if err := s.client.XTrimMaxLen(ctx, stream, 1).Err(); err != nil {
		t.Fatal(err)
	}
	defer s.consume(t, func(c *redis.Config) { c.AckWait = 50 * time.Millisecond })()
	until(t, "the third", func() bool { return s.outcomes(inbox.Handled) == 1 })
	if got := s.effects(t); !slices.Equal(got, []string{"a/3"}) {
		t.Errorf("effects %v", got)
	}
}

// A consumer may start before its server and its stream.
func TestAConsumerWaitsForItsServer(t *testing.T) {
	s := open(t)
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	defer s.consume(t, nil)()
	if err := s.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.send(t, "a/1")
	until(t, "the message", func() bool { return s.outcomes(inbox.Handled) == 1 })
	if _, err := redis.New(redis.Config{URL: "redis://127.0.0.1:1", Stream: "s", Name: "n"}); err == nil || !strings.Contains(err.Error(), "Receive") {
		t.Errorf("without Receive: %v", err)
	}
}
