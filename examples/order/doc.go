// Package order is the order process that `ringi demo` and `ringi dev` run: its
// definition, the four services that it calls, the activities that call them,
// a hundred orders with their faults and what must come of them, and the check
// of the books afterwards. It knows nothing of the engine: it imports no other
// package of this module, so what it says about the engine is said from outside.
//
// # The services
//
// Stock, payment, shipping and mail are HTTP servers on loopback (RunService).
// Each has a SQLite file of its own with one table:
//
//	calls(op, key, order_id, effect, at)
//
// A row is one call that the service heard. effect is 1 when the call changed
// the world and 0 when it was a repeat, a refusal, a question or a call that a
// fault swallowed. The row is committed before the answer leaves, so the table
// is the truth about effects, whoever was killed meanwhile. Each service has
// the character that its step declares to the engine:
//
//	stock     reserve, release        idempotent by key
//	payment   charge, find, refund    charging twice with one key charges twice;
//	                                  find tells what became of a key; refund
//	                                  is idempotent by the key of the charge
//	shipping  book, cancel, label     book and cancel idempotent, label only reads
//	mail      send                    sending twice sends two mails
//
// An undo (release, refund, cancel) carries the key of what it undoes. An undo
// whose forward call never came is answered well and has no effect, and from
// then on the forward call is refused if it still comes.
//
// # The orders
//
// orders.jsonl holds one order a line:
//
//	{"order":{…}, "faults":[{"kind":…,"times":…}], "people":[{"who":…,"vote":…}],
//	 "expect":{"status":…, "books":{"charged","refunded","reserved","released","shipped","mails"}}}
//
// order is the input of the run, to the byte. faults are acted out by the
// services themselves, except cancel_at_approval, which whoever drives the demo
// acts out by cancelling the run while it waits for its approval. people are
// the votes to cast, in order; a line without votes never asks for one. The
// first 25 lines hold every kind of order there is, so `--orders 25` is a small
// demo that leaves nothing out.
//
// expect.books counts calls with effect: charged is charge, refunded is refund,
// reserved is reserve, released is release, shipped is book, mails is send. A
// booking that was cancelled still counts as shipped; that it was cancelled is
// checked apart (an order that did not complete has as many cancel as book).
// The numbers are exact with one exception: mails is the number at most. A
// worker that is killed between its permission to send and the sending leaves
// an outcome that nobody can know, and the process says that a second mail is
// worse than none. So an order may have fewer mails than expected if, and only
// if, runs.json names its step as one whose outcome stayed unknown.
//
// # The check
//
// Verify reads stock.db, payment.db, shipping.db, mail.db, orders.jsonl and
// runs.json in one directory and nothing else. The sums that it prints can be
// had without it:
//
//	sqlite3 stock.db    "SELECT op, SUM(effect) FROM calls GROUP BY op"
//	sqlite3 payment.db  "SELECT op, SUM(effect) FROM calls GROUP BY op"
//	sqlite3 shipping.db "SELECT op, SUM(effect) FROM calls GROUP BY op"
//	sqlite3 mail.db     "SELECT op, SUM(effect) FROM calls GROUP BY op"
//
// This is empty in each of them unless an effect happened twice:
//
//	SELECT op, key, SUM(effect) FROM calls GROUP BY op, key HAVING SUM(effect) > 1
//
// And this is what the orders say that the sums must be:
//
//	sqlite3 :memory: "SELECT sum(value->>'$.expect.books.charged'), sum(value->>'$.expect.books.refunded'),
//	  sum(value->>'$.expect.books.reserved'), sum(value->>'$.expect.books.released'),
//	  sum(value->>'$.expect.books.shipped'), sum(value->>'$.expect.books.mails')
//	  FROM json_each('[' || replace(rtrim(CAST(readfile('orders.jsonl') AS TEXT), char(10)), char(10), ',') || ']')"
package order
