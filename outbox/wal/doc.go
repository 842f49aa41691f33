// Package wal tells relays from PostgreSQL's write-ahead log which messages were
// committed, so that they need not poll to find them.
//
// A Reader has a logical replication slot (plugin pgoutput) and a publication for
// the inserts of the table outbox, and nothing else. What it reads are ids, in the
// order of the commits. A relay that it feeds (outbox.RelayConfig.Feed) claims
// exactly those messages, by the rules by which every message is claimed: fences,
// the order of a key, attempts, dead letters and parking are those of polling.
//
//	commit ──▶ log ──▶ Reader ──ids──▶ relay: claim, publish, mark
//	  │                                  ▲
//	  └─────▶ table ──── polling ────────┘ (seldom; the guarantee)
//
// The table stays the truth. Whatever the log does not tell is found by polling
// what is not marked: what was committed while nobody read, what does not fit into
// Config.Buffer, and messages that cannot be claimed when they come, because their
// key waits, their destination is down or another relay has their partition.
//
// # The slot
//
// The slot is temporary: it is made when the Reader begins and gone when its
// connection is, so that a relay which is away holds no log on the server's disk,
// and a promoted standby simply gets a new one. The rejected alternative, a lasting
// slot, would keep the log for a relay that may never come back, and after a
// failover it is missing or at the wrong place; the table knows what is left to send
// in either case.
//
// A position is confirmed when every message before it is settled: acknowledged by
// its destination and marked, or left to polling. While nothing is outstanding the
// Reader confirms what the server has read, and writes a heartbeat into the log at
// every look, so that an idle table holds nothing while others are written.
//
// How much log the slot holds is looked at every few seconds. At half of
// Config.MostWAL, or of the server's max_slot_wal_keep_size if that is less, the
// Reader warns; at the whole it gives the slot up, polling goes on, and after a pause
// there is a new one. A slot that was ended, invalidated or cannot be made, and one
// whose heartbeats do not come back in time, is told once and then replaced likewise.
//
// # What it needs
//
// wal_level = logical; a role with the attribute REPLICATION that owns the table
// outbox, or a publication that somebody else made; one of max_replication_slots
// and one of max_wal_senders for each process; a connection to the server itself,
// as poolers know no replication. Every Reader says what is missing and where it is set.
//
// A slot is made when every transaction that is open at that moment has ended;
// polling does the work until then. A message whose writer set synchronous_commit
// to off stands in the log up to three times wal_writer_delay later than in the table.
package wal
