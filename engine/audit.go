package engine

import (
	"encoding/json"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
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

// auditData is what was asked, without payloads: those stand in the log, where
// they can be sealed and shredded, or went nowhere.
func auditData(a ringi.Action) []byte {
	switch x := a.(type) {
	case ringi.Start:
		x.Input, x.Repair = nil, nil
		a = x
	case ringi.CompleteActivity:
		x.Output, x.Want = nil, nil
		a = x
	case ringi.FailActivity:
		x.Want = nil
		a = x
	case ringi.ResolveIncident:
		x.Output, x.Input = nil, nil
		a = x
	}
	data, err := json.Marshal(a)
	if err != nil { // plain structs of texts and numbers
		return []byte("{}")
	}
	return data
}
