package chaos

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestASeedDrawsTheSameFaultsAndEveryKindOfThem(t *testing.T) {
	for seed := range uint64(50) {
		faults := drawFaults(seed, 25*time.Second)
		if !slices.Equal(faults, drawFaults(seed, 25*time.Second)) {
			t.Fatalf("seed %d draws two ways", seed)
		}
		seen := map[kind]bool{}
		hit := map[string]map[int]bool{}
		var before time.Duration
		for _, f := range faults {
			seen[f.kind] = true
			if f.at <= before || f.at >= 25*time.Second || f.lasts <= 0 {
				t.Errorf("seed %d: %+v comes after %s", seed, f, before)
			}
			before = f.at
			if hit[f.role] == nil {
				hit[f.role] = map[int]bool{}
			}
			hit[f.role][f.nth] = true
		}
		if len(seen) != len(slices.Compact(slices.Sorted(slices.Values(deck)))) {
			t.Errorf("seed %d: only %v", seed, seen)
		}
	}
	if slices.Equal(drawFaults(1, time.Minute), drawFaults(2, time.Minute)) {
		t.Error("two seeds draw the same")
	}
}

func TestSourcesAreWhereTheSinkPuts(t *testing.T) {
	for sink, want := range map[string]string{
		"nats://h?stream=S": "nats://h?ack-wait=2s&group=F3&stream=S&subject=outbox.event.F3",
		"kafka://h:9092?topic-prefix=shop.&tls=true&user=u":                "kafka://h:9092?create=true&group=F3&session=6s&tls=true&topic=shop.F3&user=u",
		"redis://h:6379/2?password-file=f":                                 "redis://h:6379/2?ack-wait=2s&group=F3&password-file=f&stream=outbox.event.F3",
		"amqp://h/v?user=u&password-file=f&key-prefix=a.&max-bytes=100000": "amqp://h/v?declare=true&password-file=f&queue=a.F3&user=u",
	} {
		got, err := sources(sink, "F")
		if err != nil || len(got) != lanes || got[3] != want {
			t.Errorf("%s: %q, %v, want %s", sink, got, err, want)
		}
	}
	for sink, want := range map[string]string{"nats://h": "?stream=S", "file:x": "kafka, nats", "webhook+https://h": "kafka, nats"} {
		if _, err := sources(sink, "F"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", sink, err)
		}
	}
}
