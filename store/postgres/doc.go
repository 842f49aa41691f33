// Package postgres keeps runs in a PostgreSQL database, for any number of nodes
// at once. The database is their only coordinator: every race is decided by a
// conditional write, a unique index or a row that is locked for a moment, and
// no node holds anything that another one waits for longer than that.
//
// A commit of many runs is one message to the server, whose end commits it; see
// Store.Commit. The order in which batches take rows is fixed: the log, list
// rows with start keys, tasks, timers, waits, approvals, incidents, snapshots,
// audit, queues, aggregate heads; within a kind by key. Two commits of one run
// meet at the log and nowhere else. Claims, heartbeats and sweeps step over
// rows that others hold, and so never wait while they hold some. Together no
// two sessions can wait for each other.
//
// Claims and sweeps look from a floor on, see floors: what one long transaction
// keeps the server from cleaning up, they do not walk over again and again. Rows
// are ordered by the database's clock at the moment when they are written, so
// that what a frozen node writes late stands above the floors of others.
//
// Errors: store.ErrUnavailable when nothing was done, store.ErrDoubt when a
// commit was sent and its answer did not come. Sending the same writes again
// settles it: they queue behind the old transaction if the server still works
// on it, and then apply, or are recognised by their commit ids. Connections are
// made anew by themselves; with several hosts in the URL the one that takes
// writes is found after a failover.
//
// Versions 14 and later. The encoding must be UTF8. Behind a pooler in
// transaction mode no prepared statements are kept, see Config.URL, and no
// setting of the session is relied on.
package postgres
