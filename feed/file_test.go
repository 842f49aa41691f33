package feed_test

import (
	"context"
	"strings"
	"testing"

	"github.com/ringiflow/ringi/feed"
	"github.com/ringiflow/ringi/inbox"
)

func TestAFileThatCannotWorkIsRefusedWithItsReason(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "feeds.yaml: there is no feed",
		"feeds: []":                    "feeds.yaml:1:8: there is no feed",
		"feeds:":                       "no feed",
		"feeds: {":                     "line 1",
		"feeds: a":                     "feeds.yaml:1:8: feeds: is not a list",
		"- name: a":                    "feeds.yaml:1:1: the file is not",
		"feed: []":                     `feeds.yaml:1:1: the file has no key "feed"`,
		"feeds: [ a ]":                 "feeds.yaml:1:10: feed 1 is not a feed",
		"feeds:\n- name: a\n  form: x": `feeds.yaml:3:3: a feed has no key "form"; it knows name, from`,
		"feeds:\n- name: a\n  name: b": "feeds.yaml:3:3: the key name is there twice",
		"feeds:\n- name: A\n  from: x": `feeds.yaml:2:9: the name "A"`,
		"feeds:\n- name: a":            "feeds.yaml:2:3: feed a: say where",
		"feeds:\n- {name: a, from: x}\n---\nfeeds:\n- {name: b, from: x}": "feeds.yaml:3:1: a second document",
		"feeds:\n- {name: a, from: x, attempts: many}":                    "feeds.yaml:2:32: attempts: this is not a whole number",
		"feeds:\n- {name: a, from: [x]}":                                  "feeds.yaml:2:19: from: this is not a text",
		"feeds:\n- {name: a, from: x, start: s, event: e}":                "feeds.yaml:2:29: feed a: a message becomes an event or starts a run, not both",
		"feeds:\n- {name: a, from: x, version: 1}":                        "are for start",
		"feeds:\n- {name: a, from: x, start: s, data: 1}":                 "a start has input",
		"feeds:\n- {name: a, from: x, start: s, version: -1}":             "version -1",
		"feeds:\n- {name: a, from: x}\n- {name: a, from: y}":              "feeds.yaml:3:10: two feeds are called a",
		"feeds:\n- {name: a, from: x, when: 'message.typ == 1'}":          "feeds.yaml:2:28: feed a: when",
		"feeds:\n- {name: a, from: x, key: '${ input.x }'}":               "there is message",
		"feeds:\n- {name: a, from: x, key: '${ message.data. }'}":         "feeds.yaml:2:27: feed a: key",
		"feeds:\n- {name: a, from: x, data: {b: '${ steps.a }'}}":         "feeds.yaml:2:32: feed a: data.b",
		"feeds:\n- {name: a, from: x, data: 2026-01-01}":                  "write it as a text",
		"feeds:\n- {name: a, from: x, event: '${ message.id + 1 }'}":      "event",
	} {
		if _, err := feed.Parse("feeds.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "feeds.yaml") {
			t.Errorf("%q: %v, without %q", text, err, want)
		}
	}
}

func TestASourceThatCannotWorkIsRefusedWithItsReason(t *testing.T) {
	opener := feed.Opener{Group: "g", Receiver: inbox.Receiver{Receive: func(context.Context, inbox.Delivery) (inbox.Outcome, error) { return inbox.Handled, nil }}}
	for text, want := range map[string]string{
		"file:x":                                   "is not one of",
		"http://h?topic=t":                         "is not one of",
		"kafka://?topic=t":                         "is not one of",
		"kafka://h:9092":                           "?topic=T",
		"kafka://h:9092?topic=t&tls=maybe":         "true or false",
		"kafka://h:9092?topic=t&sasl=MAGIC&user=u": "MAGIC",
		"kafka://h:9092?topic=t&x=y":               `no parameter "x"`,
		"nats://h":                                 "?stream=S",
		"nats://h?stream=S&ack-wait=soon":          "span of time",
		"redis://h":                                "?stream=S",
		"redis://u:p4ss@h?stream=S":                "password-file=F",
		"amqp://h":                                 "?queue=Q",
		"amqp://h?queue=q&declare=true&a=b":        `no parameter "a"`,
		"amqp://h:port?queue=q":                    "port",
	} {
		source, err := opener.Open(text)
		if err == nil {
			_ = source.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "p4ss") {
			t.Errorf("%s: %v, without %q", text, err, want)
		}
	}
	for _, text := range []string{ // nobody is there, which is no failure
		"kafka://127.0.0.1:1,127.0.0.1:2?topic=a&topic=b&group=other&session=10s&tls=true",
		"nats://127.0.0.1:1?stream=S&subject=a.*&ack-wait=5s", "redis://127.0.0.1:1/3?stream=s", "rediss://127.0.0.1:1?stream=s&cluster=true",
		"amqp://127.0.0.1:1/shop?queue=q&declare=true",
	} {
		source, err := opener.Open(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if source.Name == "" || strings.Contains(source.Name, "?") {
			t.Errorf("%s is called %s", text, source.Name)
		}
		if err := source.Close(); err != nil {
			t.Error(err)
		}
	}
}
