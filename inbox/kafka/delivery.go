package kafka

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ringiflow/ringi/inbox"
)

// Names under which a delivery's headers have what is not a header in Kafka.
const (
	HeaderTopic = "kafka-topic"
	HeaderKey   = "kafka-key"
	HeaderPlace = "kafka-place" // topic/partition/offset
	headerID    = "id"
	headerEvent = "ce_id"
)

// delivery is a record as the inbox takes it. Of several headers with one name
// the last counts.
func delivery(r *kgo.Record) inbox.Delivery {
	place := fmt.Sprintf("%s/%d/%d", r.Topic, r.Partition, r.Offset)
	headers := make(map[string]string, len(r.Headers)+3)
	for _, h := range r.Headers {
		headers[h.Key] = string(h.Value)
	}
	d := inbox.Delivery{ID: place, Body: r.Value, Headers: headers}
	for _, name := range []string{headerID, headerEvent} {
		if id := headers[name]; inbox.Usable(id) {
			d.ID = id
			break
		}
	}
	headers[HeaderTopic], headers[HeaderKey], headers[HeaderPlace] = r.Topic, string(r.Key), place
	return d
}
