package feed_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/ringiflow/ringi/feed"
	"github.com/ringiflow/ringi/inbox"
	"github.com/ringiflow/ringi/outbox"
)

// taken is ringi: it keeps what it got, and refuses what fail says.
type taken struct {
	got  []outbox.Message
	fail error
}

// Publish implements outbox.Sink.
func (s *taken) Publish(_ context.Context, msgs []outbox.Message) []error {
	if s.fail == nil {
		s.got = append(s.got, msgs...)
	}
	out := make([]error, len(msgs))
	for i := range out {
		out[i] = s.fail
	}
	return out
}

// fed makes feeds of a file, with their inbox in memory's place on disk.
func fed(t *testing.T, sink outbox.Sink, file string) *feed.Feeds {
	t.Helper()
	definitions, err := feed.Parse("feeds.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	db, err := feed.OpenBox(t.Context(), "sqlite:"+t.TempDir()+"/box")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	f, err := feed.New(feed.Config{Definitions: definitions, DB: db, Sink: sink})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

const onRedis = "feeds:\n- name: f\n  from: redis://127.0.0.1:1?stream=s\n"

func TestAMessageBecomesWhatTheFileSays(t *testing.T) {
	sent := inbox.Delivery{ID: "m-1", Body: []byte(`{"order":{"id":"o-7","n":12345678901234567890,"lines":[1]},"tell":"you"}`), Headers: map[string]string{"ce-type": "order.placed", "ce-subject": "a-1", "x": "y"}}
	onNATS := inbox.Delivery{ID: "m-2", Body: []byte(`1`), Headers: map[string]string{"nats-subject": "s", "ce-type": "a%20b", "ce-subject": "100%25"}}
	onKafka := inbox.Delivery{ID: "m-3", Body: []byte(`{}`), Headers: map[string]string{"kafka-topic": "t", "kafka-key": "k", "type": "debezium"}}
	for name, c := range map[string]struct {
		file string
		d    inbox.Delivery
		want outbox.Message
	}{
		"nothing is said":   {"", sent, outbox.Message{ID: "m-1", Type: "order.placed", AggregateID: "a-1", Payload: sent.Body}},
		"NATS escapes":      {"", onNATS, outbox.Message{ID: "m-2", Type: "a b", AggregateID: "100%", Payload: []byte(`1`)}},
		"a record of Kafka": {"", onKafka, outbox.Message{ID: "m-3", Type: "debezium", AggregateID: "k", Payload: []byte(`{}`)}},
		"an event of the file": {
			"  event: paid.${ message.type }\n  key: ${ message.data.order.n }\n  id: ${ message.id }-audit\n  data: { order: '${ message.data.order.id }', from: ['${ message.headers.x }', 1, null, true] }\n",
			sent,
			outbox.Message{ID: "m-1-audit", Type: "paid.order.placed", AggregateID: "12345678901234567890", Payload: []byte(`{"from":["y",1,null,true],"order":"o-7"}`)},
		},
		"a start": {
			"  start: fulfil\n  version: 3\n  key: ${ message.data.order.id }\n  input: ${ message.data.order }\n", sent,
			outbox.Message{ID: "m-1", Type: outbox.RunStartType, AggregateID: "fulfil", Payload: []byte(`{"definition":"fulfil","version":3,"key":"o-7","input":{"id":"o-7","lines":[1],"n":12345678901234567890}}`)},
		},
		"a start of the payload": {
			"  start: fulfil\n", onKafka,
			outbox.Message{ID: "m-3", Type: outbox.RunStartType, AggregateID: "fulfil", Payload: []byte(`{"definition":"fulfil","input":{}}`)},
		},
		"a condition that holds": {"  when: message.data.order.lines.size() == 1\n", sent, outbox.Message{ID: "m-1", Type: "order.placed", AggregateID: "a-1", Payload: sent.Body}},
	} {
		sink := &taken{}
		outcome, err := fed(t, sink, onRedis+c.file).Receive(t.Context(), "f", c.d)
		if outcome != inbox.Handled || err != nil || len(sink.got) != 1 {
			t.Errorf("%s: %d, %v, %d messages", name, outcome, err, len(sink.got))
			continue
		}
		got := sink.got[0]
		if got.ID != c.want.ID || got.Type != c.want.Type || got.AggregateID != c.want.AggregateID || string(got.Payload) != string(c.want.Payload) {
			t.Errorf("%s: %s %s %s %s", name, got.ID, got.Type, got.AggregateID, got.Payload)
		}
	}
}

func TestAMessageThatIsNotMeantIsPassedOver(t *testing.T) {
	sink := &taken{}
	f := fed(t, sink, onRedis+"  when: message.type == 'x'\n")
	outcome, err := f.Receive(t.Context(), "f", inbox.Delivery{ID: "m", Body: []byte(`{}`), Headers: map[string]string{"ce-type": "y"}})
	if outcome != inbox.Handled || err != nil || len(sink.got) != 0 {
		t.Errorf("%d, %v, %v", outcome, err, sink.got)
	}
}

// O-26: what the file can make nothing of is set aside at once, and sent again when
// the file or ringi has been mended.
func TestAMessageOfWhichNothingCanBeMadeIsSetAside(t *testing.T) {
	for name, c := range map[string]struct {
		file string
		d    inbox.Delivery
		says string
	}{
		"no JSON":       {"  key: ${ message.data.id }\n", inbox.Delivery{ID: "m", Body: []byte("<xml/>")}, "not JSON"},
		"no such field": {"  key: ${ message.data.id }\n", inbox.Delivery{ID: "m", Body: []byte(`{}`)}, "key"},
		"no text":       {"  key: ${ message.data.id }\n", inbox.Delivery{ID: "m", Body: []byte(`{"id":[1]}`)}, "neither a text nor a number"},
		"no type":       {"", inbox.Delivery{ID: "m", Body: []byte(`{}`)}, "does not say its type"},
		"no id":         {"  event: e\n  key: k\n", inbox.Delivery{Body: []byte(`{}`)}, "no id of its own"},
	} {
		sink := &taken{}
		outcome, err := fed(t, sink, onRedis+c.file).Receive(t.Context(), "f", c.d)
		if outcome != inbox.Poisoned || err == nil || !strings.Contains(err.Error(), c.says) || len(sink.got) > 0 {
			t.Errorf("%s: %d, %v", name, outcome, err)
		}
	}
	sink := &taken{}
	outcome, err := fed(t, sink, onRedis+"  event: e\n  key: k\n  id: ${ message.data.n }\n").Receive(t.Context(), "f", inbox.Delivery{Body: []byte(`{"n":4}`)})
	if outcome != inbox.Handled || err != nil || len(sink.got) != 1 || sink.got[0].ID != "4" {
		t.Errorf("an id of the file: %d, %v, %+v", outcome, err, sink.got)
	}
}

// O-25: an outage of ringi counts nothing; what ringi refuses is tried again and then
// set aside, and given to it again by hand.
func TestRefusalsCountAndOutagesDoNot(t *testing.T) {
	sink := &taken{}
	f := fed(t, sink, onRedis+"  attempts: 3\n")
	d := inbox.Delivery{ID: "m", Body: []byte(`{}`), Headers: map[string]string{"ce-type": "e"}}
	receive := func(fail error, want inbox.Outcome) {
		t.Helper()
		sink.fail = fail
		if got, err := f.Receive(t.Context(), "f", d); got != want || (err != nil) != (fail != nil) {
			t.Errorf("%v: %d, %v, want %d", fail, got, err, want)
		}
	}
	broken := errors.New("broken")
	for range 9 {
		receive(outbox.Excuse(broken), inbox.Failed)
		receive(broken, inbox.Failed)
	}
	receive(outbox.Refuse(broken), inbox.Failed)
	receive(outbox.Blame(broken), inbox.Failed)
	receive(outbox.Refuse(broken), inbox.Poisoned)
	receive(nil, inbox.Poisoned) // a repeat of it
	if err := f.Retry(t.Context(), "f", "other"); !errors.Is(err, inbox.ErrNotPoison) {
		t.Errorf("what is not set aside: %v", err)
	}
	if err := f.Retry(t.Context(), "g", "m"); !errors.Is(err, feed.ErrNoFeed) {
		t.Errorf("a feed that is not there: %v", err)
	}
	sink.fail = outbox.Refuse(broken)
	if err := f.Retry(t.Context(), "f", "m"); !errors.Is(err, broken) {
		t.Errorf("it is refused again: %v", err)
	}
	sink.fail = nil
	if err := f.Retry(t.Context(), "f", "m"); err != nil || len(sink.got) != 1 {
		t.Errorf("sent again: %v, %d messages", err, len(sink.got))
	}
}
