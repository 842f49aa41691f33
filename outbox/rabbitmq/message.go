package rabbitmq

import (
	"fmt"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/ringiflow/ringi/outbox"
)

const (
	cloudEvent = "ce-"
	ownPrefix  = "header-"
	brokers    = "x-"

	// maxKey is the longest routing key, in bytes: the protocol has one byte for it.
	maxKey = 255

	// headerOverhead is what a header takes beside name and value, in bytes.
	headerOverhead = 6
)

// publishing is m as it is sent.
func (s *Sink) publishing(m *outbox.Message) amqp.Publishing {
	headers := amqp.Table{cloudEvent + "specversion": "1.0"}
	for name, value := range outbox.Attributes(s.cfg.Source, m) {
		headers[cloudEvent+name] = value
	}
	for name, value := range m.Headers {
		headers[ownHeader(name)] = value
	}
	return amqp.Publishing{
		MessageId: m.ID, Type: short(m.Type), ContentType: short(m.ContentType), Timestamp: m.CreatedAt,
		DeliveryMode: amqp.Persistent, Headers: headers, Body: m.Payload,
	}
}

// short is a text as a property takes it; the whole stands in the headers, or is
// not worth a message that cannot be sent.
func short(text string) string {
	if len(text) > maxKey {
		return ""
	}
	return text
}

// ownHeader is the name under which a message's own header travels. A name such as
// CC would be an order to the broker.
func ownHeader(name string) string {
	lower := strings.ToLower(name)
	if lower == "cc" || lower == "bcc" || strings.HasPrefix(lower, brokers) || strings.HasPrefix(lower, cloudEvent) || strings.HasPrefix(lower, ownPrefix) {
		name = ownPrefix + name
	}
	return name
}

// check refuses a message that no broker takes.
func (s *Sink) check(key string, m *outbox.Message) error {
	if key == "" || len(key) > maxKey {
		return fmt.Errorf("rabbitmq: the routing key %q has %d bytes, 1 to %d are allowed; choose another for this aggregate type", key, len(key), maxKey)
	}
	n := len(m.Payload)
	for name, value := range m.Headers {
		if len(ownHeader(name)) > maxKey {
			return fmt.Errorf("rabbitmq: the name of the header %.40q… has %d bytes, at most %d are allowed", name, len(name), maxKey)
		}
		n += len(name) + len(value) + headerOverhead
	}
	if n > s.cfg.MaxBytes {
		return fmt.Errorf("rabbitmq: the message has %d bytes, at most %d are allowed; store the data elsewhere and send a reference, or raise the limit here and at the broker (max_message_size)", n, s.cfg.MaxBytes)
	}
	return nil
}
