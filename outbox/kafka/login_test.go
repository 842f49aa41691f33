package kafka_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/kafka"
)

func TestAClientLogsIn(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, topic), kfake.EnableSASL(),
		kfake.Superuser(kafka.ScramSHA512, "shop", "secret"), kfake.Superuser(kafka.ScramSHA256, "shop", "secret"), kfake.Superuser(kafka.Plain, "shop", "secret"))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	for _, c := range []struct {
		login kafka.Login
		want  bool
	}{
		{kafka.Login{User: "shop", Password: "secret"}, true},
		{kafka.Login{Mechanism: kafka.ScramSHA256, User: "shop", Password: "secret"}, true},
		{kafka.Login{Mechanism: kafka.Plain, User: "shop", Password: "secret"}, true},
		{kafka.Login{Mechanism: kafka.Plain, User: "shop", Password: "wrong"}, false},
	} {
		sink, err := kafka.New(kafka.Config{Brokers: cluster.ListenAddrs(), Login: c.login, Timeout: 3 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		got := sink.Publish(t.Context(), []outbox.Message{order("a", 1)})[0]
		if (got == nil) != c.want || outbox.Refused(got) {
			t.Errorf("%s as %s: %v", c.login.Mechanism, c.login, got)
		}
		if err := sink.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestALoginThatCannotWorkIsRefusedAndShowsNoPassword(t *testing.T) {
	for _, l := range []kafka.Login{{Password: "secret"}, {Mechanism: "MAGIC", User: "shop", Password: "secret"}} {
		_, err := kafka.New(kafka.Config{Brokers: []string{"127.0.0.1:1"}, Login: l})
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", l, err)
		}
		if text := fmt.Sprintf("%v %+v %#v", l, kafka.Config{Login: l}, l); strings.Contains(text, "secret") {
			t.Errorf("printed as %s", text)
		}
	}
}
