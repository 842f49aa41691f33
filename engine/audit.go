package engine

import (
	"encoding/json"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
	"github.com/ringiflow/ringi/workflow"
)

// kindOf names a command as the audit trail does.
func kindOf(a ringi.Action) string {
	switch a.(type) {
	case ringi.Start:
		return "start"
	case ringi.BeginActivity:
		return "begin_activity"
	case ringi.CompleteActivity:
		return "complete_activity"
	case ringi.FailActivity:
		return "fail_activity"
	case ringi.FireTimer:
		return "fire_timer"
	case ringi.ExpireLease:
		return "expire_lease"
	case ringi.DecideApproval:
		return "decide_approval"
	case ringi.WithdrawDecision:
		return "withdraw_decision"
	case ringi.DeliverEvent:
		return "deliver_event"
	case ringi.SendEvent:
		return "send_event"
	case ringi.Cancel:
		return "cancel"
	case ringi.Pause:
		return "pause"
	case ringi.Resume:
		return "resume"
	case ringi.Terminate:
		return "terminate"
	case ringi.ResolveIncident:
		return "resolve_incident"
	}
	return "unknown"
}

// audited reports whether a command leaves an audit record: whatever a person
// does, an operator's commands whoever sends them, and what workers report to
// a run whose log is closed.
func audited(cmd ringi.Command, before *ringi.State) bool {
	switch cmd.Do.(type) {
	case ringi.BeginActivity, ringi.CompleteActivity, ringi.FailActivity:
		return before.End != nil
	case ringi.Cancel, ringi.Pause, ringi.Resume, ringi.Terminate, ringi.ResolveIncident:
		return cmd.Actor.Kind != ringi.System
	}
	return cmd.Actor.Kind == ringi.Person
}

// auditRecord says who asked for what and what came of it; the head is filled
// in when the write is made.
func auditRecord(cmd ringi.Command, answer ringi.Answer, refusal error) store.AuditRecord {
	r := store.AuditRecord{
		At: cmd.At, Actor: cmd.Actor.ID, Kind: kindOf(cmd.Do), Run: cmd.Run,
		Answer: string(answer.Outcome), Data: auditData(cmd.Do),
	}
	if refusal != nil {
		r.Answer = string(ringi.ErrorCode(refusal))
	}
	return r
}

// asked is what a command asked for, as the audit trail keeps it: without
// payloads, which stand in the log, where they can be sealed and shredded, or
// went nowhere. Of a start's input there is the digest.
type asked struct {
	Definition  string           `json:"definition,omitempty"`
	Version     int              `json:"version,omitempty"`
	Key         string           `json:"key,omitempty"`
	InputDigest string           `json:"inputDigest,omitempty"`
	OnBehalfOf  string           `json:"onBehalfOf,omitempty"`
	EventID     string           `json:"eventId,omitempty"`
	Worker      string           `json:"worker,omitempty"`
	Call        *ringi.CallRef   `json:"call,omitempty"`
	Failure     *ringi.Failure   `json:"failure,omitempty"`
	Step        string           `json:"step,omitempty"`
	Approve     *bool            `json:"approve,omitempty"`
	Digest      string           `json:"digest,omitempty"`
	Comment     string           `json:"comment,omitempty"`
	Incident    int64            `json:"incident,omitempty"`
	How         ringi.Resolution `json:"how,omitempty"`
	Activity    string           `json:"activity,omitempty"`
	Reason      string           `json:"reason,omitempty"`
}

// auditData is what was asked, as JSON.
func auditData(a ringi.Action) []byte {
	var x asked
	switch a := a.(type) {
	case ringi.Start:
		digest, err := workflow.Digest(a.Input)
		if err != nil {
			digest = "" // it was refused for that
		}
		x = asked{Definition: a.Definition, Version: a.Version, Key: a.Key, InputDigest: digest, OnBehalfOf: a.OnBehalfOf, EventID: a.EventID}
	case ringi.BeginActivity:
		x = asked{Call: &a.CallRef, Worker: a.Worker}
	case ringi.CompleteActivity:
		x = asked{Call: &a.CallRef, Worker: a.Worker}
	case ringi.FailActivity:
		x = asked{Call: &a.CallRef, Worker: a.Worker, Failure: &a.Failure}
	case ringi.DecideApproval:
		x = asked{Step: a.Step, Approve: &a.Approve, Digest: a.Digest, Comment: a.Comment}
	case ringi.WithdrawDecision:
		x = asked{Step: a.Step, Reason: a.Reason}
	case ringi.ResolveIncident:
		x = asked{Incident: a.Incident, How: a.How, Activity: a.Activity, Reason: a.Reason}
	case ringi.Cancel:
		x.Reason = a.Reason
	case ringi.Pause:
		x.Reason = a.Reason
	case ringi.Resume:
		x.Reason = a.Reason
	case ringi.Terminate:
		x.Reason = a.Reason
	}
	data, err := json.Marshal(x)
	if err != nil { // plain structs of texts and numbers
		return []byte("{}")
	}
	return data
}
