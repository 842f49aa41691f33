// Package cli is what all commands of ringi have in common.
//
// # The program is a value
//
// Program holds everything that comes from outside: arguments, environment,
// standard streams, working directory, clock and signals. main fills it from
// the process; a test fills it from a temporary directory and a buffer, and
// runs the same tree of commands.
//
// # What a command finds here
//
// setting.go decides where a setting comes from, config.go finds its file,
// default.go lists what is fixed; connect.go finds the server, the key and the
// database that the user means; document.go and argument.go read what a call
// gives; output.go prints data, exit.go says what the exit codes mean.
//
// # Rules for every command
//
// Data goes to standard output, everything else to standard error. --json
// prints exactly one object; a stream (--watch) prints one per line. A table
// is for people and may change; the JSON may not. A command that ends or undoes
// what others count on needs --reason. The commands know only ringi.Service.
package cli
