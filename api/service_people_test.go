package api_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/ringiflow/ringi"
)

const (
	vote = `
ringi: v1
name: vote
steps:
  - id: ok
    approval:
      title: "Pay ${ input.amount }"
      subject: { amount: "${ input.amount }" }
      ask: [ { name: Finance, from: [group:finance], quorum: 2 } ]
`
	paid = `
ringi: v1
name: paid
steps:
  - { id: money, wait: { event: paid, key: "${ input.order }" } }
output: "${ steps.money.output }"
`
)

func TestServiceCountsDistinctPeople(t *testing.T) { // W20, W21, W22
	onBoth(t, func(t *testing.T, w *world) {
		w.publish(vote)
		start := ringi.Start{Definition: "vote", Input: json.RawMessage(`{"amount":100}`)}
		run := w.must(carol, "", start).Run
		open := w.list(op, ringi.ApprovalQuery{}).Approvals
		if len(open) != 1 || open[0].Run != run || open[0].Step != "ok" || open[0].Title != "Pay 100" || open[0].Requester != "carol" || open[0].Digest == "" || open[0].ExpiresAt.IsZero() || open[0].Lanes[0].Quorum != 2 {
			t.Fatalf("open %+v", open)
		}
		yes := ringi.DecideApproval{Step: "ok", Approve: true, Digest: open[0].Digest, Comment: "fine"}
		stale := yes
		stale.Digest = "another"
		w.wantCode("a vote on another subject", w.do(alice, run, stale).Err, ringi.CodeVersionChanged)
		w.wantCode("the requester's vote", w.do(carol, run, yes).Err, ringi.CodeForbidden)
		w.wantCode("a machine's vote", w.do(op, run, yes).Err, ringi.CodeForbidden)
		w.wantCode("a vote on no approval", w.do(alice, run, ringi.DecideApproval{Step: "none", Digest: "d"}).Err, ringi.CodeNotFound)

		w.must(alice, run, yes)
		w.must(alice, run, ringi.WithdrawDecision{Step: "ok", Reason: "wait"})
		w.must(alice, run, yes)
		if twice := w.do(alice, run, yes); twice.Err == nil && twice.Answer.Outcome != ringi.Repeated {
			t.Errorf("alice votes twice: %+v", twice)
		}
		if v := w.view(run); v.Status != ringi.Waiting || v.WaitingFor != "approval" {
			t.Errorf("after one person's votes: %s for %q", v.Status, v.WaitingFor)
		}
		mine := func(a ringi.Actor) int { return len(w.list(a, ringi.ApprovalQuery{For: &a}).Approvals) }
		if mine(bob) != 1 || mine(carol) != 0 {
			t.Errorf("bob may vote on %d, carol on %d", mine(bob), mine(carol))
		}
		if res := w.must(bob, run, yes); res.Status != ringi.Completed {
			t.Errorf("bob's vote: %+v", res)
		}
		w.wantCode("a vote after the end", w.do(ringi.Actor{ID: "dave", Kind: ringi.Person, Groups: []string{"finance"}}, run, yes).Err, ringi.CodeAlreadyDecided)
		if left := w.list(op, ringi.ApprovalQuery{Run: run}).Approvals; len(left) != 0 {
			t.Errorf("left %+v", left)
		}
	})
}

func TestServiceTakesARejection(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		w.publish(vote)
		run := w.must(carol, "", ringi.Start{Definition: "vote", Input: json.RawMessage(`{"amount":1}`)}).Run
		digest := w.list(op, ringi.ApprovalQuery{Run: run}).Approvals[0].Digest
		w.must(bob, run, ringi.DecideApproval{Step: "ok", Digest: digest, Comment: "no"})
		if v := w.becomes(run, ringi.Failed); v.Steps[0].Outcome != "rejected" {
			t.Errorf("steps %+v", v.Steps)
		}
	})
}

func TestServiceDeliversEvents(t *testing.T) { // TC-46, TC-47
	onBoth(t, func(t *testing.T, w *world) {
		w.publish(paid)
		first := w.start("paid", "", `{"order":"o1"}`)
		sent := w.do(op, "", ringi.SendEvent{ID: "e1", Name: "paid", Key: "o1", Data: json.RawMessage(`{"yen":1.50}`)})
		if sent.Err != nil || sent.ID != "e1" || sent.Answer.Outcome != ringi.Accepted {
			t.Fatalf("sent %+v", sent)
		}
		if v := w.becomes(first, ringi.Completed); string(v.Output) != `{"yen":1.50}` && string(v.Output) != `{"yen":1.5}` {
			t.Errorf("output %s", v.Output)
		}
		if again := w.do(op, "", ringi.SendEvent{ID: "e1", Name: "paid", Key: "o1", Data: json.RawMessage(`{"yen":1.50}`)}); again.Err != nil || again.Answer.Outcome != ringi.Repeated {
			t.Errorf("sent again: %+v", again)
		}
		if other := w.do(op, "", ringi.SendEvent{ID: "e1", Name: "paid", Key: "o1", Data: json.RawMessage(`{"yen":2}`)}); ringi.ErrorCode(other.Err) != ringi.CodeInvalid { // S-16
			t.Errorf("another event under the same id: %+v", other)
		}
		early := w.do(op, "", ringi.SendEvent{Name: "paid", Key: "o2", Data: json.RawMessage(`2`)})
		if early.Err != nil || early.ID == "" {
			t.Fatalf("early %+v", early)
		}
		w.becomes(w.start("paid", "", `{"order":"o2"}`), ringi.Completed)
		if v := w.view(w.start("paid", "", `{"order":"o3"}`)); v.Status != ringi.Waiting || v.WaitingFor != "event" {
			t.Errorf("another order's run is %s for %q", v.Status, v.WaitingFor)
		}
	})
}

func TestServiceLetsPeopleResolveIncidents(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		w.publish(mail)
		run := w.start("mail", "", ``)
		task := w.task()
		w.must(hand, run, ringi.BeginActivity{CallRef: task.CallRef, Worker: "w"})
		w.must(hand, run, complete(task, `"not an object"`))
		if v := w.becomes(run, ringi.InIncident); len(v.Incidents) != 1 {
			t.Errorf("view %+v", v)
		}
		open := w.list(op, ringi.IncidentQuery{}).Incidents
		if len(open) != 1 || open[0].Run != run || open[0].Kind != ringi.IncidentBadOutput || open[0].Step != "send" || open[0].Message == "" || !slices.Contains(open[0].Allowed, ringi.ResolveDone) {
			t.Fatalf("open %+v", open)
		}
		done := ringi.ResolveIncident{Incident: open[0].ID, How: ringi.ResolveDone, Reason: "saw the mail", Output: json.RawMessage(`{"id":"m1"}`)}
		other := done
		other.Incident = 999
		w.wantCode("no such incident", w.do(alice, run, other).Err, ringi.CodeNotFound)
		w.must(alice, run, done)
		w.becomes(run, ringi.Completed)
		if again := w.do(alice, run, done); again.Err == nil && again.Answer.Outcome != ringi.Repeated {
			t.Errorf("resolved again: %+v", again)
		}
		if left := w.list(op, ringi.IncidentQuery{Run: run}).Incidents; len(left) != 0 {
			t.Errorf("left %+v", left)
		}
	})
}
