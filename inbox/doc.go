// Package inbox lets a consumer handle each message once although every broker
// delivers some of them twice.
//
// The consumer keeps the ids of the messages that it has handled, in its own
// database, and writes each id in the very transaction in which it does the
// message's work:
//
//	tx, err := db.BeginTx(ctx, nil)
//	…
//	fresh, err := inbox.Handle(ctx, tx, "billing", messageID, func(ctx context.Context) error {
//		_, err := tx.ExecContext(ctx, "insert into invoice …")
//		return err
//	})
//	…
//	err = tx.Commit() // and only now acknowledge to the broker
//
// The id is inserted first and the work done after it. Of two copies that are
// handled at the same moment the second waits at the unique key until the first
// has committed, and then does nothing; looking first and inserting later would
// let both pass. The consumer is part of the key, so that several consumers may
// share one table.
//
// What is done outside the database, such as a call or a mail, is not covered:
// it can happen twice when the transaction fails after it. Such work belongs
// behind an idempotency key, for which the message id will do, or into messages
// of package outbox, written in the same transaction.
//
// # Poison
//
// A Consumer wraps this up: it begins and commits the transaction, counts the
// failures of each message, and sets a message aside that failed too often, with
// its body, so that it may be acknowledged and the others go on. It is handled
// later, when a person has mended the cause.
//
// # How long ids are kept
//
// An id may go when no copy can come any more: keep it longer than the longest
// redelivery of the broker, its retention if consumers may be rewound, and the
// time in which somebody sends messages again by hand. Package outbox asks twice
// before it sends a message again that was delivered longer ago than the default
// here.
//
// The package imports nothing else of this module. It works through
// database/sql, with SQLite, PostgreSQL, and as a Dialect MariaDB and MySQL;
// inbox/postgres has it for pgx.
package inbox
