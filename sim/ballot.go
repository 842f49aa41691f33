package sim

import (
	"slices"
	"time"

	"github.com/ringiflow/ringi"
)

// voted holds a vote that counts to the person's right and to the instant.
func (t *transition) voted(at time.Time, f ringi.DecisionRecorded) {
	st := stepOf(t.sh.state, f.Step)
	if st == nil || st.Approval == nil || st.Outcome != ringi.Open {
		t.fail("vote", "%s voted on %s, which is not open", f.Person, f.Step)
		return
	}
	a := st.Approval
	p, known := person(f.Person)
	switch {
	case !known || p.Kind != ringi.Person:
		t.fail("vote", "%s voted and is no person", f.Person)
	case f.Person == t.sh.state.Requester:
		t.fail("vote", "%s voted on what they asked for", f.Person)
	case slices.ContainsFunc(a.Separation, func(from string) bool { return belongs(p, from) }):
		t.fail("vote", "%s voted against the separation of duties", f.Person)
	case !at.Before(a.ExpiresAt):
		t.fail("expired", "%s voted at %s, and the approval expired at %s", f.Person, at, a.ExpiresAt)
	case f.Digest != a.Digest:
		t.fail("vote", "%s voted on another subject", f.Person)
	case slices.ContainsFunc(a.Votes, func(v ringi.Vote) bool { return v.Person == f.Person }):
		t.fail("vote", "%s voted twice", f.Person)
	}
	for _, lane := range f.Lanes {
		if lane >= len(a.Lanes) || !slices.ContainsFunc(a.Lanes[lane].From, func(from string) bool { return belongs(p, from) }) {
			t.fail("vote", "%s voted in a lane of others", f.Person)
		}
	}
}

// belongs reports whether a person is meant by group:NAME or user:ID.
func belongs(p ringi.Actor, from string) bool {
	return from == "user:"+p.ID || slices.ContainsFunc(p.Groups, func(g string) bool { return from == "group:"+g })
}

// stepEnded holds the end of an approval to its votes.
func (t *transition) stepEnded(f ringi.StepEnded) {
	st := stepOf(t.sh.state, f.Step)
	if st == nil || st.Approval == nil || st.Outcome != ringi.Open || f.Outcome != ringi.Succeeded {
		return
	}
	if t.ordered(ringi.ResolveDone) {
		return
	}
	var people []ringi.Actor
	for _, v := range st.Approval.Votes {
		if p, ok := person(v.Person); ok && v.Approve {
			people = append(people, p)
		}
	}
	if !seats(st.Approval.Lanes, people) {
		t.fail("quorum", "%s is approved by %d people, who do not fill its lanes", f.Step, len(people))
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
