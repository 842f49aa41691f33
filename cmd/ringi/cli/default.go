package cli

import (
	"fmt"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/api"
	"github.com/ringiflow/ringi/engine"
	"github.com/ringiflow/ringi/worker"
	"github.com/ringiflow/ringi/workflow"
	"github.com/ringiflow/ringi/workflow/expr"
)

// A FixedDefault is a default or limit that is built in. Those of a definition
// are what a step has that does not say otherwise.
type FixedDefault struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Reason string `json:"reason"`
}

// fixedDefaults lists them for --print-config.
func fixedDefaults() []FixedDefault {
	return append(stepDefaults(), engineDefaults()...)
}

func stepDefaults() []FixedDefault {
	const (
		attempts = "retry.attempts"
		backoff  = "retry.backoff"
	)
	return []FixedDefault{
		{attempts, count(workflow.DefaultAttempts), "outlives a restart of the service, and fails while somebody still remembers the start"},
		{attempts + " (at_most_once)", count(workflow.AtMostOnceAttempts), "the meaning of the contract"},
		{backoff, pause(workflow.DefaultBackoffInitial, workflow.DefaultBackoffFactor, workflow.DefaultBackoffMax), "a hiccup is over by then, and nobody waits an hour for a service that is back; spread by a fifth"},
		{"probe.attempts", count(workflow.DefaultProbeAttempts), "unknown answers before on_unknown decides"},
		{"compensate.retry.attempts", count(workflow.DefaultUndoAttempts), "then a person is the better help"},
		{"compensate.retry.backoff", pause(workflow.DefaultUndoInitial, workflow.DefaultUndoFactor, workflow.DefaultUndoMax), "quick after a hiccup, patient with an outage"},
		{"compensate.within", span(workflow.DefaultUndoTotal), "a person should hear of it while it can be mended"},
		{"timeouts.attempt", span(workflow.DefaultAttemptTimeout), "most calls answer in seconds"},
		{"timeouts.total", span(workflow.DefaultTotalTimeout), "a step with all its attempts and pauses"},
		{"timeouts.queue", "none", "a missing worker is shown, and seldom the fault of the run"},
		{"timeouts.heartbeat", span(workflow.DefaultHeartbeat), "the work lease: how soon a dead worker is noticed"},
		{"approval.expires", span(workflow.DefaultApprovalExpiry) + ", then reject", "a weekend and a day"},
		{"expression.length", size(expr.MaxLength), "a person can still read it"},
		{"expression.depth", count(expr.MaxDepth), "of nesting"},
		{"expression.cost", count(expr.MaxCost), "a few milliseconds: what takes longer is an activity"},
		{"steps", count(workflow.DefaultSteps), "people can still read it"},
		{"depth", count(workflow.DefaultDepth), "blocks in each other"},
		{"width", count(workflow.DefaultWidth), "branches side by side"},
	}
}

func engineDefaults() []FixedDefault {
	return []FixedDefault{
		{"lease.handover", span(engine.DefaultHandover), "a poll answer that got lost does not hold a task for long"},
		{"poll.longest", span(engine.LongestPoll), "below the time-outs of proxies"},
		{"poll.fallback", span(engine.DefaultPollFallback), "the delay that a lost wake-up costs"},
		{"timer.scan", span(engine.DefaultTimerScan), "how late a timer may be"},
		{"lease.scan", span(engine.DefaultLeaseScan), "how late a lost lease may be noticed"},
		{"batch.writes", count(engine.DefaultBatchWrites), "one fsync carries them all"},
		{"batch.bytes", size(engine.DefaultBatchBytes), "a commit stays short"},
		{"snapshot.every", count(engine.DefaultSnapshotEvery) + " events", "loading is bounded, and a step costs no snapshot"},
		{"event.keep", span(engine.DefaultKeepEvents), "a wait may open later than its event"},
		{"drain", span(DrainTime), "what orchestrators grant before they kill"},
		{"worker.slots", count(worker.DefaultSlots), "hides the waiting of calls, and does not drown a service"},
		{"payload", size(ringi.MaxPayload), "what a database row and an HTTP body carry without strain"},
		{"payload.run", size(ringi.MaxRunPayload), "all data that one run may take in"},
		{"history", count(ringi.MaxHistory) + " events", "bounded load time, whatever the definition does"},
		{"definition", size(workflow.MaxSource), "read by people, kept by every node"},
		{"body", size(api.MaxBody), "room for a definition"},
	}
}

func count(n int) string { return fmt.Sprint(n) }

func pause(initial time.Duration, factor float64, most time.Duration) string {
	return fmt.Sprintf("%s × %v up to %s", span(initial), factor, span(most))
}

// span is a duration in its largest whole unit.
func span(d time.Duration) string {
	for _, u := range []struct {
		unit time.Duration
		name string
	}{{time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}} {
		if d%u.unit == 0 && d > 0 {
			return fmt.Sprintf("%d%s", d/u.unit, u.name)
		}
	}
	return d.String()
}

// size is a number of bytes in its largest whole unit.
func size(n int) string {
	switch {
	case n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d B", n)
}
