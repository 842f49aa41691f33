package relay_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/webhook"
	"github.com/ringiflow/ringi/relay"
)

// folder is a directory with files that destinations name.
func folder(t *testing.T, files map[string]string) func(string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return func(name string) string { return filepath.Join(dir, name) }
}

func order(n int, aggregate string) outbox.Message {
	return outbox.Message{
		ID: outbox.NewID(time.UnixMilli(int64(1_700_000_000_000 + n))), AggregateType: "Order", AggregateID: aggregate,
		Type: "order.placed", Payload: []byte(`{}`), CreatedAt: time.UnixMilli(1_700_000_000_000),
	}
}

func TestEveryKindOfDestinationIsOpenedAndSaysWhatItPromises(t *testing.T) { // O-13
	path := folder(t, map[string]string{"secret": webhook.NewSecret() + "\n", "password": "p4ss\n", "key": "k"})
	var stdout bytes.Buffer
	opener := relay.Opener{Stdout: &stdout, Path: path, Ringi: func(server, key string) (*outbox.Runs, error) {
		if server != "http://127.0.0.1:7070" || key != path("key") {
			t.Errorf("ringi at %s with key %s", server, key)
		}
		return &outbox.Runs{}, nil
	}}
	places, err := relay.ParsePlaces(`stdout
file=file:events.ndjson
kafka=kafka://127.0.0.1:1,127.0.0.1:2?topic-prefix=shop.&headers=debezium&tls=true&user=u&password-file=password&sasl=PLAIN&max-bytes=5000&source=/shop
webhook=webhook+https://hooks.example.org/in?secret-file=secret&tenant=7
ringi=ringi+http://127.0.0.1:7070?key-file=key`)
	if err != nil {
		t.Fatal(err)
	}
	sinks, err := opener.Open(places)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range sinks {
		text, err := s.Describe(t.Context())
		if err != nil || !strings.Contains(text, "duplicate window") || strings.Contains(text, "\n") {
			t.Errorf("%s: %q, %v", s.Name, text, err)
		}
		if s.Destination != places[i].Destination || strings.Contains(s.Name, "?") {
			t.Errorf("%+v became %s %s", places[i], s.Destination, s.Name)
		}
	}
	if n := sinks[2].MaxBytes(); n != 5000 || sinks[0].MaxBytes() != 0 {
		t.Errorf("the largest record is %d", n)
	}
	if err := relay.CloseAll(sinks); err != nil {
		t.Error(err)
	}
}

func TestADestinationThatIsDownIsOpenedAllTheSame(t *testing.T) { // O7
	path := folder(t, map[string]string{"password": "p4ss\n"})
	for _, url := range []string{
		"nats://127.0.0.1:1?stream=S",
		"redis://127.0.0.1:1/3?stream-prefix=shop.&user=u&password-file=password&keep=1000&replicas=1&max-bytes=5000&source=/shop",
		"rediss://127.0.0.1:1,127.0.0.1:2?cluster=true",
		"amqp://127.0.0.1:1/shop?exchange=shop&key-prefix=shop.&user=u&password-file=password&max-bytes=5000&source=/shop",
	} {
		sinks, err := relay.Opener{Path: path}.Open([]relay.Place{{URL: url}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if text, err := sinks[0].Describe(ctx); err == nil || strings.Contains(err.Error(), "p4ss") {
			t.Errorf("nobody is there, and it says %q, %v", text, err)
		}
		if err := relay.CloseAll(sinks); err != nil {
			t.Error(err)
		}
	}
}

func TestADestinationThatCannotWorkIsRefused(t *testing.T) {
	path := folder(t, map[string]string{"secret": webhook.NewSecret(), "broken": "whsec_no"})
	for text, want := range map[string]string{
		"stdout":                                        "used for something else",
		"file:missing/events":                           "no such file",
		"kafka://h:9092?topic=x":                        `no parameter "topic"`,
		"kafka://h:9092?tls=perhaps":                    "write true or false",
		"kafka://h:9092?max-bytes=-1":                   "a number above 0",
		"kafka://h:9092?sasl=A&sasl=B&user=u":           "given 2 times",
		"kafka://h:9092?user=u&password-file=missing":   "no such file",
		"kafka://h:9092?sasl=MAGIC&user=u":              "MAGIC",
		"kafka://h:9092?%zz":                            "cannot be read",
		"nats://h?subject-prefix=a.":                    "stream=S",
		"redis://h/notanumber":                          "database",
		"redis://u:p4ss@h":                              "password-file=F",
		"amqp://h:port":                                 "port",
		"redis://h?keep=many":                           "a number above 0",
		"nats://h?password=x":                           `no parameter "password"`,
		"webhook+https://h/p":                           "?secret-file=F",
		"webhook+https://h/p?secret-file=broken":        "secret",
		"webhook+https://10.0.0.1/p?secret-file=secret": "private",
		"webhook+https://h/p?secret-file=secret&allow-network=everybody": "10.0.0.0/8",
		"ringi+https://h?key=x": `no parameter "key"`,
		"ringi+https://h":       "no destination here",
	} {
		sinks, err := relay.Opener{Path: path}.Open([]relay.Place{{URL: "file:before"}, {URL: text}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, without %q", text, err, want)
			_ = relay.CloseAll(sinks)
		}
	}
}

func TestAWebhookKeepsTheParametersOfItsEndpoint(t *testing.T) {
	secret := webhook.NewSecret()
	path := folder(t, map[string]string{"secret": secret})
	var mu sync.Mutex
	var asked string
	var verified error
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		body, err := io.ReadAll(r.Body)
		key, secretErr := webhook.ParseSecret(secret)
		if err != nil || secretErr != nil {
			verified = err
			return
		}
		asked = r.URL.String()
		_, verified = webhook.Verify([]webhook.Secret{key}, r.Header, body, time.Now())
	}))
	defer server.Close()
	sinks, err := relay.Opener{Path: path}.Open([]relay.Place{{URL: "webhook+" + server.URL + "/in?tenant=7&secret-file=secret&allow-network=127.0.0.0/8"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := sinks[0].Publish(t.Context(), []outbox.Message{order(1, "a")}); got[0] != nil {
		t.Error(got[0])
	}
	if err := relay.CloseAll(sinks); err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if asked != "/in?tenant=7" || verified != nil {
		t.Errorf("posted to %s: %v", asked, verified)
	}
}
