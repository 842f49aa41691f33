package kafka_test

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

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	_ "modernc.org/sqlite"

	"github.com/ringiflow/ringi/inbox"
	"github.com/ringiflow/ringi/inbox/kafka"
	"github.com/ringiflow/ringi/servertest"
)

const topic = "outbox.event.Order"

// shop is a consuming service: its database, and a topic of two partitions at a
// broker, in this process or Kafka itself.
type shop struct {
	*kfake.Cluster // nil: Kafka itself
	real           *servertest.Server
	brokers        []string
	topic          string
	db             *sql.DB
	inbox          *inbox.Consumer

	mu    sync.Mutex
	fail  map[string]int   // how often the work of a message fails
	came  []inbox.Delivery // in the order of their outcomes
	ended []inbox.Outcome
}

// open opens a shop at a broker in this process.
func open(t *testing.T) *shop {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, topic))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	s := openDatabase(t)
	s.Cluster, s.brokers, s.topic = cluster, cluster.ListenAddrs(), topic
	return s
}

func openDatabase(t *testing.T) *shop {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "shop.db")+"?_txlock=immediate&_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if _, err := db.ExecContext(t.Context(), inbox.Schema+`create table effect (n integer primary key, message text)`); err != nil {
		t.Fatal(err)
	}
	s := &shop{db: db, fail: map[string]int{}}
	s.inbox, err = inbox.NewConsumer(inbox.Config{DB: db, Name: "shop", Attempts: 3})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// receive does the work of a message: one row, in the inbox's transaction.
func (s *shop) receive(ctx context.Context, d inbox.Delivery) (inbox.Outcome, error) {
	return s.inbox.Receive(ctx, d, func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `insert into effect (message) values ($1)`, string(d.Body)); err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.fail[string(d.Body)] > 0 {
			s.fail[string(d.Body)]--
			return errors.New("no stock")
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
func (s *shop) consume(t *testing.T) (stop func()) {
	t.Helper()
	c, err := kafka.New(kafka.Config{
		Brokers: s.brokers, Group: s.topic, Topics: []string{s.topic}, Receive: s.receive, Observe: s.observe,
		PauseFirst: 20 * time.Millisecond, PauseMost: 40 * time.Millisecond,
	})
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

// send produces records to a partition, "p/1" to "p/n", with their names as ids.
func (s *shop) send(t *testing.T, partition int32, names ...string) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(s.brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, name := range names {
		r := &kgo.Record{Topic: s.topic, Partition: partition, Key: []byte("k"), Value: []byte(name), Headers: []kgo.RecordHeader{{Key: "id", Value: []byte("id-" + name)}}}
		if err := client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
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

func of(all []string, partition string) (some []string) {
	for _, name := range all {
		if strings.HasPrefix(name, partition) {
			some = append(some, name)
		}
	}
	return some
}

func names(partition string, n int) (all []string) {
	for i := 1; i <= n; i++ {
		all = append(all, fmt.Sprintf("%s/%d", partition, i))
	}
	return all
}

// O9, O-11: what comes twice has one effect; a partition stays in order.
func TestEveryMessageHasOneEffectInOrder(t *testing.T) {
	onBoth(t, func(t *testing.T, s *shop) {
		s.send(t, 0, append(names("a", 20), "a/20", "a/3")...)
		s.send(t, 1, names("b", 20)...)
		defer s.consume(t)()
		until(t, "42 deliveries", func() bool { return s.outcomes(inbox.Handled)+s.outcomes(inbox.Repeated) == 42 })
		for _, p := range []string{"a", "b"} {
			if got := of(s.effects(t), p); !slices.Equal(got, names(p, 20)) {
				t.Errorf("partition %s: %v", p, got)
			}
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		i := slices.IndexFunc(s.came, func(d inbox.Delivery) bool { return d.ID == "id-a/3" })
		if h := s.came[i].Headers; h[kafka.HeaderTopic] != s.topic || h[kafka.HeaderKey] != "k" || h[kafka.HeaderPlace] != s.topic+"/0/2" || h["id"] != "id-a/3" {
			t.Errorf("headers %v", h)
		}
	})
}

// O9: the consumer dies after its work and before the broker has the offset.
// Everything comes again and nothing is done again.
func TestAnOffsetIsCommittedOnlyAfterTheWork(t *testing.T) {
	s := open(t)
	s.send(t, 0, names("a", 5)...)
	lost := s.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Topic: topic, Err: kerr.InvalidCommitOffsetSize, Count: -1})
	stop := s.consume(t)
	until(t, "five effects", func() bool { return s.outcomes(inbox.Handled) == 5 })
	stop()
	lost.Remove()
	defer s.consume(t)()
	until(t, "five repeats", func() bool { return s.outcomes(inbox.Repeated) == 5 })
	if got := s.effects(t); !slices.Equal(got, names("a", 5)) {
		t.Errorf("effects %v", got)
	}
}

// What was done and committed does not come again.
func TestARestartGoesOnWhereItStopped(t *testing.T) {
	onBoth(t, func(t *testing.T, s *shop) {
		s.send(t, 0, names("a", 5)...)
		stop := s.consume(t)
		until(t, "five effects", func() bool { return s.outcomes(inbox.Handled) == 5 })
		stop()
		s.send(t, 0, "a/6")
		defer s.consume(t)()
		until(t, "the sixth", func() bool { return s.outcomes(inbox.Handled) == 6 })
		if n := s.outcomes(inbox.Repeated); n != 0 {
			t.Errorf("%d messages came again", n)
		}
	})
}

// O-8: a failure holds up its own partition, in order, and no other; after
// enough of them the message is set aside and the others go on.
func TestAFailureHoldsUpItsPartitionUntilItIsPoison(t *testing.T) {
	onBoth(t, func(t *testing.T, s *shop) {
		s.fail["a/2"], s.fail["a/3"] = 2, 1000
		s.send(t, 0, names("a", 5)...)
		s.send(t, 1, names("b", 5)...)
		defer s.consume(t)()
		until(t, "the ends of both partitions", func() bool { return s.outcomes(inbox.Handled) == 9 })
		if got, want := of(s.effects(t), "a"), []string{"a/1", "a/2", "a/4", "a/5"}; !slices.Equal(got, want) {
			t.Errorf("partition a: %v, want %v", got, want)
		}
		if got := of(s.effects(t), "b"); !slices.Equal(got, names("b", 5)) {
			t.Errorf("partition b: %v", got)
		}
		poison, err := s.inbox.Poison(t.Context(), "", 10)
		if err != nil || len(poison) != 1 || poison[0].ID != "id-a/3" || string(poison[0].Body) != "a/3" || poison[0].Headers[kafka.HeaderTopic] != s.topic {
			t.Errorf("set aside: %+v, %v", poison, err)
		}
		if f, p := s.outcomes(inbox.Failed), s.outcomes(inbox.Poisoned); f != 4 || p != 1 {
			t.Errorf("%d failures and %d poisoned, want 4 and 1", f, p)
		}
	})
}

// A record without an id is known by its place; a CloudEvent by its own id.
func TestAMessageWithoutAnIdIsKnownByItsPlace(t *testing.T) {
	onBoth(t, func(t *testing.T, s *shop) {
		client, err := kgo.NewClient(kgo.SeedBrokers(s.brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		for _, h := range [][]kgo.RecordHeader{
			nil, {{Key: "ce_id", Value: []byte("event")}}, {{Key: "id", Value: []byte(strings.Repeat("x", 300))}}, {{Key: "id", Value: []byte("\xff")}},
		} {
			if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: s.topic, Value: []byte("v"), Headers: h}).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		defer s.consume(t)()
		until(t, "four effects", func() bool { return s.outcomes(inbox.Handled) == 4 })
		var ids []string
		for _, d := range s.came {
			ids = append(ids, d.ID)
		}
		if want := []string{s.topic + "/0/0", "event", s.topic + "/0/2", s.topic + "/0/3"}; !slices.Equal(ids, want) {
			t.Errorf("ids %v, want %v", ids, want)
		}
	})
}

// Two members share the partitions, and one takes over when the other leaves.
func TestTheGroupSharesPartitions(t *testing.T) {
	onBoth(t, func(t *testing.T, s *shop) {
		first := s.consume(t)
		second := s.consume(t)
		for i := range 10 {
			s.send(t, int32(i%2), fmt.Sprintf("%c/%d", 'a'+i%2, i/2+1))
		}
		until(t, "ten effects", func() bool { return len(s.effects(t)) == 10 })
		first()
		s.send(t, 0, "a/6")
		s.send(t, 1, "b/6")
		until(t, "twelve effects", func() bool { return len(s.effects(t)) == 12 })
		second()
		for _, p := range []string{"a", "b"} {
			if got := of(s.effects(t), p); !slices.Equal(got, names(p, 6)) {
				t.Errorf("partition %s: %v", p, got)
			}
		}
	})
}

func TestAConfigThatCannotWorkIsRefused(t *testing.T) {
	if _, err := kafka.New(kafka.Config{Brokers: []string{"127.0.0.1:1"}, Group: "g", Topics: []string{"t"}}); err == nil || !strings.Contains(err.Error(), "Receive") {
		t.Errorf("without Receive: %v", err)
	}
}
