package postgres_test

import "fmt"

// fill puts finished and waiting runs into a database, as much time does, in
// the shape and size of true rows. A finished run is one of three steps: four
// rows of the log, a message that was delivered, and of every tenth a vote. Of
// those that wait a quarter each waits for a person, an event, a timer, and a
// worker that is at work.
func fill(c sqlConn, finished, waiting int) {
	c.t.Helper()
	// Run ids grow with time, as those of version 7 do; keys do not.
	const id = `(lpad(to_hex(1700000000000 + n), 12, '0') || '7' || substr(md5(n::text), 1, 3) || '8' || substr(md5(n::text), 4, 15))::uuid`
	body := func(size int) string {
		return fmt.Sprintf(`convert_to(rpad(md5(n::text), %d, md5(n::text)), 'UTF8')`, size)
	}
	c.exec(fmt.Sprintf(`
		set synchronous_commit = off;
		create temporary table filled as select n, %[3]s as id, n > %[1]d as waits, n %% 4 as what, '2026-01-01'::timestamptz + n * interval '1 s' as at from generate_series(1, %[2]d) n;
		insert into run select 1, id, 'order_fulfilment', 1, rpad('d', 64, 'd'), 'order-' || md5(n::text), rpad('i', 64, 'i'), 'carol', 'Order ' || n || ', 1000 yen', '{"team": "north"}', at, null,
			case when waits then 2 else 10 end, case when waits then (array['approval', 'event', 'timer', ''])[what + 1] else '' end, case when waits then 'approve' else '' end, case when not waits then at + interval '9 s' end from filled;
		insert into log select 1, id, s, s + 1, md5(s || '-' || n)::uuid, decode(md5(n::text) || md5(n::text), 'hex'), case when s = 1 then %[4]s else %[5]s end
			from filled, unnest(array[1, 3, 5, 7]) s where not waits or s < 4;
		insert into outbox (id, tenant, aggregatetype, aggregateid, type, payload, contenttype, seq, state, attempts, next_at, created_at, delivered_at)
			select id, 1, 'Order', 'order-' || n, 'order.fulfilled', %[6]s, 'application/json', 1, 2, 1, at, at, at from filled where not waits;
		insert into aggregate_head select 1, 'Order', 'order-' || n, 1 from filled where not waits;
		insert into audit (tenant, at, actor, kind, run, answer, data, head, part) select 1, at, 'alice', 'decide_approval', id, 'accepted', '{"step":"approve"}', 'h', 0 from filled where n %% 10 = 0;
		insert into sent_event select 1, 'event-' || n, 'paid', 'gone-' || n, '{}', at, '2199-01-01' from filled where waits;
		insert into approval select 1, id, 'approve', 'carol', at, '{"title":"Order","lanes":[{"name":"Finance","from":["group:finance"],"quorum":2}]}' from filled where waits and what = 0;
		insert into wait select 1, id, 'paid', 'paid', 'order-' || n, 1, at, '' from filled where waits and what = 1;
		insert into timer select 1, id, 'approve', 1, '2199-01-01'::timestamptz + n * interval '1 s', '2199-01-01'::timestamptz + n * interval '1 s' from filled where waits and what < 3;
		insert into task select 1, id, 0, 'charge', '', 1, 3, 3, 'payment.charge', 'default', at, null, null, 1e15, 1e15, false, 0, 0, 1, 3 << 16 | 1, true, 'worker-1', '2199-01-01', '2199-01-01', 0, '2199-01-01' from filled where waits and what = 3;
		drop table filled`, finished, finished+waiting, id, body(w3StartBody), body(w3NextBody), body(200)))
}
