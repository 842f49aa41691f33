package workflow_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/ringiflow/ringi/workflow"
	"github.com/ringiflow/ringi/workflow/grammar"
)

// What editors show as a default is what the parser fills in.
func TestTheDefaultsOfTheGrammarAreThoseOfTheParser(t *testing.T) {
	g := grammar.New()
	for _, c := range []struct {
		of   *grammar.Mapping
		key  string
		want string
	}{
		{g.Timeouts, "attempt", span(workflow.DefaultAttemptTimeout)},
		{g.Timeouts, "total", span(workflow.DefaultTotalTimeout)},
		{g.Timeouts, "queue", span(workflow.DefaultQueueTimeout)},
		{g.Timeouts, "heartbeat", span(workflow.DefaultHeartbeat)},
		{g.Retry, "attempts", strconv.Itoa(workflow.DefaultAttempts)},
		{g.Backoff, "initial", span(workflow.DefaultBackoffInitial)},
		{g.Backoff, "factor", strconv.Itoa(workflow.DefaultBackoffFactor)},
		{g.Backoff, "max", span(workflow.DefaultBackoffMax)},
		{g.Step, "queue", workflow.DefaultQueue},
		{g.Step, "on_unknown", string(workflow.UnknownIncident)},
		{g.Defaults, "queue", workflow.DefaultQueue},
		{g.Approval, "risk", workflow.DefaultRisk},
		{g.Lane, "quorum", strconv.Itoa(workflow.DefaultQuorum)},
		{g.Compensate, "effect", string(workflow.Idempotent)},
	} {
		if k, ok := c.of.Key(c.key); !ok || k.Default != c.want {
			t.Errorf("%s of %s is %q by default, the parser takes %q", c.key, c.of.What, k.Default, c.want)
		}
	}
}

// span is a duration as the grammar writes it; nothing for none.
func span(d time.Duration) string {
	switch {
	case d == 0:
		return ""
	case d%time.Minute == 0:
		return strconv.Itoa(int(d/time.Minute)) + "m"
	}
	return strconv.Itoa(int(d/time.Second)) + "s"
}

// Everything that people write is explained to them by their editor.
func TestEveryKeyOfTheGrammarIsExplained(t *testing.T) {
	g := grammar.New()
	for _, m := range []*grammar.Mapping{
		g.Definition, g.Start, g.Defaults, g.Deadline, g.OnFailure, g.Step, g.Probe, g.Compensate, g.HTTP, g.ProbeHTTP,
		g.Timeouts, g.Retry, g.Backoff, g.Approval, g.Show, g.Lane, g.Expires, g.Wait, g.WaitTimeout, g.Case, g.Parallel,
		g.Catch, g.Emit, g.Aggregate, g.Fail, g.Finish,
	} {
		if m.What == "" || m.Doc == "" {
			t.Errorf("a mapping says nothing about itself: %+v", m)
		}
		for _, k := range m.Keys {
			if k.Doc == "" || k.Needed && k.Example == "" {
				t.Errorf("%s of %s has no words, or no example although it must be there", k.Name, m.What)
			}
		}
	}
}
