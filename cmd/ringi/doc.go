// Command ringi is the whole of ringi in one binary: the server, the commands
// that people and scripts use against it, and a demonstration.
//
// # The program is a value
//
// Program holds everything that comes from outside: arguments, environment,
// standard streams, working directory, clock and signals. main fills it from
// the process; a test fills it from a temporary directory and a buffer, and
// starts the same program.
//
// # One noun, one file
//
// run.go, start.go, history.go, approval.go, incident.go, event.go, operator.go,
// definition.go, replay.go, outbox.go and key.go hold the commands of a noun.
// serve.go and dev.go start a server; what both are made of is in node.go, and
// only there engine, store, API, keys, relays and metrics are wired together.
// relay.go is the relay as a process of its own, bench.go measures. What ringi
// demo does is in examples/demo. client.go finds the server, the key and the run
// that the user means, ring.go makes the keys that a server needs for itself,
// setting.go decides where a setting comes from, config.go finds its file,
// default.go lists what is fixed, exit.go says what the exit codes mean.
//
// # Rules for every command
//
// Data goes to standard output, everything else to standard error. --json
// prints exactly one object; a stream (--watch) prints one per line. A table
// is for people and may change; the JSON may not. A command that ends or undoes
// what others count on needs --reason. The commands know only ringi.Service.
package main
