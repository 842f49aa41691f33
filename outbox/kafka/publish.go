package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ringiflow/ringi/outbox"
)

// errSilent is the answer when no broker said anything in time. The record may
// or may not be there.
var errSilent = fmt.Errorf("kafka: no acknowledgement in time; the message is sent again under its id: %w", context.DeadlineExceeded)

// Publish implements outbox.Sink. It returns when every record has its answer,
// at the latest when ctx or the configured time-out ends.
func (s *Sink) Publish(ctx context.Context, msgs []outbox.Message) []error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel() // what is still on its way is given up
	d := newDelivery(s, msgs)
	if err := s.settle(ctx); err != nil {
		return d.failOpen(err)
	}
	d.hold()
	d.send(ctx, d.scouts())
	d.hold()
	suspects := d.send(ctx, d.open())
	for _, i := range suspects {
		d.reopen(i)
	}
	// Kafka answers for a batch, so one bad record spoils its neighbours. Each
	// is sent alone, so that it fails for itself.
	for _, i := range suspects {
		if d.hold(); d.unsent[i] {
			d.send(ctx, []int{i})
		}
	}
	d.hold()
	return d.failOpen(outbox.Excuse(errSilent)) // the time was over before they were sent
}

// settle waits until nothing of an earlier call that ran out of time is left in
// the client. Its records were cancelled, so none of them is sent any more, but
// an answer may be due for a request that is out.
func (s *Sink) settle(ctx context.Context) error {
	if s.client.BufferedProduceRecords() == 0 {
		return nil
	}
	if err := s.client.Flush(ctx); err != nil {
		return fmt.Errorf("kafka: %d records of an earlier call have no answer yet: %w", s.client.BufferedProduceRecords(), err)
	}
	return nil
}

// delivery is one call of Publish: its messages and what is known of each.
type delivery struct {
	sink    *Sink
	msgs    []outbox.Message
	records []*kgo.Record
	unsent  []bool
	answers []error // of those that are not unsent
}

func newDelivery(s *Sink, msgs []outbox.Message) *delivery {
	d := &delivery{
		sink: s, msgs: msgs,
		records: make([]*kgo.Record, len(msgs)), unsent: make([]bool, len(msgs)), answers: make([]error, len(msgs)),
	}
	for i := range msgs {
		d.records[i] = s.record(&msgs[i])
		topic := d.records[i].Topic
		since, absent := s.absent[topic]
		switch err := s.check(d.records[i]); {
		case err != nil:
			d.answers[i] = outbox.Refuse(err)
		case absent && s.now().Sub(since) < absentPause:
			d.answers[i] = errAbsent(topic, kerr.UnknownTopicOrPartition)
		default:
			d.unsent[i] = true
		}
	}
	return d
}

func (d *delivery) answer(i int, err error) { d.unsent[i], d.answers[i] = false, err }

func (d *delivery) reopen(i int) { d.unsent[i], d.answers[i] = true, nil }

// hold holds back what stands behind a failure of its key.
func (d *delivery) hold() {
	failed := map[outbox.Key]bool{}
	for i := range d.msgs {
		m := &d.msgs[i]
		switch {
		case m.Seq == 0:
		case failed[m.Key()] && (d.unsent[i] || d.answers[i] != nil):
			d.answer(i, outbox.ErrHeld)
		case d.answers[i] != nil:
			failed[m.Key()] = true
		}
	}
}

// open lists what was not sent yet.
func (d *delivery) open() (indexes []int) {
	for i, unsent := range d.unsent {
		if unsent {
			indexes = append(indexes, i)
		}
	}
	return indexes
}

// scouts lists the first message of every topic that the client does not know
// yet. Records of an unknown topic have no partition, so the client would begin
// to send while later ones are still being sorted.
func (d *delivery) scouts() (indexes []int) {
	sent := map[string]bool{}
	for _, i := range d.open() {
		if topic := d.records[i].Topic; !d.sink.known[topic] && !sent[topic] {
			sent[topic] = true
			indexes = append(indexes, i)
		}
	}
	return indexes
}

// send sends records and waits for their answers. It returns those that failed
// for a reason that lies in a record, if there was more than one to fail.
func (d *delivery) send(ctx context.Context, indexes []int) (suspects []int) {
	if len(indexes) == 0 {
		return nil
	}
	var mu sync.Mutex // an answer can come after this call has given up
	results := make(map[int]error, len(indexes))
	for _, i := range indexes {
		// A copy, because the client keeps its own notes in a record.
		record := *d.records[i]
		d.sink.client.Produce(ctx, &record, func(_ *kgo.Record, err error) {
			mu.Lock()
			defer mu.Unlock()
			results[i] = err
		})
	}
	// When the wait ends early, what has no answer yet is looked at below.
	_ = d.sink.client.Flush(ctx)
	mu.Lock()
	defer mu.Unlock()
	for _, i := range indexes {
		err, answered := results[i]
		switch {
		case !answered:
			d.answer(i, errSilent)
		case err == nil:
			d.answer(i, nil)
			d.sink.known[d.records[i].Topic] = true
			delete(d.sink.absent, d.records[i].Topic)
		case refused(err):
			d.answer(i, outbox.Refuse(fmt.Errorf("kafka: topic %s: %w", d.records[i].Topic, err)))
			suspects = append(suspects, i)
		default:
			d.answer(i, d.down(i, err))
		}
	}
	if len(indexes) == 1 {
		return nil
	}
	return suspects
}

// down is the answer for a record that a broker did not take.
func (d *delivery) down(i int, err error) error {
	topic := d.records[i].Topic
	switch {
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		delete(d.sink.known, topic)
		d.sink.absent[topic] = d.sink.now()
		return errAbsent(topic, err)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return fmt.Errorf("%w (topic %s: %w)", errSilent, topic, err)
	}
	err = fmt.Errorf("kafka: topic %s: %w", topic, err)
	if kerr.IsRetriable(err) && !errors.Is(err, kerr.CorruptMessage) {
		return outbox.Excuse(err) // such as a partition without a leader or enough replicas
	}
	return err
}

func errAbsent(topic string, err error) error {
	return outbox.Excuse(fmt.Errorf("kafka: topic %s is not there; create it, with as many partitions as it will ever need: %w", topic, err))
}

// refused tells whether err lies in the record and not in the broker.
func refused(err error) bool {
	for _, reason := range []error{
		kerr.MessageTooLarge, kerr.RecordListTooLarge, kerr.InvalidRecord, kerr.InvalidTimestamp, kerr.InvalidTopicException,
	} {
		if errors.Is(err, reason) {
			return true
		}
	}
	return false
}

// failOpen gives err to every message that is still open, and returns the answers.
func (d *delivery) failOpen(err error) []error {
	for _, i := range d.open() {
		d.answer(i, err)
	}
	d.hold()
	return d.answers
}
