//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/cmd/ringi/cli"
	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/nats/natsserver"
	"github.com/ringiflow/ringi/servertest"
)

// shopDefinition tells the world of an order, through four brokers.
const shopDefinition = `ringi: v1
name: shop
input: { type: object, required: [order], properties: { order: { type: string } } }
steps:
  - { id: kafka, emit: { type: paid, aggregate: { type: Kafka, id: "${ input.order }-kafka" }, data: { by: kafka } } }
  - { id: nats, emit: { type: paid, aggregate: { type: Nats, id: "${ input.order }-nats" }, data: { by: nats } } }
  - { id: redis, emit: { type: paid, aggregate: { type: Redis, id: "${ input.order }-redis" }, data: { by: redis } } }
  - { id: rabbit, emit: { type: paid, aggregate: { type: Rabbit, id: "${ input.order }-rabbit" }, data: { by: rabbit } } }
`

// waitDefinition waits for what came through all of them.
const waitDefinition = `ringi: v1
name: warehouse
input: { type: object, required: [order], properties: { order: { type: string } } }
steps:
  - { id: kafka, wait: { event: paid, key: "${ input.order }-kafka" } }
  - { id: nats, wait: { event: paid, key: "${ input.order }-nats" } }
  - { id: redis, wait: { event: paid, key: "${ input.order }-redis" } }
  - { id: rabbit, wait: { event: paid, key: "${ input.order }-rabbit" } }
`

// billDefinition is started by messages; it waits, so that its runs stay to be counted.
const billDefinition = `ringi: v1
name: bill
input: { type: object }
steps:
  - { id: hold, wait: { event: never, key: k } }
`

// natsBroker is a NATS server in this process.
func natsBroker(t *testing.T) string {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended, url := make(chan error, 1), make(chan string, 1)
	go func() {
		ended <- natsserver.Serve(ctx, natsserver.Config{Dir: t.TempDir(), Stream: "EVENTS", Subjects: []string{outbox.TopicPrefix + ">"}}, func(at string) { url <- at })
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	select {
	case at := <-url:
		return at
	case err := <-ended:
		ended <- nil
		t.Fatal(err)
	}
	return ""
}

// broker is a server of servertest that is closed at the end.
func broker(t *testing.T, start func(context.Context, ...string) (*servertest.Server, error), settings ...string) *servertest.Server {
	t.Helper()
	s, err := start(t.Context(), settings...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// runsOf lists the runs of a definition.
func (w *desk) runsOf(definition string) []ringi.RunSummary {
	w.t.Helper()
	var page struct {
		Runs []ringi.RunSummary `json:"runs"`
		Next string             `json:"next"`
	}
	w.ok(&page, "runs", "--definition", definition, "--limit", "200")
	return page.Runs
}

// publishHere publishes definitions at the desk's server.
func (w *desk) publishHere(definitions ...string) {
	w.t.Helper()
	for _, d := range definitions {
		if got := w.runWith(d, "publish", "-"); got.code != cli.ExitOK {
			w.t.Fatalf("publish: %+v", got)
		}
	}
}

// TC-29, O5, O9: a run of one server emits, each broker carries it, and a run of
// another server that waits goes on.
func TestAnEmitReachesAWaitInAnotherProcessThroughEachBroker(t *testing.T) {
	nats := natsBroker(t)
	redis, rabbit, kafka := broker(t, servertest.Redis), broker(t, servertest.RabbitMQ), broker(t, servertest.Kafka)
	if _, err := servertest.KafkaTool(t.Context(), kafka, "kafka-topics", "--create", "--topic", outbox.TopicPrefix+"Kafka", "--partitions", "3"); err != nil {
		t.Fatal(err)
	}
	shop, warehouse := newDesk(t), newDesk(t)
	for _, w := range []*desk{shop, warehouse} {
		w.write("guest", "guest\n")
	}
	user := "user=guest&password-file=guest"
	warehouse.write("feeds.yaml", fmt.Sprintf(`feeds:
- { name: kafka, from: "kafka://%[1]s?topic=outbox.event.Kafka&session=6s" }
- { name: nats, from: "%[2]s?stream=EVENTS&subject=outbox.event.Nats" }
- { name: redis, from: "redis://%[3]s?stream=outbox.event.Redis" }
- { name: rabbit, from: "amqp://%[4]s?queue=outbox.event.Rabbit&declare=true&%[5]s" }
- { name: bills, from: "%[2]s?stream=EVENTS&subject=outbox.event.Nats", start: bill, when: "message.data.by == 'nats'", input: { of: "${ message.key }" } }
`, kafka.Address(), nats, redis.Address(), rabbit.Address(), user))
	receiving := warehouse.server("--feeds", "feeds.yaml")
	warehouse.publishHere(waitDefinition, billDefinition)
	shop.server("--outbox", "kafka=kafka://"+kafka.Address(), "--outbox", "nats="+nats, "--outbox", "redis=redis://"+redis.Address(),
		"--outbox", "rabbit=amqp://"+rabbit.Address()+"?"+user,
		"--outbox-route", "Kafka=kafka", "--outbox-route", "Nats=nats", "--outbox-route", "Redis=redis", "--outbox-route", "Rabbit=rabbit")
	shop.publishHere(shopDefinition)

	var waiting []ringi.RunID
	for n := range 3 { // who waits before, and who comes later
		waiting = append(waiting, warehouse.begin("warehouse", "-i", fmt.Sprintf("order=o%d", n)).Run)
	}
	for n := range 6 {
		if run := shop.begin("shop", "-i", fmt.Sprintf("order=o%d", n)); run.Status != ringi.Completed {
			t.Errorf("the shop's run is %+v", run)
		}
	}
	for n := range 3 {
		waiting = append(waiting, warehouse.begin("warehouse", "-i", fmt.Sprintf("order=o%d", 3+n)).Run)
	}
	for _, run := range waiting {
		eventually(t, "the end of a run that waits", func() bool { return warehouse.show(run).Status == ringi.Completed })
	}
	eventually(t, "a bill for each", func() bool { return len(warehouse.runsOf("bill")) == 6 })
	if got := warehouse.run("feed", "list"); got.code != cli.ExitOK || strings.Count(got.out, "\n") != 1 {
		t.Errorf("set aside: %+v", got)
	}

	// The same messages again, from the beginning, by a process of its own.
	warehouse.write("again.yaml", fmt.Sprintf(`feeds:
- { name: again, from: "%[1]s?stream=EVENTS&subject=outbox.event.Nats", start: bill, input: { of: "${ message.key }" } }
`, nats))
	again := warehouse.process("feed", "--feeds", "again.yaml", "--inbox", "sqlite:again.inbox", "--metrics", "127.0.0.1:0")
	eventually(t, "all of them again", func() bool { return handled(t, again, "again") == 6 })
	if n := len(warehouse.runsOf("bill")); n != 6 {
		t.Errorf("%d bills after a replay", n)
	}
	for _, p := range []process{again, receiving} {
		if err := p.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if code := p.exit(); code != cli.ExitOK {
			t.Errorf("exits with %d: %s", code, p.err)
		}
	}
}

// textOf is what a server answers.
func textOf(t *testing.T, url string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// handled is how many deliveries of a feed were handled, as its metrics say.
func handled(t *testing.T, p process, feed string) int {
	t.Helper()
	_, rest, found := strings.Cut(p.err.String(), "msg=metrics url=")
	if !found || !strings.Contains(rest, "\n") {
		return -1
	}
	url, _, _ := strings.Cut(rest, "\n")
	for line := range strings.Lines(textOf(t, url)) {
		var n int
		if value, ok := strings.CutPrefix(line, fmt.Sprintf(`ringi_feed_messages_total{feed="%s",outcome="handled"} `, feed)); ok {
			if _, err := fmt.Sscan(value, &n); err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	return 0
}

// O7, O9, O-11: a feed that is killed again and again between the commit of ringi and
// its word to the broker, beside a broker that is killed too, starts each run once.
func TestAFeedThatIsKilledStartsEachRunOnce(t *testing.T) {
	redis := broker(t, servertest.Redis)
	w := newDesk(t)
	w.write("feeds.yaml", "feeds:\n- { name: bills, from: \"redis://"+redis.Address()+"?stream=outbox.event.Order&ack-wait=300ms\", start: bill }\n")
	w.server("--outbox", "redis://"+redis.Address())
	w.publishHere(billDefinition, `ringi: v1
name: emit
input: { type: object, required: [n], properties: { n: { type: string } } }
steps: [ { id: say, emit: { type: placed, aggregate: { type: Order, id: "${ input.n }" }, data: { n: "${ input.n }" } } } ]
`)
	const orders = 60
	for n := range orders {
		w.begin("emit", "-i", fmt.Sprintf("n=o%d", n))
	}
	before := 0
	for round := 0; ; round++ {
		feed := w.process("feed", "--feeds", "feeds.yaml")
		eventually(t, "some runs", func() bool { return len(w.runsOf("bill")) >= min(before+10, orders) })
		if err := feed.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		feed.exit()
		if round == 1 {
			if err := redis.Crash(); err != nil {
				t.Fatal(err)
			}
			if err := redis.Resume(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if before = len(w.runsOf("bill")); before >= orders {
			break
		}
	}
	w.write("last.yaml", "feeds:\n- { name: all, from: \"redis://"+redis.Address()+"?stream=outbox.event.Order\", start: bill }\n")
	last := w.process("feed", "--feeds", "last.yaml", "--metrics", "127.0.0.1:0")
	eventually(t, "all of them again", func() bool { return handled(t, last, "all") >= orders })
	if n := len(w.runsOf("bill")); n != orders {
		t.Errorf("%d runs for %d messages", n, orders)
	}
	if err := last.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	last.exit()
}

// O-26: what ringi will never take is shown, sent again when the cause is mended, or
// dropped, and stops nothing meanwhile.
func TestMessagesThatAreSetAsideAreShownAndSentAgain(t *testing.T) {
	nats := natsBroker(t)
	w := newDesk(t)
	feeds := func(key string) {
		w.write("feeds.yaml", "feeds:\n- { name: orders, from: \""+nats+"?stream=EVENTS\", start: bill, key: \""+key+"\" }\n")
	}
	feeds("${ message.data.no_such_field }")
	w.server("--outbox", nats)
	w.publishHere(billDefinition, shopOnNATS)
	for _, n := range []string{"o1", "o2"} {
		w.begin("emit", "-i", "n="+n)
	}
	feed := w.process("feed", "--feeds", "feeds.yaml")
	var list struct {
		Messages []struct {
			Feed       string            `json:"feed"`
			ID         string            `json:"id"`
			Failures   int               `json:"failures"`
			SetAsideAt string            `json:"setAsideAt"`
			Error      string            `json:"error"`
			Headers    map[string]string `json:"headers"`
			Body       map[string]string `json:"body"`
		} `json:"messages"`
	}
	eventually(t, "two messages set aside", func() bool {
		list.Messages = nil
		w.ok(&list, "feed", "list")
		return len(list.Messages) == 2
	})
	m := list.Messages[0]
	if m.Feed != "orders" || m.Failures != 1 || !strings.Contains(m.Error, "no_such_field") || m.Body["n"] != "o1" || m.Headers["ce-type"] != "placed" {
		t.Errorf("shown is %+v", m)
	}
	if !strings.Contains(feed.err.String(), "ringi feed list shows it") {
		t.Errorf("the log does not tell: %s", feed.err)
	}
	w.exits(cli.ExitFailed, nil, "feed", "retry", "orders", m.ID, "--feeds", "feeds.yaml")
	feeds("${ message.data.n }")
	w.ok(nil, "feed", "retry", "orders", m.ID, "--feeds", "feeds.yaml")
	w.exits(cli.ExitNotFound, nil, "feed", "retry", "orders", m.ID, "--feeds", "feeds.yaml")
	w.exits(cli.ExitUsage, nil, "feed", "drop", "orders", list.Messages[1].ID)
	w.ok(nil, "feed", "drop", "orders", list.Messages[1].ID, "--reason", "of a test")
	w.exits(cli.ExitNotFound, nil, "feed", "drop", "orders", list.Messages[1].ID, "--reason", "of a test")
	var dropped struct {
		Drops []struct{ At, Feed, ID, Reason string } `json:"drops"`
	}
	w.ok(&dropped, "feed", "drops")
	if len(dropped.Drops) != 1 || dropped.Drops[0].Feed != "orders" || dropped.Drops[0].ID != list.Messages[1].ID || dropped.Drops[0].Reason != "of a test" {
		t.Errorf("dropped is %+v", dropped)
	}
	if runs := w.runsOf("bill"); len(runs) != 1 {
		t.Errorf("%d runs", len(runs))
	}
	list.Messages = nil
	w.ok(&list, "feed", "list")
	if len(list.Messages) != 0 {
		t.Errorf("left: %+v", list.Messages)
	}
	if files, err := filepath.Glob(filepath.Join(w.dir, "*.inbox")); err != nil || !slices.Equal(files, []string{filepath.Join(w.dir, "ringi.db.inbox")}) {
		t.Errorf("the inbox is %v, %v", files, err)
	}
	if err := feed.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := feed.exit(); code != cli.ExitOK {
		t.Errorf("exits with %d: %s", code, feed.err)
	}
}

const shopOnNATS = `ringi: v1
name: emit
input: { type: object, required: [n], properties: { n: { type: string } } }
steps: [ { id: say, emit: { type: placed, aggregate: { type: Order, id: "${ input.n }" }, data: { n: "${ input.n }" } } } ]
`

func TestAFeedRefusesWhatCannotWork(t *testing.T) {
	w := newDesk(t)
	w.start("serve")
	w.write("broken.yaml", "feeds:\n- { name: a, from: 'redis://h?stream=s', event: e, start: s }\n")
	w.write("nowhere.yaml", "feeds:\n- { name: a, from: 'ftp://h' }\n")
	for _, args := range []string{"feed", "feed --feeds broken.yaml", "feed --feeds nowhere.yaml", "feed --feeds broken.yaml --inbox file", "serve --feeds broken.yaml --database sqlite:b.db", "serve --feeds nowhere.yaml --database sqlite:c.db"} {
		if got := w.run(strings.Fields(args)...); got.code != cli.ExitUsage {
			t.Errorf("%s: %+v", args, got)
		}
	}
	if got := w.run("feed", "--feeds", "missing.yaml"); got.code != cli.ExitNotFound {
		t.Errorf("a file that is not there: %+v", got)
	}
}
