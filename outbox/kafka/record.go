package kafka

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ringiflow/ringi/outbox"
)

const (
	// HeaderID is the header that carries the message id, by which consumers
	// drop repeats.
	HeaderID = "id"

	headerContentType = "content-type"
	cloudEvent        = "ce_"
	ownPrefix         = "header-"

	// longestTopic is Kafka's limit in bytes.
	longestTopic = 249

	// recordOverhead is the most that a record takes beside its key, value and
	// headers, and headerOverhead what a header takes beside name and value.
	recordOverhead = 48
	headerOverhead = 10
)

// record is m as it is sent.
func (s *Sink) record(m *outbox.Message) *kgo.Record {
	headers := make([]kgo.RecordHeader, 0, 11+len(m.Headers))
	add := func(name, value string) {
		headers = append(headers, kgo.RecordHeader{Key: name, Value: []byte(value)})
	}
	add(HeaderID, m.ID)
	if s.headers == DebeziumHeaders {
		return s.of(m, headers)
	}
	if m.ContentType != "" {
		add(headerContentType, m.ContentType)
	}
	add(cloudEvent+"specversion", "1.0")
	for name, value := range outbox.Attributes(s.source, m) {
		add(cloudEvent+name, value)
	}
	for _, name := range slices.Sorted(maps.Keys(m.Headers)) {
		add(ownHeader(name), m.Headers[name])
	}
	return s.of(m, headers)
}

// of is the record of m with its headers.
func (s *Sink) of(m *outbox.Message, headers []kgo.RecordHeader) *kgo.Record {
	value := m.Payload
	if value == nil {
		value = []byte{} // nil would be a tombstone
	}
	return &kgo.Record{Topic: s.topic(m), Key: []byte(m.AggregateID), Value: value, Headers: headers}
}

// ownHeader is the name under which a message's own header travels.
func ownHeader(name string) string {
	if name == HeaderID || name == headerContentType || strings.HasPrefix(name, cloudEvent) || strings.HasPrefix(name, ownPrefix) {
		return ownPrefix + name
	}
	return name
}

// check refuses a record that no broker takes, before it can harm the batch
// that it would travel in.
func (s *Sink) check(r *kgo.Record) error {
	if wrong := topicFault(r.Topic); wrong != "" {
		return fmt.Errorf("kafka: topic %q %s; choose another name for this aggregate type", r.Topic, wrong)
	}
	if n := size(r); n > s.maxBytes {
		return fmt.Errorf("kafka: the record has %d bytes, at most %d are allowed; store the data elsewhere and send a reference, or raise the limit here and at the topic", n, s.maxBytes)
	}
	return nil
}

// size is the most bytes that r takes in a batch.
func size(r *kgo.Record) int {
	n := recordOverhead + len(r.Key) + len(r.Value)
	for _, h := range r.Headers {
		n += headerOverhead + len(h.Key) + len(h.Value)
	}
	return n
}

func topicFault(topic string) string {
	switch {
	case topic == "", topic == ".", topic == "..":
		return "is not a name"
	case len(topic) > longestTopic:
		return fmt.Sprintf("has %d bytes, at most %d are allowed", len(topic), longestTopic)
	}
	for i := range len(topic) {
		c := topic[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && c != '.' && c != '_' && c != '-' {
			return fmt.Sprintf("contains %q; only ASCII letters, digits, dot, underscore and hyphen are allowed", c)
		}
	}
	return ""
}
