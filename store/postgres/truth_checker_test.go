package postgres_test

import (
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/ringiflow/ringi"
)

// W6: the checker of histories finds what it is there for. Each story is told
// as it must be, and then with one thing that must not be.
func TestTheCheckerOfHistoriesFindsWhatMustNotBe(t *testing.T) {
	const one, two = 1<<16 + 1, 1<<16 + 2
	accepted, repeated, stale := string(ringi.Accepted), string(ringi.Repeated), string(ringi.Stale)
	asked := &ringi.ApprovalView{Requester: "erin", Approval: ringi.Approval{Lanes: []ringi.Lane{{From: []string{"group:finance"}, Quorum: 2}}}}
	vote := func(person string, approve bool) voteIn {
		return voteIn{op: opVote, person: person, approve: approve, right: true, same: true, asked: asked}
	}
	alice, bob, dave := vote("alice", true), vote("bob", true), vote("dave", true)
	read := voteIn{op: opRead, asked: asked}
	start := func(input string) startIn { return startIn{input: input} }
	for name, story := range map[string]struct {
		model porcupine.Model
		holds bool
		ops   []any // inputs and outputs in turn, one after the other
	}{
		"a key is taken once":                        {startModel(), true, []any{start("x"), startOut{created, "r1"}, start("x"), startOut{repeated, "r1"}, startIn{read: true}, startOut{accepted, "r1"}}},
		"a key is taken twice":                       {startModel(), false, []any{start("x"), startOut{created, "r1"}, start("x"), startOut{created, "r2"}}},
		"a key names another run":                    {startModel(), false, []any{start("x"), startOut{created, "r1"}, start("x"), startOut{repeated, "r2"}}},
		"other input is taken for the same":          {startModel(), false, []any{start("x"), startOut{created, "r1"}, start("y"), startOut{repeated, "r1"}}},
		"the same input is a conflict":               {startModel(), false, []any{start("x"), startOut{created, "r1"}, start("x"), startOut{answer: string(ringi.CodeStartKeyConflict)}}},
		"a start is read late":                       {startModel(), false, []any{start("x"), startOut{created, "r1"}, startIn{read: true}, startOut{answer: nothing}}},
		"an unknown start took the key":              {startModel(), true, []any{start("x"), startOut{answer: unknown}, start("x"), startOut{repeated, "r1"}}},
		"an unknown start took nothing":              {startModel(), true, []any{start("x"), startOut{answer: unknown}, start("y"), startOut{created, "r1"}}},
		"a result counts once":                       {callModel(), true, []any{callIn{opClaim, one}, accepted, callIn{opBegin, one}, accepted, callIn{opSucceeded, one}, accepted, callIn{opSucceeded, one}, repeated}},
		"a token is given twice":                     {callModel(), false, []any{callIn{opClaim, one}, accepted, callIn{opClaim, one}, accepted}},
		"a result counts under an old token":         {callModel(), false, []any{callIn{opClaim, one}, accepted, callIn{opClaim, two}, accepted, callIn{opSucceeded, one}, accepted}},
		"a late result is evidence":                  {callModel(), true, []any{callIn{opClaim, one}, accepted, callIn{opClaim, two}, accepted, callIn{opSucceeded, one}, stale}},
		"two results of an attempt count":            {callModel(), false, []any{callIn{opClaim, one}, accepted, callIn{opSucceeded, one}, accepted, callIn{opFailed, one}, accepted}},
		"what counted is called late":                {callModel(), false, []any{callIn{opClaim, one}, accepted, callIn{opSucceeded, one}, accepted, callIn{opSucceeded, one}, stale}},
		"a result that never counted is a repeat":    {callModel(), false, []any{callIn{opClaim, one}, accepted, callIn{opSucceeded, one}, repeated}},
		"a permitted attempt is given away":          {callModel(), false, []any{callIn{opClaim, one}, accepted, callIn{opBegin, one}, accepted, callIn{opClaim, two}, accepted}},
		"a finished attempt is given away":           {callModel(), false, []any{callIn{opClaim, one}, accepted, callIn{opSucceeded, one}, accepted, callIn{opClaim, two}, accepted}},
		"two people are a quorum":                    {voteModel(), true, []any{alice, voteOut{answer: accepted}, read, voteOut{nothing, "alice+ "}, bob, voteOut{answer: accepted}, dave, voteOut{answer: string(ringi.CodeAlreadyDecided)}}},
		"a vote counts after the quorum":             {voteModel(), false, []any{alice, voteOut{answer: accepted}, bob, voteOut{answer: accepted}, dave, voteOut{answer: accepted}}},
		"a person counts twice":                      {voteModel(), false, []any{alice, voteOut{answer: accepted}, alice, voteOut{answer: accepted}}},
		"a vote counts after a rejection":            {voteModel(), false, []any{vote("bob", false), voteOut{answer: accepted}, alice, voteOut{answer: accepted}}},
		"a vote is lost":                             {voteModel(), false, []any{alice, voteOut{answer: accepted}, read, voteOut{nothing, ""}}},
		"a vote is withdrawn and given again":        {voteModel(), true, []any{alice, voteOut{answer: accepted}, voteIn{op: opWithdraw, person: "alice"}, voteOut{answer: accepted}, alice, voteOut{answer: accepted}}},
		"a vote that was never given is a repeat":    {voteModel(), false, []any{alice, voteOut{answer: repeated}}},
		"somebody votes who may not":                 {voteModel(), false, []any{voteIn{op: opVote, person: "erin", approve: true, same: true, asked: asked}, voteOut{answer: accepted}}},
		"what is closed opens again":                 {voteModel(), false, []any{alice, voteOut{answer: string(ringi.CodeAlreadyDecided)}, bob, voteOut{answer: accepted}}},
		"a vote counts on what nobody was shown":     {voteModel(), false, []any{voteIn{op: opVote, person: "bob", approve: true, right: true, asked: asked}, voteOut{answer: accepted}}},
		"a vote of unknown outcome may have counted": {voteModel(), true, []any{alice, voteOut{answer: unknown}, bob, voteOut{answer: accepted}, dave, voteOut{answer: string(ringi.CodeAlreadyDecided)}}},
	} {
		var ops []porcupine.Operation
		for i := 0; i < len(story.ops); i += 2 {
			ops = append(ops, porcupine.Operation{Input: story.ops[i], Output: story.ops[i+1], Call: int64(10 * i), Return: int64(10*i + 5)})
		}
		if holds := porcupine.CheckOperations(story.model, ops); holds != story.holds {
			t.Errorf("%s: linearizable is %v, want %v:\n%s", name, holds, story.holds, told(ops))
		}
	}
}
