package promise

import (
	"slices"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/sim/draw"
)

// voted holds a vote that counts to the person's right and to the instant.
func (t *Turn) voted(at time.Time, f ringi.DecisionRecorded) {
	st := StepOf(t.State, f.Step)
	if st == nil || st.Approval == nil || st.Outcome != ringi.Open {
		t.Fail("vote", "%s voted on %s, which is not open", f.Person, f.Step)
		return
	}
	a := st.Approval
	p, known := draw.Person(f.Person)
	switch {
	case !known || p.Kind != ringi.Person:
		t.Fail("vote", "%s voted and is no person", f.Person)
	case f.Person == t.State.Requester:
		t.Fail("vote", "%s voted on what they asked for", f.Person)
	case slices.ContainsFunc(a.Separation, func(from string) bool { return belongs(p, from) }):
		t.Fail("vote", "%s voted against the separation of duties", f.Person)
	case !at.Before(a.ExpiresAt):
		t.Fail("expired", "%s voted at %s, and the approval expired at %s", f.Person, at, a.ExpiresAt)
	case f.Digest != a.Digest:
		t.Fail("vote", "%s voted on another subject", f.Person)
	case slices.ContainsFunc(a.Votes, func(v ringi.Vote) bool { return v.Person == f.Person }):
		t.Fail("vote", "%s voted twice", f.Person)
	}
	for _, lane := range f.Lanes {
		if lane >= len(a.Lanes) || !slices.ContainsFunc(a.Lanes[lane].From, func(from string) bool { return belongs(p, from) }) {
			t.Fail("vote", "%s voted in a lane of others", f.Person)
		}
	}
}

// belongs reports whether a person is meant by group:NAME or user:ID.
func belongs(p ringi.Actor, from string) bool {
	return from == "user:"+p.ID || slices.ContainsFunc(p.Groups, func(g string) bool { return from == "group:"+g })
}

// stepEnded holds the end of an approval to its votes.
func (t *Turn) stepEnded(f ringi.StepEnded) {
	st := StepOf(t.State, f.Step)
	if st == nil || st.Approval == nil || st.Outcome != ringi.Open || f.Outcome != ringi.Succeeded {
		return
	}
	if t.ordered(ringi.ResolveDone) {
		return
	}
	people := t.agreed(f.Step)
	if len(people) < len(t.Votes[f.Step]) {
		t.Fail("vote", "%s is approved although somebody said no", f.Step)
	}
	if !seats(st.Approval.Lanes, people) {
		t.Fail("quorum", "%s is approved by %d people, who do not fill its lanes", f.Step, len(people))
	}
}

// seats tries every way to seat people, each on one seat, until all lanes are
// full. It is slow on purpose: it shares nothing with the rule that it checks.
func seats(lanes []ringi.Lane, people []ringi.Actor) bool {
	for i, l := range lanes {
		if l.Quorum == 0 {
			continue
		}
		for j, p := range people {
			if !slices.ContainsFunc(l.From, func(from string) bool { return belongs(p, from) }) {
				continue
			}
			rest := slices.Clone(lanes)
			rest[i].Quorum--
			others := append(slices.Clone(people[:j]), people[j+1:]...)
			if seats(rest, others) {
				return true
			}
		}
		return false
	}
	return true
}

// asks holds a question to people to its definition.
func (t *Turn) asks(at time.Time, f ringi.ApprovalOpened) {
	def := t.Def
	if def == nil || def.Step(f.Step) == nil || def.Step(f.Step).Approval == nil {
		return
	}
	d, a := def.Step(f.Step).Approval, f.Approval
	if !a.ExpiresAt.Equal(at.Add(d.ExpireAfter)) {
		t.Fail("expired", "%s is asked at %s, may be answered for %s, and expires at %s", f.Step, at, d.ExpireAfter, a.ExpiresAt)
	}
	if len(a.Lanes) != len(d.Ask) || len(a.Separation) != len(d.Separation) {
		t.Fail("quorum", "%s asks %d groups and keeps %d apart, and its definition %d and %d", f.Step, len(a.Lanes), len(a.Separation), len(d.Ask), len(d.Separation))
		return
	}
	for i, l := range a.Lanes {
		if l.Quorum != d.Ask[i].Quorum || len(l.From) != len(d.Ask[i].From) {
			t.Fail("quorum", "%s asks for %d of %v, and its definition for %d", f.Step, l.Quorum, l.From, d.Ask[i].Quorum)
		}
	}
}

// tookBack holds the withdrawal of a vote to one that counts, and to the instant.
func (t *Turn) tookBack(at time.Time, f ringi.DecisionWithdrawn) {
	st := StepOf(t.State, f.Step)
	switch {
	case st == nil || st.Approval == nil || st.Outcome != ringi.Open:
		t.Fail("vote", "%s takes a vote on %s back, which is not open", f.Person, f.Step)
	case !at.Before(st.Approval.ExpiresAt):
		t.Fail("expired", "%s takes a vote back at %s, and the approval expired at %s", f.Person, at, st.Approval.ExpiresAt)
	case !slices.ContainsFunc(st.Approval.Votes, func(v ringi.Vote) bool { return v.Person == f.Person }):
		t.Fail("vote", "%s takes a vote on %s back and has none", f.Person, f.Step)
	}
}

// counted holds an approval that stays open to its votes: one no, or enough
// yes, end it at once.
func (t *Turn) counted() {
	for _, e := range t.Events {
		f, ok := e.Fact.(ringi.DecisionRecorded)
		if !ok {
			continue
		}
		st := StepOf(t.State, f.Step)
		if st == nil || st.Approval == nil || st.Outcome != ringi.Open {
			continue
		}
		people := t.agreed(f.Step)
		if len(people) < len(t.Votes[f.Step]) {
			t.Fail("vote", "somebody said no to %s, and it stays open", f.Step)
		}
		if seats(st.Approval.Lanes, people) {
			t.Fail("quorum", "%s is approved by enough people and stays open", f.Step)
		}
	}
}

// agreed are the people whose vote that stands is a yes, by the books: a vote
// that was taken back is none.
func (t *Turn) agreed(step string) []ringi.Actor {
	var people []ringi.Actor
	for _, p := range draw.People() {
		if t.Votes[step][p.ID] {
			people = append(people, p)
		}
	}
	return people
}
