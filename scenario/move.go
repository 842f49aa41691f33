package scenario

import (
	"fmt"

	"github.com/ringiflow/ringi"
)

// make lets a move happen, and the run go on from there.
func (p *play) make(m move) {
	switch m.word {
	case "expect":
		p.compare(m.expect)
		return
	case "pass":
		p.pass(m.pass)
	case "event":
		e := m.event
		if e.ID == "" {
			e.ID = fmt.Sprintf("event-%d", len(p.sent)+1)
		}
		e.SentAt = p.now
		p.sent = append(p.sent, e)
		p.tell("event %s %q is sent", e.Name, e.Key)
	default:
		p.order(m)
	}
	p.settle()
}

// order sends what a person wants, and compares how it was taken.
func (p *play) order(m move) {
	do := p.action(m)
	if do == nil {
		p.differ(m.at, "there is no open incident%s to resolve", atStep(m.step))
		return
	}
	_, err := p.send(p.person(m.by), do)
	code := string(ringi.ErrorCode(err))
	switch {
	case err == nil && m.refused != "":
		p.differ(m.at, "%s by %s was accepted, want it refused with %s", m.word, m.by, m.refused)
	case err != nil && m.refused == "":
		p.differ(m.at, "%s by %s was refused with %s: %v", m.word, m.by, code, err)
	case err != nil && code != m.refused:
		p.differ(m.at, "%s by %s was refused with %s, want %s: %v", m.word, m.by, code, m.refused, err)
	}
	if err != nil {
		p.tell("%s by %s is refused: %s", m.word, m.by, code)
	}
}

func atStep(step string) string {
	if step == "" {
		return ""
	}
	return " at step " + step
}

// action is what a person's move asks for; nil when there is no incident.
func (p *play) action(m move) ringi.Action {
	switch m.word {
	case "approve", "reject":
		return ringi.DecideApproval{Step: m.step, Approve: m.word == "approve", Digest: p.subject(m.step), Comment: m.comment}
	case "withdraw":
		return ringi.WithdrawDecision{Step: m.step, Reason: m.reason}
	case "cancel":
		return ringi.Cancel{Reason: m.reason}
	case "pause":
		return ringi.Pause{Reason: m.reason}
	case "resume":
		return ringi.Resume{Reason: m.reason}
	case "terminate":
		return ringi.Terminate{Reason: m.reason}
	}
	for _, i := range p.state.Incidents {
		if m.step == "" || i.Step == m.step {
			m.resolve.Incident = i.ID
			return m.resolve
		}
	}
	return nil
}

// subject is the digest of what an approval shows to a voter.
func (p *play) subject(step string) string {
	for _, st := range p.state.Steps {
		if st.ID == step && st.Approval != nil {
			return st.Approval.Digest
		}
	}
	return ""
}
