package relay_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/relay"
)

func TestDestinationsStandOneALineWithOrWithoutAName(t *testing.T) {
	got, err := relay.ParsePlaces("stdout\n\n  audit = file:a=b.ndjson \nbus=kafka://a:9092,b:9092?topic-prefix=x=y\nhook=webhook+https://h/p?secret-file=s\n")
	want := []relay.Place{
		{"", "stdout"},
		{"audit", "file:a=b.ndjson"},
		{"bus", "kafka://a:9092,b:9092?topic-prefix=x=y"},
		{"hook", "webhook+https://h/p?secret-file=s"},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := relay.ParsePlaces("kafka://h?topic-prefix=a"); err != nil || got[0].Destination != "" {
		t.Errorf("a parameter is taken for a name: %+v, %v", got, err)
	}
}

func TestWhatIsNoDestinationIsRefusedWithoutItsSecrets(t *testing.T) {
	for text, want := range map[string]string{
		"pigeon":                              `"pigeon" is not one of stdout`,
		"file:":                               `"file:" is not one of`,
		"kafka:a:9092":                        "is not one of",
		"stdout\nfile:a":                      `two destinations are called ""`,
		"a=stdout\na=nats://u:secret@h":       `as in audit=nats://h`,
		"mqtt://u:secret@h/v?password=secret": `"mqtt://h/v" is not one of`,
	} {
		_, err := relay.ParsePlaces(text)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v, without %q", text, err, want)
		}
	}
}

func TestRoutesLeadToDestinationsThatThereAre(t *testing.T) {
	places := []relay.Place{{"", "stdout"}, {"audit", "file:a"}}
	routes, err := relay.ParseRoutes("Order/order.*=audit\nInvoice=audit\n*=\n", places)
	want := outbox.Routes{
		{AggregateType: "Order", Type: "order.*", Destination: "audit"}, {AggregateType: "Invoice", Destination: "audit"}, {AggregateType: "*"},
	}
	if err != nil || !slices.Equal(routes, want) {
		t.Errorf("got %+v, %v", routes, err)
	}
	for _, text := range []string{"Order", "=audit", "Order=nowhere"} {
		if _, err := relay.ParseRoutes(text, places); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestDestinationsAreShownWithoutPasswords(t *testing.T) {
	given := "stdout\na=nats://u:secret@h:1,v:secret@i?stream=S@1\nb=kafka://h:1?topic-prefix=a@b\nfile:a@b"
	want := "stdout\na=nats://xxxxx@h:1,xxxxx@i?stream=S@1\nb=kafka://h:1?topic-prefix=a@b\nfile:a@b"
	if got := relay.Masked(given); got != want {
		t.Errorf("shown as %q", got)
	}
}
