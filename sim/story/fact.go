package story

import (
	"fmt"
	"strings"

	"github.com/ringiflow/ringi"
)

// Fact says in plain words what an event of a log means. Every kind of event
// has words of its own.
func Fact(f ringi.Fact) string {
	switch f := f.(type) {
	case ringi.ActivityScheduled:
		return fmt.Sprintf("%s is put into queue %s for %s (%s)", step(f.Step, f.Direction), f.Queue, f.Activity, f.Effect)
	case ringi.ActivityRetried:
		return fmt.Sprintf("attempt %d of %s is put into its queue%s", f.Attempt, step(f.Step, f.Direction), when(f.Fresh, ", by a person's order"))
	case ringi.ActivityStarted:
		return fmt.Sprintf("%s may begin %s", f.Worker, attempt(f.CallRef))
	case ringi.ActivitySucceeded:
		return fmt.Sprintf("%s succeeded, says %s%s", attempt(f.CallRef), f.Worker, when(f.Problem != "", ", but its output cannot be used: "+f.Problem))
	case ringi.ActivityFailed:
		return fmt.Sprintf("%s failed, says %s: %s%s", attempt(f.CallRef), f.Worker, f.Failure.Code, applied(f.Failure.Applied))
	case ringi.ActivityTimedOut:
		return fmt.Sprintf("%s is given up (%s)%s", attempt(f.CallRef), f.Why, applied(f.Applied))
	case ringi.ActivityAwaited:
		return f.Step + " is under way and may still finish"
	case ringi.ActivityWithdrawn:
		return f.Step + " is taken back before anybody worked on it" + applied(f.Applied)
	case ringi.ProbeAnswered:
		return fmt.Sprintf("the service was asked about %s%s", f.Step, applied(f.Applied))
	case ringi.OutcomeUnknown:
		return "nobody knows whether " + f.Step + " had its effect" + when(f.Assume != "", "; its contract takes it for not done")
	case ringi.UndoRegistered:
		return fmt.Sprintf("if the run turns around, %s is undone by %s%s", f.Step, f.Activity, when(f.Late, " (its effect was found late)"))
	case ringi.UndoSettled:
		return fmt.Sprintf("%s says that %s is %s", f.By, f.Step, either(f.Undone, "undone", "left standing"))
	case ringi.UndoReplaced:
		return fmt.Sprintf("%s orders %s to undo %s", f.By, f.Activity, f.Step)
	case ringi.LateResult:
		return fmt.Sprintf("a result of %s came too late and is kept as evidence: %s", attempt(f.CallRef), f.Kind)
	case ringi.EvidenceCounted:
		return fmt.Sprintf("%d late results in all; no more are kept", f.Count)
	case ringi.LateEffectFound:
		return f.Step + " was decided otherwise and had its effect after all"
	}
	return ofFlow(f)
}

// ofFlow says what moves a run between its calls.
func ofFlow(f ringi.Fact) string {
	switch f := f.(type) {
	case ringi.RunStarted:
		return fmt.Sprintf("the run of %s starts, asked for by %s%s", f.Definition, f.Requester, when(f.Key != "", " under the key "+f.Key))
	case ringi.StepOpened:
		return f.Step + " opens"
	case ringi.StepEnded:
		return fmt.Sprintf("%s ends: %s%s%s", f.Step, f.Outcome, cause(f.Error), when(f.By != "", " (by "+f.By+")"))
	case ringi.StepReopened:
		return f.Step + " is taken up again by a person's order"
	case ringi.ScopeOpened:
		return "block " + f.Scope + " opens"
	case ringi.ScopeClosed:
		return "block " + f.Scope + " closes"
	case ringi.ScopeHalted:
		return "everything inside " + f.Step + " is stopped" + cause(&f.Error)
	case ringi.FailureCaught:
		return fmt.Sprintf("%s catches the failure with its block %s%s", f.Step, f.Branch, cause(&f.Error))
	case ringi.VarsSet:
		return f.Step + " sets variables"
	case ringi.MessageEmitted:
		return fmt.Sprintf("%s puts message %s into the outbox", f.Step, f.ID)
	case ringi.TimerSet:
		return fmt.Sprintf("%s is set to %s (generation %d)", timer(f.Timer), f.FireAt.Format("2006-01-02 15:04:05.000"), f.Generation)
	case ringi.TimerFired:
		return fmt.Sprintf("%s fires (generation %d)", timer(f.Timer), f.Generation)
	case ringi.WaitOpened:
		return f.Step + " waits " + either(f.Event != "", "for event "+f.Event+" of "+f.Key, "for its time")
	case ringi.EventReceived:
		return fmt.Sprintf("%s takes event %s", f.Step, f.ID)
	}
	return ofPeople(f)
}

// ofPeople says what people do, and how a run ends.
func ofPeople(f ringi.Fact) string {
	switch f := f.(type) {
	case ringi.ApprovalOpened:
		return f.Step + " asks people for their approval"
	case ringi.DecisionRecorded:
		return fmt.Sprintf("%s votes %s on %s", f.Person, either(f.Approve, "yes", "no"), f.Step)
	case ringi.DecisionWithdrawn:
		return fmt.Sprintf("%s takes their vote on %s back", f.Person, f.Step)
	case ringi.CancelRequested:
		return f.By + " cancels the run"
	case ringi.UnwindStarted:
		return "the run turns around and undoes what it did" + cause(&f.Cause)
	case ringi.IncidentOpened:
		return fmt.Sprintf("a person is needed for %s: %s", either(f.Incident.Step != "", f.Incident.Step, "the run"), f.Incident.Message)
	case ringi.IncidentResolved:
		return fmt.Sprintf("%s answers the incident: %s", f.By, f.How)
	case ringi.RunPaused:
		return f.By + " pauses the run"
	case ringi.RunResumed:
		return f.By + " lets the run go on"
	case ringi.RunEnded:
		left := when(len(f.EffectsLeft) > 0, "; left standing: "+strings.Join(f.EffectsLeft, ", "))
		return fmt.Sprintf("the run ends: %s%s%s", f.Status, cause(f.Cause), left)
	}
	return ringi.KindOf(f)
}

// Order says in plain words what somebody asks for.
func Order(do ringi.Action) string {
	switch a := do.(type) {
	case ringi.Start:
		return "to start a run of " + a.Definition + when(a.Key != "", " under the key "+a.Key)
	case ringi.SendEvent:
		return fmt.Sprintf("to take event %s, which is %s of %s", a.ID, a.Name, a.Key)
	case ringi.DecideApproval:
		return fmt.Sprintf("to count a %s on %s", either(a.Approve, "yes", "no"), a.Step)
	case ringi.WithdrawDecision:
		return "to take the vote on " + a.Step + " back"
	case ringi.ResolveIncident:
		return fmt.Sprintf("to close incident %d: %s", a.Incident, a.How)
	case ringi.CompleteActivity:
		return "to note that " + attempt(a.CallRef) + " succeeded"
	case ringi.FailActivity:
		return "to note that " + attempt(a.CallRef) + " failed"
	case ringi.BeginActivity:
		return "for permission to begin " + attempt(a.CallRef)
	case ringi.FireTimer:
		return fmt.Sprintf("that %s (generation %d) is due", timer(a.Timer), a.Generation)
	case ringi.ExpireLease:
		return "to give up " + step(a.Step, a.Direction) + ", whose time seems to be over"
	case ringi.DeliverEvent:
		return fmt.Sprintf("to give event %s to %s", a.Event.ID, a.Step)
	}
	return "to " + strings.ReplaceAll(ringi.ActionName(do), "_", " ") + " it"
}

func step(id string, d ringi.Direction) string {
	switch d {
	case ringi.Undo:
		return "the undo of " + id
	case ringi.Probe:
		return "the question about " + id
	}
	return id
}

func attempt(c ringi.CallRef) string {
	return fmt.Sprintf("attempt %d of %s", c.Attempt, step(c.Step, c.Direction))
}

func timer(id string) string {
	if of, ok := strings.CutPrefix(id, "step:"); ok {
		return "the timer of " + of
	}
	return "the timer " + id
}

func applied(a ringi.Applied) string {
	switch a {
	case ringi.AppliedNo:
		return "; it had no effect"
	case ringi.AppliedYes:
		return "; it had its effect"
	}
	return "; whether it had an effect is not known"
}

func cause(c *ringi.Cause) string {
	if c == nil {
		return ""
	}
	return " because of " + c.Code + when(c.Step != "", " in "+c.Step)
}

func when(is bool, text string) string { return either(is, text, "") }

func either(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}
