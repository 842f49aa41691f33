// Command ringi is the whole of ringi in one binary: the server, the commands
// that people and scripts use against it, and a demonstration.
//
// root.go is the tree of commands. They are in a package for each kind of work,
// one noun a file:
//
//   - cli: what all have in common: the program as a value, settings, output,
//     exit codes, and the rules that every command keeps
//   - author: for people who write definitions: init, check,
//     fmt, test, explain, graph, schema, publish
//   - client: runs and the decisions of people, through a server
//   - server: serve, which is where a server is wired together, and keys
//   - delivery: relay and outbox
//   - trial: dev and demo
//   - prove: replay, sim and bench
//
// cli knows none of the others, and none of them knows main. A new command is a
// method of its package's program, named in the package's commands.go.
//
// The tests here call the program as its users do; what a package keeps to
// itself is tested beside it.
package main
