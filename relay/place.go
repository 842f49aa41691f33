package relay

import (
	"fmt"
	"strings"

	"github.com/ringiflow/ringi/address"
	"github.com/ringiflow/ringi/outbox"
)

// How destinations begin.
const (
	schemeStdout      = "stdout"
	schemeFile        = "file:"
	schemeKafka       = "kafka://"
	schemeNATS        = "nats://"
	schemeNATSTLS     = "nats+tls://"
	schemeRabbitMQ    = "amqp://"
	schemeRabbitMQTLS = "amqps://"
	schemeRedis       = "redis://"
	schemeRedisTLS    = "rediss://"
	schemeWebhook     = "webhook+https://"
	schemeWebhookHTTP = "webhook+http://"
	schemeRingi       = "ringi+https://"
	schemeRingiHTTP   = "ringi+http://"
)

// Forms says which destinations there are, for messages to people.
const Forms = "stdout, file:PATH, kafka://HOST:PORT, nats://HOST, amqp://HOST, redis://HOST, webhook+https://HOST/PATH, ringi+https://HOST"

// A Place is where messages go, as it was named.
type Place struct {
	// Destination is whose messages they are; empty means those that name none.
	Destination string

	// URL says what is there and how it is reached.
	URL string
}

// ParsePlaces reads destinations, one a line; empty lines are nothing. No two may
// have one name. Nothing is opened.
func ParsePlaces(text string) ([]Place, error) {
	var places []Place
	seen := map[string]bool{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		p := Place{URL: line}
		if name, rest, named := strings.Cut(line, "="); named && !strings.ContainsAny(name, ":/?") {
			p = Place{Destination: strings.TrimSpace(name), URL: strings.TrimSpace(rest)}
		}
		if err := p.check(); err != nil {
			return nil, err
		}
		if seen[p.Destination] {
			return nil, fmt.Errorf("two destinations are called %q: give each a name of its own, as in audit=%s", p.Destination, address.WithoutSecrets(p.URL))
		}
		seen[p.Destination] = true
		places = append(places, p)
	}
	return places, nil
}

func (p Place) check() error {
	if p.URL == schemeStdout {
		return nil
	}
	for _, scheme := range []string{
		schemeFile, schemeKafka, schemeNATS, schemeNATSTLS, schemeRabbitMQ, schemeRabbitMQTLS, schemeRedis, schemeRedisTLS,
		schemeWebhook, schemeWebhookHTTP, schemeRingi, schemeRingiHTTP,
	} {
		if rest, ok := strings.CutPrefix(p.URL, scheme); ok && rest != "" {
			return nil
		}
	}
	return fmt.Errorf("the destination %q is not one of %s", address.WithoutSecrets(p.URL), Forms)
}

// ParseRoutes reads the routes of messages to destinations, one a line in the
// form AGGREGATETYPE[/TYPE]=NAME; * at the end of a part stands for everything
// that begins like it. The first that matches counts. Each NAME must be one of
// the places.
func ParseRoutes(text string, places []Place) (outbox.Routes, error) {
	var routes outbox.Routes
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		what, name, ok := strings.Cut(line, "=")
		if !ok || what == "" {
			return nil, fmt.Errorf("the route %q is not one: write AGGREGATETYPE/TYPE=NAME, as in Order/*=audit", line)
		}
		if !named(places, name) {
			return nil, fmt.Errorf("the route %q leads to %q, which is no destination here: name one NAME=… among the destinations", line, name)
		}
		aggregate, event, _ := strings.Cut(what, "/")
		routes = append(routes, outbox.Route{AggregateType: aggregate, Type: event, Destination: name})
	}
	return routes, nil
}

func named(places []Place, name string) bool {
	for _, p := range places {
		if p.Destination == name {
			return true
		}
	}
	return false
}

// Masked is destinations as settings are shown: whole, but for what stands before
// an @, which may be a user's password.
func Masked(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		scheme, rest, ok := strings.Cut(line, "://")
		if !ok {
			b.WriteString(line)
			continue
		}
		query := len(rest)
		if at := strings.IndexByte(rest, '?'); at >= 0 {
			query = at
		}
		hosts := strings.Split(rest[:query], ",")
		for i, host := range hosts {
			if at := strings.LastIndex(host, "@"); at >= 0 {
				hosts[i] = "xxxxx" + host[at:]
			}
		}
		b.WriteString(scheme + "://" + strings.Join(hosts, ",") + rest[query:])
	}
	return b.String()
}
