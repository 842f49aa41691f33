package scenario

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ringiflow/ringi"
)

// sentence tells an event to somebody who reads why a scenario failed; "" for
// what only the engine needs to know.
func sentence(f ringi.Fact) string {
	switch f := f.(type) {
	case ringi.RunStarted:
		return fmt.Sprintf("%s is started by %s with %s", f.Definition, f.Actor, shown(f.Input))
	case ringi.RunEnded:
		return "the run is " + string(f.Status) + because(f.Cause)
	case ringi.StepEnded:
		return fmt.Sprintf("%s: %s%s%s", f.Step, f.Outcome, output(f.Output), because(f.Error))
	case ringi.VarsSet:
		return fmt.Sprintf("%s: sets %s", f.Step, listed(slices.Sorted(maps.Keys(f.Vars))))
	case ringi.MessageEmitted:
		return fmt.Sprintf("%s: emits %s of %s %s", f.Step, f.Type, f.AggregateType, f.AggregateID)
	case ringi.WaitOpened:
		return waits(f)
	case ringi.EventReceived:
		return fmt.Sprintf("%s: receives event %s%s", f.Step, f.ID, output(f.Data))
	case ringi.TimerFired:
		return fmt.Sprintf("timer %s fires", f.Timer)
	case ringi.FailureCaught:
		return fmt.Sprintf("%s: failure %s is caught", f.Step, f.Error.Code)
	case ringi.UnwindStarted:
		return "what was done is undone" + because(&f.Cause)
	}
	if s := ofCall(f); s != "" {
		return s
	}
	return ofPeople(f)
}

func ofCall(f ringi.Fact) string {
	switch f := f.(type) {
	case ringi.ActivityScheduled:
		return fmt.Sprintf("%s: calls %s with %s", callName(f.Step, f.Direction), f.Activity, shown(f.Input))
	case ringi.ActivityRetried:
		return fmt.Sprintf("%s: attempt %d follows", callName(f.Step, f.Direction), f.Attempt)
	case ringi.ActivitySucceeded:
		return callName(f.Step, f.Direction) + ": succeeds" + output(f.Output) + colon(f.Problem)
	case ringi.ActivityFailed:
		return callName(f.Step, f.Direction) + ": fails with " + f.Failure.Code + colon(f.Failure.Message)
	case ringi.ActivityTimedOut:
		return fmt.Sprintf("%s: nobody answers (%s)", callName(f.Step, f.Direction), f.Why)
	case ringi.ActivityWithdrawn:
		return f.Step + ": the call is taken back"
	case ringi.ProbeAnswered:
		return fmt.Sprintf("%s: the service says whether it happened: %s", callName(f.Step, f.Direction), f.Applied)
	case ringi.OutcomeUnknown:
		return f.Step + ": nobody knows whether it happened"
	case ringi.LateResult:
		return fmt.Sprintf("%s: a late answer is kept as evidence (%s)", callName(f.Step, f.Direction), f.Kind)
	case ringi.LateEffectFound:
		return f.Step + ": an effect is found after the step was decided otherwise"
	}
	return ""
}

func ofPeople(f ringi.Fact) string {
	switch f := f.(type) {
	case ringi.ApprovalOpened:
		return fmt.Sprintf("%s: asks %s", f.Step, asked(f.Approval))
	case ringi.DecisionRecorded:
		verdict := "no"
		if f.Approve {
			verdict = "yes"
		}
		return fmt.Sprintf("%s: %s votes %s", f.Step, f.Person, verdict) + colon(f.Comment)
	case ringi.DecisionWithdrawn:
		return fmt.Sprintf("%s: %s takes the vote back", f.Step, f.Person) + colon(f.Reason)
	case ringi.CancelRequested:
		return "cancelled by " + f.By + colon(f.Reason)
	case ringi.IncidentOpened:
		return fmt.Sprintf("incident %s%s: %s", f.Incident.Kind, atStep(f.Incident.Step), f.Incident.Message)
	case ringi.IncidentResolved:
		return fmt.Sprintf("the incident is resolved by %s with %s", f.By, f.How) + colon(f.Reason)
	case ringi.RunPaused:
		return "paused by " + f.By + colon(f.Reason)
	case ringi.RunResumed:
		return "resumed by " + f.By + colon(f.Reason)
	case ringi.UndoSettled:
		if f.Undone {
			return fmt.Sprintf("%s: its undo is settled by %s", f.Step, f.By) + colon(f.Reason)
		}
		return fmt.Sprintf("%s: its effect is left standing by %s", f.Step, f.By) + colon(f.Reason)
	}
	return ""
}

func waits(f ringi.WaitOpened) string {
	if f.Event == "" {
		return f.Step + ": waits for time to pass"
	}
	return fmt.Sprintf("%s: waits for event %s %q", f.Step, f.Event, f.Key)
}

func asked(a ringi.Approval) string {
	var parts []string
	for _, l := range a.Lanes {
		parts = append(parts, fmt.Sprintf("%d of %s", l.Quorum, strings.Join(l.From, ", ")))
	}
	return strings.Join(parts, " and ")
}

func output(doc json.RawMessage) string {
	if len(doc) == 0 || string(doc) == "null" {
		return ""
	}
	return " with " + shown(doc)
}

func because(c *ringi.Cause) string {
	if c == nil {
		return ""
	}
	return fmt.Sprintf(" because of %s%s", c.Code, atStep(c.Step)) + colon(c.Message)
}

func colon(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}
