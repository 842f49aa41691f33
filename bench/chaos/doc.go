// Package chaos shows what an outbox and an inbox survive together, and lets a
// ledger decide: ringi bench chaos-outbox.
//
// Producers, relays, consumers and a broker run as processes of their own on a
// PostgreSQL server. While they work they are killed, stopped past their leases and
// continued, starved of the processor, and broker and database are taken away and
// brought back, all at moments drawn from a seed.
//
// # The ledger
//
// A producer changes a row of its service and writes the message in one unit of
// work; a change has a key and its number among the changes of the key. It writes
// into a file of its own which commits it knows of. Of those whose outcome it never
// learnt, the rows of the service tell. A consumer handles each message in a
// transaction of its own database, through the inbox, and writes an effect with the
// key and the number.
//
// In the end the faults stop and everything has to drain within a time. Then one
// more change of each key follows, delivered by a relay that was started after all
// others had ended: when it has had its effect, whatever was sent before it has been
// received too, also the copies that slow relays sent late. What the rows say then
// is the result:
//
//   - lost: changes without an effect, and commits that a producer knew of and that
//     are not there
//   - duplicateEffects: effects above one of a change, and effects of none
//   - outOfOrder: effects that came before one with a smaller number of their key
//   - stuck: messages that are not delivered
//
// member.go has what the processes do, world.go keeps them, fault.go draws and does
// the faults, ledger.go judges, chaos.go holds it together. A seed draws the same
// faults at the same moments; what they hit differs from run to run.
package chaos
