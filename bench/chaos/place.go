package chaos

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/ringiflow/ringi/outbox"
)

const (
	// lanes are the aggregate types, each with a topic, stream or queue of its own, so
	// that consumers work side by side and the order of a key is kept.
	lanes = 4

	// keys are what changes are about, in turn: few, so that producers meet.
	keys = 32

	// ackWait is how soon a broker gives a message of a silent consumer to another
	// one: below the time for which faults stop a consumer.
	ackWait = "2s"

	// session is the same for Kafka, which allows no less.
	session = "6s"

	stream = "CHAOS" // of the rig's own NATS server
)

// lane is the aggregate type of the nth key.
func lane(family string, nth int) string { return fmt.Sprintf("%s%d", family, nth%lanes) }

// key is the nth key.
func key(nth int) string { return fmt.Sprintf("key-%d", nth) }

// withParam adds a parameter to an address.
func withParam(address, name, value string) string {
	separator := "?"
	if strings.Contains(address, "?") {
		separator = "&"
	}
	return address + separator + name + "=" + url.QueryEscape(value)
}

// sources are where the messages of a family come out of a sink, one for each lane,
// in the words of package feed.
func sources(sink, family string) ([]string, error) {
	place, query, _ := strings.Cut(sink, "?")
	with, err := url.ParseQuery(query)
	if err != nil {
		return nil, fmt.Errorf("the sink's parameters cannot be read: %w", err)
	}
	scheme, _, _ := strings.Cut(place, "://")
	from := url.Values{}
	for _, name := range []string{"user", "password-file", "creds", "tls", "sasl", "cluster", "stream"} {
		if values := with[name]; len(values) > 0 {
			from[name] = values
		}
	}
	var all []string
	for n := range lanes {
		var known bool
		for _, prefix := range []string{"topic-prefix", "subject-prefix", "stream-prefix", "key-prefix"} {
			known = known || with.Has(prefix)
			if with.Has(prefix) {
				from.Set("at", with.Get(prefix)+lane(family, n))
			}
		}
		if !known {
			from.Set("at", outbox.TopicPrefix+lane(family, n))
		}
		one, err := sourceOf(scheme, from)
		if err != nil {
			return nil, err
		}
		one.Set("group", lane(family, n))
		if strings.HasPrefix(scheme, "amqp") {
			one.Del("group")
		}
		all = append(all, place+"?"+one.Encode())
	}
	return all, nil
}

// sourceOf names what carries the messages of one lane as its kind of broker does.
func sourceOf(scheme string, from url.Values) (url.Values, error) {
	one := url.Values{}
	for name, values := range from {
		if name != "at" && name != "stream" {
			one[name] = values
		}
	}
	at := from.Get("at")
	switch scheme {
	case "kafka":
		one.Set("topic", at)
		one.Set("create", "true")
		one.Set("session", session)
	case "nats", "nats+tls":
		if from.Get("stream") == "" {
			return nil, fmt.Errorf("name the stream that takes %s> too: ?stream=S", outbox.TopicPrefix)
		}
		one.Set("stream", from.Get("stream"))
		one.Set("subject", at)
		one.Set("ack-wait", ackWait)
	case "redis", "rediss":
		one.Set("stream", at)
		one.Set("ack-wait", ackWait)
	case "amqp", "amqps":
		one.Set("queue", at)
		one.Set("declare", "true")
	default:
		return nil, fmt.Errorf("%s:// is no broker whose messages can be read back: use kafka, nats, amqp or redis", scheme)
	}
	return one, nil
}
