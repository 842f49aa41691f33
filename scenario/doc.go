// Package scenario tests definitions without a server: a file beside a
// definition says what workers will answer, what people do and how much time
// passes, and what must come of it. Play runs it through the rules that
// production runs (Decide, Evolve, Standing) under a virtual clock, so that a
// process which takes three days is tested in a millisecond.
//
// # The file
//
// order_test.yaml stands beside order.yaml and has these keys:
//
//	definition: order.yaml         # when it is not the file's name without _test
//	people: { alice: [finance] }   # who there is, with groups
//	answers: {…}                   # what workers answer, in every scenario
//	scenarios:
//	  - name: a card that is declined gives the stock back
//	    start: { by: carol, input: {…} }
//	    answers:
//	      inventory.reserve: { output: { reservation_id: R1 } }
//	      payment.charge: [ lost, { fail: card_declined } ]
//	    then:
//	      - approve: { step: approve, by: alice }
//	    expect:
//	      status: compensated
//	      undone: [reserve]
//
// Answers are found by the activity's name, or by step in step_answers
// (charge, charge/undo, charge/probe), which comes first. A list answers one
// attempt after the other, and its last entry all that follow. An answer is
// lost (the worker made the call and was never heard of again), {output: …},
// or {fail: …}; takes says how long it needs: the run then stands in the middle of
// the call until a move lets time pass, and an answer that takes longer than its
// attempt may comes late. An undo that nobody scripted
// succeeds; any other call without an answer fails the scenario.
//
// # Time
//
// Between two moves the run goes as far as it comes by itself: calls are
// answered, and back-offs and lost leases pass, with every timer that is due by
// then. For timers, approvals, events and calls that take time it stands still
// until a move says pass, approve, event and so on.
//
// The package is pure: no clock, no I/O, no goroutine. The same file and
// definition give the same result, byte for byte.
package scenario
