// Package pgtest starts a PostgreSQL server of its own from the installed
// programs, for tests and for demonstrations on one machine: its own data
// directory, port and socket, fsync on. It can be crashed, stopped and started
// again under the programs that use it.
//
// The server refuses to run as root, so that root starts it as the service
// user "postgres" that the Debian packages make. When the programs are missing,
// root installs them with apt-get; anybody else is told what to do.
//
// The server ends with the process that started it, also when that is killed:
// a shell between the two waits for the end of a pipe.
package pgtest
