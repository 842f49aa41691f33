// Package conformance holds the scenarios that every way of writing a worker has
// to pass: the Go package worker, sdk/python, sdk/typescript, and worker/command. They show that a
// worker in any language keeps the promises of docs/worker-protocol.md, and keep
// the libraries alike.
//
// Each scenario starts a server in this process, with an engine on a SQLite
// database, and the worker as a process of its own, so that it can be killed.
// Between the two stands a proxy that loses answers and counts requests; beside
// them the ledger, the outside service on which the activities have their effects
// and which tells how often. A scenario waits for what must come true and never
// for time to pass.
//
// To add a language, write a program that serves the queue RINGI_QUEUE of the
// server RINGI_SERVER with the key in RINGI_KEY_FILE, at most CONCURRENCY tasks
// at once (absent: 10), and beside it the queue RINGI_QUEUE-aside with one slot of
// its own and the activity echo only; it stops for SIGTERM. It performs these
// activities:
//
//	echo   answers with its input
//	fail   {code, message, retryable, applied, retryAfterMs, until}: fails so, and
//	       from attempt until on succeeds with {attempt}; the last three may be absent
//	crash  fails as a function does that did not think of it: an exception
//	grow   {bytes}: answers {text} with so many letters
//	hold   {gate}: tells the ledger that it began, and ends when the gate is open
//	       or when it is told to end, which it tells the ledger too; answers {key}
//	find   {key}: a probe that asks the ledger
//
// and add a line to languages in language_test.go. The ledger is an HTTP server
// at LEDGER:
//
//	POST /began {gate, key, attempt, by}   the effect; by is the language
//	POST /ended {gate, key, reason}        told to end, and why
//	GET  /gate/NAME                        200 when it is open, else 204
//	GET  /effect/KEY                       {count} of effects under a key
//
// The package also runs the type checks and the unit tests of the libraries, so
// that make test counts them. What they need beside Go (python3, node, npm, the
// type checkers) tools/need-sdk.sh installs.
package conformance
