package relay_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/relay"
)

// scrape returns the metrics as lines of name, labels and value.
func scrape(t *testing.T, m *relay.Metrics) string {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(m)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, f := range families {
		for _, one := range f.GetMetric() {
			b.WriteString(f.GetName())
			for _, l := range one.GetLabel() {
				b.WriteString(" " + l.GetName() + "=" + l.GetValue())
			}
			value, err := json.Marshal(one.GetCounter().GetValue() + one.GetGauge().GetValue())
			if err != nil {
				t.Fatal(err)
			}
			b.WriteString(" " + string(value) + "\n")
		}
	}
	return b.String()
}

func TestRefusalsAreInTheLogWithTheirReason(t *testing.T) { // O-22
	var text strings.Builder
	log := slog.New(slog.NewTextHandler(&text, nil))
	refused := outbox.Refuse(errors.New("schema mismatch"))
	(&relay.Journal{Log: log, Now: time.Now}).Observe(outbox.Report{Destination: "audit", Claimed: 3, Delivered: 3})
	if text.Len() > 0 {
		t.Errorf("nothing is wrong: %s", &text)
	}
	for _, r := range []outbox.Report{{Failed: 2, Refused: refused}, {Dead: 1, Refused: refused}, {Parked: 1, Refused: refused}} {
		text.Reset()
		(&relay.Journal{Log: log, Now: time.Now}).Observe(r)
		if got := text.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "schema mismatch") {
			t.Errorf("of %+v the log says %q", r, got)
		}
	}
}

func TestTheMetricsShowDepthAgeAndWork(t *testing.T) { // O-22
	now := time.UnixMilli(1_700_000_000_000)
	depths, fail := []outbox.Depth{{Destination: "audit", Tenant: 7, Pending: 3, Claimed: 2, Failing: 1, Parked: 4, Dead: 5, Oldest: now.Add(-90 * time.Second)}}, error(nil)
	m := relay.NewMetrics(func(context.Context) ([]outbox.Depth, error) { return depths, fail }, func() time.Time { return now })
	m.Observe(outbox.Report{Destination: "audit", Claimed: 5, Delivered: 4, Failed: 1})
	got := scrape(t, m)
	for _, want := range []string{
		"ringi_outbox_messages destination=audit state=pending tenant=7 5\n", "state=failing tenant=7 1\n", "state=parked tenant=7 4\n", "state=dead tenant=7 5\n",
		"ringi_outbox_oldest_seconds destination=audit tenant=7 90\n", "ringi_outbox_done_total destination=audit what=delivered 4\n", "what=claimed 5\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	depths = nil
	if got := scrape(t, m); !strings.Contains(got, "ringi_outbox_messages destination= state=pending tenant=0 0\n") {
		t.Errorf("an empty outbox shows\n%s", got)
	}
	fail = errors.New("away")
	if got := scrape(t, m); strings.Contains(got, "ringi_outbox_messages") || !strings.Contains(got, "what=delivered 4") {
		t.Errorf("without a database it shows\n%s", got)
	}
}

func TestTheLogTellsWhatAnOperatorMustSee(t *testing.T) {
	for want, r := range map[string]outbox.Report{
		"":              {Claimed: 3, Delivered: 3},
		"down":          {Destination: "audit", Down: errors.New("refused")},
		"cannot be":     {Err: errors.New("away")},
		"--state dead":  {Dead: 1},
		"state parked":  {Parked: 1},
		"arrive twice":  {Lost: 2},
		"destination=a": {Destination: "a", Dead: 1},
	} {
		var b bytes.Buffer
		(&relay.Journal{Log: slog.New(slog.NewTextHandler(&b, nil)), Now: time.Now}).Observe(r)
		if (b.Len() == 0) != (want == "") || !strings.Contains(b.String(), want) {
			t.Errorf("%+v is logged as %q, want %q", r, b.String(), want)
		}
	}
}

func TestMessagesAreShownWithWhatTheyCarryOnlyWhenAsked(t *testing.T) {
	at := time.UnixMilli(1_700_000_000_000).UTC()
	text := order(1, "a")
	text.Payload = []byte("no JSON")
	list := []outbox.Entry{{Message: order(2, "a"), State: outbox.Dead, NextAt: at, LastError: "no"}, {Message: text, State: outbox.Pending, NextAt: at}}
	for _, v := range relay.ViewMessages(list, false) {
		if v.Payload != nil || v.PayloadBase64 != nil || v.Bytes == 0 {
			t.Errorf("got %+v", v)
		}
	}
	got := relay.ViewMessages(list, true)
	if string(got[0].Payload) != `{}` || string(got[1].PayloadBase64) != "no JSON" || got[1].Payload != nil {
		t.Errorf("got %+v", got)
	}
	if !got[0].NextAt.IsZero() || !got[1].NextAt.Equal(at) || got[0].State != "dead" {
		t.Errorf("got %+v", got)
	}
}

func TestStatesAreReadAsTheyArePrinted(t *testing.T) {
	all := []outbox.State{outbox.Parked, outbox.Pending, outbox.Claimed, outbox.Delivered, outbox.Dead}
	var texts []string
	for _, s := range all {
		texts = append(texts, s.String())
	}
	if got, err := relay.ParseStates(texts); err != nil || !slices.Equal(got, all) {
		t.Errorf("%v is read as %v, %v", texts, got, err)
	}
	if _, err := relay.ParseStates([]string{"gone"}); err == nil {
		t.Error("gone is a state")
	}
}
