package kafka_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/twmb/franz-go/pkg/kgo"
	_ "modernc.org/sqlite"

	"github.com/ringiflow/ringi/inbox"
	inboxkafka "github.com/ringiflow/ringi/inbox/kafka"
	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/kafka"
	"github.com/ringiflow/ringi/outbox/postgres"
	"github.com/ringiflow/ringi/servertest"
	"github.com/ringiflow/ringi/store/postgres/pgtest"
)

// service is a service with an outbox in PostgreSQL, whose write-ahead log can be
// read, beside a real Kafka broker.
type service struct {
	*broker
	pg *pgtest.Server
	db *sql.DB
}

func startService(t *testing.T) *service {
	t.Helper()
	pg, err := pgtest.Start(t.Context(), pgtest.Config{Settings: map[string]string{"wal_level": "logical"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pg.Close(); err != nil {
			t.Error(err)
		}
	})
	db, err := sql.Open("pgx", pg.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if err := postgres.Migrate(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	return &service{broker: realBroker(t), pg: pg, db: db}
}

// write commits messages, each transaction one.
func (s *service) write(t *testing.T, msgs ...outbox.Message) {
	t.Helper()
	for _, m := range msgs {
		tx, err := s.db.BeginTx(t.Context(), nil)
		if err == nil {
			err = postgres.InsertSQL(t.Context(), tx, m)
		}
		if err == nil {
			err = tx.Commit()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// debezium starts a connector that reads the outbox, with settings on top of
// servertest.Connector's.
func (s *service) debezium(t *testing.T, settings map[string]string) *servertest.Server {
	t.Helper()
	connector := servertest.Connector()
	connector["database.hostname"], connector["database.port"] = "127.0.0.1", fmt.Sprint(s.pg.Port())
	connector["database.user"], connector["database.dbname"] = "ringi", "postgres"
	maps.Copy(connector, settings)
	d, err := servertest.Debezium(t.Context(), s.real, connector)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(d.Log())
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// relay delivers what waits in the outbox.
func (s *service) relay(t *testing.T, cfg kafka.Config) {
	t.Helper()
	source := postgres.New(s.db)
	untilDelivered(t, newRelay(t, source, s.sink(t, cfg), nil), source)
}

// odd are messages with all that could be told apart: bytes that are no text, no
// payload, keys and topics with odd characters, no order.
func odd() []outbox.Message {
	msgs := unnumbered(orders(3, "a", "b"))
	msgs[0].Headers = map[string]string{"traceparent": "00-ab-cd-01"}
	msgs[1].Payload, msgs[1].ContentType = []byte{0, 0xff, 0x80, '"', 1}, "application/octet-stream"
	msgs[2].Payload = nil
	msgs[3].AggregateType, msgs[3].AggregateID, msgs[3].Unordered = parcel, `東京 "7"`, true
	msgs[4].Payload = []byte(strings.Repeat("{ } ", 40_000))
	return msgs
}

const parcel = "Parcel-2.x_y"

// unnumbered leaves the numbers of messages to the insert.
func unnumbered(msgs []outbox.Message) []outbox.Message {
	for i := range msgs {
		msgs[i].Seq = 0
	}
	return msgs
}

// recordText is all of a record that a consumer sees, but for its time and its
// offset and the headers in which Debezium tells of itself, among them a number
// that is new at each start.
func recordText(r *kgo.Record) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s/%d key %q value (null: %v) %q headers", r.Topic, r.Partition, r.Key, r.Value == nil, r.Value)
	for _, h := range r.Headers {
		if !strings.HasPrefix(h.Key, "__debezium.context.") {
			fmt.Fprintf(&b, " %s=%q", h.Key, h.Value)
		}
	}
	return b.String()
}

// byKey are the records of each key in their order, as text.
func byKey(records []*kgo.Record) map[string][]string {
	all := map[string][]string{}
	for _, r := range records {
		key := r.Topic + " " + string(r.Key)
		all[key] = append(all[key], recordText(r))
	}
	return all
}

// Debezium reads our table with its outbox router as it is, and each record is to
// the byte what the relay makes of the row: topic, partition, key, value and the
// header id. The relay's other headers come behind.
func TestDebeziumAndTheRelaySendTheSameRecords(t *testing.T) {
	s := startService(t)
	msgs := odd()
	s.write(t, msgs[:3]...) // found by Debezium when it begins
	s.debezium(t, nil)
	// What another program writes into the log, as a relay does that reads it, is
	// nothing to the router.
	if _, err := s.db.ExecContext(t.Context(), `select pg_logical_emit_message(true, 'other', 'beat')`); err != nil {
		t.Fatal(err)
	}
	s.write(t, msgs[3:]...) // read from the log
	topics := []string{topic, outbox.TopicPrefix + parcel}
	want := byKey(s.read(t, len(msgs), topics...))

	// What the relay marks in the table is nothing to Debezium: no more records come
	// than the relay's own, on two rounds of all rows.
	s.relay(t, kafka.Config{Headers: kafka.DebeziumHeaders})
	if n, err := postgres.New(s.db).Resend(t.Context(), time.Now(), outbox.Filter{}); err != nil || n != len(msgs) {
		t.Fatalf("sends %d again, %v", n, err)
	}
	s.relay(t, kafka.Config{})
	all := s.read(t, 3*len(msgs), topics...)
	if n := s.count(t, topic) + s.count(t, topics[1]); n != 3*len(msgs) {
		t.Errorf("the topics hold %d records, want %d", n, 3*len(msgs))
	}
	for key, got := range byKey(all) {
		n := len(want[key])
		if strict := got[n : 2*n]; !slices.Equal(strict, want[key]) {
			t.Errorf("%s:\n%v\nthe relay sends, and Debezium\n%v", key, strict, want[key])
		}
		for i, full := range got[2*n:] {
			if rest, same := strings.CutPrefix(full, want[key][i]); !same || !strings.HasPrefix(rest, " content-type=") {
				t.Errorf("%s: with all headers\n%s\ndoes not begin as Debezium's\n%s", key, full, want[key][i])
			}
		}
	}
}

// The manual gives the connector that these tests run, and their statements.
func TestTheManualSaysWhatTheConnectorNeeds(t *testing.T) {
	manual, err := os.ReadFile("../../docs/outbox.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := append([]string{"snapshot.mode=no_data"}, makeSlot...)
	lines = append(lines, dropSlot...)
	for name, value := range servertest.Connector() {
		if name != "name" && name != "topic.prefix" {
			lines = append(lines, name+"="+value)
		}
	}
	for _, line := range lines {
		if !strings.Contains(string(manual), line) {
			t.Errorf("docs/outbox.md does not say %s", line)
		}
	}
}

// makeSlot is what goes before Debezium's beginning, and dropSlot what follows its end.
// constant: only read.
var makeSlot, dropSlot = []string{
	`create publication dbz_publication for table outbox`,
	`select pg_create_logical_replication_slot('debezium', 'pgoutput')`,
}, []string{
	`select pg_drop_replication_slot('debezium')`,
	`drop publication dbz_publication`,
}

// effects are what a consumer with an inbox does of all that the topic holds now, in
// order; each record is received, and repeats says how many were dropped.
func (s *service) effects(t *testing.T) (done []string, repeats int) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "shop.db")+"?_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), inbox.Schema); err != nil {
		t.Fatal(err)
	}
	shop, err := inbox.NewConsumer(inbox.Config{DB: db, Name: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	total, received := s.count(t, topic), 0
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var mu sync.Mutex
	c, err := inboxkafka.New(inboxkafka.Config{
		Brokers: []string{s.address}, Group: t.Name(), Topics: []string{topic},
		Receive: func(ctx context.Context, d inbox.Delivery) (inbox.Outcome, error) {
			return shop.Receive(ctx, d, func(context.Context, *sql.Tx) error {
				mu.Lock()
				defer mu.Unlock()
				done = append(done, string(d.Body))
				return nil
			})
		},
		Observe: func(_ inbox.Delivery, o inbox.Outcome, _ error) {
			mu.Lock()
			defer mu.Unlock()
			if o == inbox.Repeated {
				repeats++
			}
			if received++; received == total {
				cancel()
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.Run(ctx), c.Close()); err != nil {
		t.Error(err)
	}
	if received != total {
		t.Errorf("%d of %d records were received", received, total)
	}
	return done, repeats
}

// wantEffects checks that a consumer did each message once, in the order of its
// aggregate, and that at least some of them came twice.
func (s *service) wantEffects(t *testing.T, count, repeated int, aggregates ...string) {
	t.Helper()
	done, repeats := s.effects(t)
	last := map[string]int{}
	for _, body := range done {
		key := strings.Trim(strings.Split(body, "/")[0], `"`)
		if want := fmt.Sprintf(`"%s/%d"`, key, last[key]+1); body != want {
			t.Errorf("aggregate %s: effect %s where %s was due", key, body, want)
		}
		last[key]++
	}
	for _, a := range aggregates {
		if last[a] != count {
			t.Errorf("aggregate %s: %d effects, want %d", a, last[a], count)
		}
	}
	if repeats < repeated {
		t.Errorf("%d messages came again, want at least %d", repeats, repeated)
	}
}

// Half way from Debezium to the relay, as docs/outbox.md says it: what Debezium has
// sent comes again under its id, and nothing is lost or out of order.
func TestASwitchFromDebeziumToTheRelayLosesNothing(t *testing.T) {
	s := startService(t)
	msgs := unnumbered(orders(20, "a", "b", "c"))
	s.write(t, msgs[:20]...)
	d := s.debezium(t, nil)
	s.write(t, msgs[20:40]...)
	s.read(t, 25) // some of them
	if err := d.Crash(); err != nil {
		t.Fatal(err)
	}
	s.write(t, msgs[40:]...)
	s.relay(t, kafka.Config{})
	s.wantEffects(t, 20, 25, "a", "b", "c")
	s.forget(t)
}

// forget ends what Debezium left in the database, once the server has seen that
// nobody reads there any more.
func (s *service) forget(t *testing.T) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for _, statement := range dropSlot {
		for {
			_, err := s.db.ExecContext(t.Context(), statement)
			if err == nil {
				break
			}
			if time.Now().After(deadline) {
				t.Fatal(err)
			}
			<-time.After(20 * time.Millisecond)
		}
	}
}

// Half way from the relay to Debezium, as docs/outbox.md says it: the slot is made
// while the relay still runs, so that Debezium begins before where that ends.
func TestASwitchFromTheRelayToDebeziumLosesNothing(t *testing.T) {
	s := startService(t)
	msgs := unnumbered(orders(20, "a", "b", "c"))
	s.write(t, msgs[:20]...)
	s.relay(t, kafka.Config{})
	s.write(t, msgs[20:25]...) // wait in the outbox when the slot is made
	for _, statement := range makeSlot {
		if _, err := s.db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	s.write(t, msgs[25:40]...)
	s.relay(t, kafka.Config{}) // at least up to what stood there when the slot was made
	s.write(t, msgs[40:50]...)
	d := s.debezium(t, map[string]string{"snapshot.mode": "no_data", "heartbeat.interval.ms": "100"})
	s.write(t, msgs[50:55]...)
	s.read(t, 40+25)
	if err := d.Crash(); err != nil { // it goes on where it was
		t.Fatal(err)
	}
	s.write(t, msgs[55:]...)
	if err := d.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.readUntil(t, func(records []*kgo.Record) bool { // it sends some of them again
		ids := map[string]bool{}
		for _, r := range records {
			ids[header(r, kafka.HeaderID)] = true
		}
		return len(ids) == len(msgs)
	})
	s.wantEffects(t, 20, 15, "a", "b", "c")
}
