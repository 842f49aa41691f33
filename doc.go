// Package ringi is the domain of a durable workflow engine: its words and its
// rules, with no clock, goroutine, I/O or chance in them. Read it first.
//
// # A run is a log
//
// A run is what its events add up to. Three functions say everything:
//
//	Decide(def, state, command) → events, or a refusal
//	Evolve(state, event)        → state, which cannot fail
//	Standing(state)             → the rows that must exist beside the log
//
// Time, identity and chance arrive as data in the Command. The same functions
// serve production, replay, the simulator and the checks of definitions, so a
// question such as "is this result late?" has one answer in one place. What
// is not in the log did not happen; what is in the log has its consequences
// stored in the same transaction.
//
// # The life of a step
//
// Decide schedules an activity (ActivityScheduled); Standing then demands a
// TaskRow; a worker takes it under a lease with a fencing token and answers
// with CompleteActivity or FailActivity; the answer's transition schedules
// the next step. A run of n activities costs n+1 transitions.
//
// Only the expected attempt under the current token moves a run. Anything
// else is answered "repeated" or "stale", kept as evidence, and looked at for
// one question only: did something have an effect that nobody counted on?
//
// # Effect contracts
//
// A lost answer is treated as the step's contract says: pure and idempotent
// steps run again, probeable ones are asked about, at_most_once ones become
// an unknown outcome. Unknown is no kind of failure. For contracts that must
// not repeat, a hand-out is not yet permission: the worker sends
// BeginActivity, and only after its answer can the outcome be unknown.
//
// # Failure and undoing
//
// A failed step looks for a catch outwards; if none takes the failure, the
// run turns around (UnwindStarted): nothing new begins, what is under way is
// awaited, and then what had an effect, or may have had one, is undone in
// reverse order of completion, one at a time, with inputs that were frozen
// when the step ended. What cannot be undone by program is handed to a person
// as an Incident. Past an irreversible step (the pivot) a run only goes
// forward. There is no silent stuck state: a run that is not final has a
// task, a timer, a wait, an approval, a pause or an incident to name.
//
// # Where things are
//
// One noun, one file: start, activity, effect, retry, timer, event_wait,
// approval, saga, failure, incident, operator, message. decide.go and
// evolve.go are switches without logic. service.go is the waist that workers,
// API, console and command line use. The rules are shown by the scripts in
// testdata/scripts.
package ringi
