// Package sim plays ringi in a world of its own that breaks everything, and
// checks what the design promises at every step.
//
// A world is one seed: a few nodes with real engines on one store in memory,
// workers, the services that they call, people, clients and operators, under
// one clock that is not the machine's, in one goroutine. Definitions are drawn
// from the grammar. The engines' rounds, messages, calls and timers happen in
// an order that only the seed knows; while one waits for the store, others go
// on. The same seed gives the same steps on every machine, to the byte.
//
// # What is real and what is not
//
// The rules, the engines with all their parts, the store in memory, the relay
// and the outbox are those of production, and so is what a worker decides
// (package worker/shift). The network is simulated, and so are the functions that
// workers call: package worker runs them in goroutines, which a single one cannot
// step through.
//
// # Faults
//
// See Fault for the kinds. A node dies at the calls that it makes to its store:
// what it does in between nobody can tell from not having done it. For each
// seed some kinds are drawn, so that loud ones do not hide the others. A fault
// counts when it strikes.
//
// # Checks
//
// A watch behind the store folds every log as it grows. It holds each event to
// the promises (transition.go, and package promise with books of its own), rows
// and snapshots to the log, states in the memory of nodes to the log, and answers
// and tasks that go out to what is durable. Every command is decided twice. The
// services keep books of what really took place, and complain about one effect
// too many. When all faults have ended, every run must come to its end, or say
// what it waits for; then the books must agree with what the runs say of
// themselves.
//
// # Finding and repeating
//
// A violation is shrunk: nodes, workers, runs, kinds of faults and single
// perturbations are left out as long as the same promise breaks. What is left
// is told as a story, with the command that repeats it.
package sim
