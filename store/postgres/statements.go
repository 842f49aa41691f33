package postgres

// The texts of a commit, in the order in which they are sent. A condition is an
// assertion: a division by zero unless the number of rows is the expected one.

// textIdentity says which database this is and what time it has. The system
// identifier changes with a new cluster, the timeline with a failover or a
// restore to a point in time, the number of the table with a restore from a
// dump. It fails on a standby. A commit is never made without its flush to the
// disk; from version 17 on there is a time-out that also ends a message whose
// end never comes.
const textIdentity statement = `select (select system_identifier from pg_control_system()),
	substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8), 'log'::regclass::oid::bigint, clock_timestamp(),
	set_config('synchronous_commit', case current_setting('synchronous_commit') when 'off' then 'on' else current_setting('synchronous_commit') end, true),
	case when current_setting('server_version_num')::int >= 170000 then set_config('transaction_timeout', $1::text, true) end`

// The log. The run must stand at the sequence before the first event with the
// head that the write was decided on; the primary key lets one of several
// writers of a sequence win.
// constant: only read
var (
	logRows = `insert into log (tenant, run, seq, last, commit_id, head, body)
		select w.tenant, w.run, w.seq, w.last, w.commit_id, w.head, w.body
		from ` + unnest("bigint uuid bigint bigint uuid bytea bytea bytea", "tenant run seq last commit_id head body prev") + `
		where w.seq = 1 or (select p.last = w.seq - 1 and p.head = w.prev from log p
			where p.tenant = w.tenant and p.run = w.run and p.seq < w.seq order by p.seq desc limit 1)`
	textLog     = statement(`with i as (` + logRows + ` returning 1) select 1 / (count(*) = $9::bigint)::int from i`)
	textLogTry  = statement(logRows + ` on conflict do nothing returning tenant, run`)
	textLogDone = statement(`select w.tenant, w.run from ` + unnest("bigint uuid bigint uuid", "tenant run seq commit_id") + `
		join log l on l.tenant = w.tenant and l.run = w.run and l.seq = w.seq and l.commit_id = w.commit_id`)
	textLogTake = statement(`delete from log l using ` + unnest("bigint uuid bigint", "tenant run seq") + `
		where l.tenant = w.tenant and l.run = w.run and l.seq = w.seq`)
	// stands tells for claims whether their runs stand where they were read.
	stands = `from ` + unnest("bigint uuid bigint bytea", "tenant run seq prev") + `
		where coalesce((select p.last = w.seq - 1 and p.head = w.prev from log p
			where p.tenant = w.tenant and p.run = w.run order by p.seq desc limit 1), w.seq = 1)`
	textStands    = statement(`select 1 / (count(*) = $5::bigint)::int ` + stands)
	textStandsTry = statement(`select w.tenant, w.run ` + stands)
)

// The list rows.
// constant: only read
var (
	runRows = `insert into run (tenant, id, name, version, digest, key, input_digest, requester, title, labels, started_at, repair_of,
			status, waits_for, waits_step, ended_at)
		select w.tenant, w.id, w.name, w.version, w.digest, w.key, w.input_digest, w.requester, w.title, w.labels::jsonb, w.started_at, w.repair_of,
			w.status, w.waits_for, w.waits_step, w.ended_at
		from ` + unnest("bigint uuid text bigint text text text text text text timestamptz uuid bigint text text timestamptz",
		"tenant id name version digest key input_digest requester title labels started_at repair_of status waits_for waits_step ended_at")
	textRun       = statement(runRows)
	textRunTry    = statement(runRows + ` on conflict do nothing returning tenant, id`)
	textRunTake   = statement(`delete from run r using ` + unnest("bigint uuid", "tenant run") + ` where r.tenant = w.tenant and r.id = w.run`)
	textKeyHolder = statement(`select w.n, r.id, r.version, r.status, r.input_digest,
			(select l.last from log l where l.tenant = r.tenant and l.run = r.id order by l.seq desc limit 1)
		from ` + unnest("bigint bigint text text", "n tenant name key") + `
		join run r on r.tenant = w.tenant and r.name = w.name and r.key = w.key`)
	textRunUpdate = statement(`update run r set status = w.status, waits_for = w.waits_for, waits_step = w.waits_step, ended_at = w.ended_at
		from ` + unnest("bigint uuid bigint text text timestamptz", "tenant run status waits_for waits_step ended_at") + `
		where r.tenant = w.tenant and r.id = w.run`)
)

// The tasks. how says what a change does with the lease: 0 begins a new attempt
// with the lease that is given, 1 keeps it, 2 confirms it until lease_end. need
// is the token that must be current; null is any.
// constant: only read
var (
	taskRows = unnest("bigint uuid bigint bigint bigint text text bigint bigint bigint text text timestamptz timestamptz timestamptz bigint bigint bool bigint bigint bigint bigint text timestamptz timestamptz timestamptz timestamptz",
		"tenant run lane need how step direction attempt seq input_seq activity queue ready_at give_up_at total_at timeout heartbeat begin begun held state token worker lease_end attempt_end check_at due_at")
	taskChange = `update task t set step = w.step, direction = w.direction, attempt = w.attempt, seq = w.seq, input_seq = w.input_seq,
			activity = w.activity, queue = w.queue, ready_at = w.ready_at, give_up_at = w.give_up_at, total_at = w.total_at,
			timeout = w.timeout, heartbeat = w.heartbeat, begin = w.begin, begun = w.begun, held = w.held,
			state = case w.how when 0 then w.state when 1 then t.state else 1 end,
			token = case w.how when 0 then w.token else t.token end,
			confirmed = case w.how when 0 then false when 1 then t.confirmed else true end,
			worker = case w.how when 0 then w.worker else t.worker end,
			lease_end = case w.how when 1 then t.lease_end else w.lease_end end,
			attempt_end = case w.how when 0 then w.attempt_end else t.attempt_end end,
			lapsed = case w.how when 1 then t.lapsed else 0 end,
			due_at = case when w.held = 0 and (w.how = 0 and w.state = 0 or w.how = 1 and t.state = 0) then ` + placed("w.due_at", 28) + ` else t.due_at end,
			check_at = least(t.check_at, case w.how when 0 then ` + placed("w.check_at", 28) + ` when 1 then case when t.state = 0 then ` + placed("w.check_at", 28) + ` end
				else ` + placed("least(w.lease_end, t.attempt_end)", 28) + ` end)
		from ` + taskRows + `
		where t.tenant = w.tenant and t.run = w.run and t.lane = w.lane and (w.need is null or t.token = w.need)`
	textTaskChange    = statement(`with u as (` + taskChange + ` returning 1) select 1 / (count(*) = $29::bigint)::int from u`)
	textTaskChangeTry = statement(taskChange + ` returning t.tenant, t.run, t.lane`)
	textTaskPut       = statement(`insert into task as t (tenant, run, lane, step, direction, attempt, seq, input_seq, activity, queue, ready_at, give_up_at, total_at,
			timeout, heartbeat, begin, begun, held, state, token, confirmed, worker, lease_end, attempt_end, lapsed, check_at, due_at)
		select w.tenant, w.run, w.lane, w.step, w.direction, w.attempt, w.seq, w.input_seq, w.activity, w.queue, w.ready_at, w.give_up_at, w.total_at,
			w.timeout, w.heartbeat, w.begin, w.begun, w.held, w.state, w.token, false, w.worker, w.lease_end, w.attempt_end, 0, ` + placed("w.check_at", 28) + `, ` + placed("w.due_at", 28) + `
		from ` + taskRows + `
		on conflict (tenant, run, lane) do update set step = excluded.step, direction = excluded.direction, attempt = excluded.attempt,
			seq = excluded.seq, input_seq = excluded.input_seq, activity = excluded.activity, queue = excluded.queue, ready_at = excluded.ready_at,
			give_up_at = excluded.give_up_at, total_at = excluded.total_at, timeout = excluded.timeout, heartbeat = excluded.heartbeat,
			begin = excluded.begin, begun = excluded.begun, held = excluded.held, state = excluded.state, token = excluded.token,
			confirmed = false, worker = excluded.worker, lease_end = excluded.lease_end, attempt_end = excluded.attempt_end, lapsed = 0,
			due_at = case when excluded.state = 0 and excluded.held = 0 then excluded.due_at else t.due_at end,
			check_at = least(t.check_at, excluded.check_at)`)
	textTaskDelete = statement(`with d as (delete from task t using ` + unnest("bigint uuid bigint bigint", "tenant run lane need") + `
			where t.tenant = w.tenant and t.run = w.run and t.lane = w.lane and (w.need is null or t.token = w.need) returning w.need)
		select 1 / (count(need) = $5::bigint)::int from d`)
	// textNeeds locks what it looks at, so that it still holds at the commit. The
	// subquery keeps the order of the rows; see textBeat for why that matters.
	textNeeds = statement(`with n as materialized (
			select 1 from ` + unnest("bigint uuid bigint bigint bigint timestamptz", "tenant run lane token how lease_end") + `
			cross join lateral (select 1 from task t where t.tenant = w.tenant and t.run = w.run and t.lane = w.lane and t.token = w.token
				and case w.how when 0 then true when 1 then t.state = 0 and t.token = t.seq << 16 when 2 then t.state = 0
					when 3 then t.state = 1 and t.lease_end = w.lease_end else false end
				for no key update) held)
		select 1 / (count(*) = $7::bigint)::int from n`)
	textNeedsTry = statement(`select t.* from ` + unnest("bigint uuid bigint", "tenant run lane") + `
		cross join lateral (select ` + taskColumns + ` from task t where t.tenant = w.tenant and t.run = w.run and t.lane = w.lane for no key update) t`)
)

// Everything else that stands beside the log.
// constant: only read
var (
	textTimerDelete = statement(`delete from timer t using ` + unnest("bigint uuid text", "tenant run id") + `
		where t.tenant = w.tenant and t.run = w.run and t.id = w.id`)
	textTimerPut = statement(`insert into timer (tenant, run, id, generation, fire_at, due_at)
		select w.tenant, w.run, w.id, w.generation, w.fire_at, ` + placed("w.due_at", 7) + `
		from ` + unnest("bigint uuid text bigint timestamptz timestamptz", "tenant run id generation fire_at due_at") + `
		on conflict (tenant, run, id) do update set generation = excluded.generation, fire_at = excluded.fire_at, due_at = excluded.due_at`)
	textWaitDelete = statement(`delete from wait t using ` + unnest("bigint uuid text", "tenant run step") + `
		where t.tenant = w.tenant and t.run = w.run and t.step = w.step`)
	textWaitPut = statement(`insert into wait (tenant, run, step, name, key, generation, opened_at, not_event)
		select * from ` + unnest("bigint uuid text text text bigint timestamptz text", "tenant run step name key generation opened_at not_event") + `
		on conflict (tenant, run, step) do update set name = excluded.name, key = excluded.key, generation = excluded.generation,
			opened_at = excluded.opened_at, not_event = excluded.not_event`)
	textApprovalDelete = statement(`delete from approval t using ` + unnest("bigint uuid text", "tenant run step") + `
		where t.tenant = w.tenant and t.run = w.run and t.step = w.step`)
	textApprovalPut = statement(`insert into approval (tenant, run, step, requester, opened_at, body)
		select w.tenant, w.run, w.step, w.requester, w.opened_at, w.body::json
		from ` + unnest("bigint uuid text text timestamptz text", "tenant run step requester opened_at body") + `
		on conflict (tenant, run, step) do update set requester = excluded.requester, opened_at = excluded.opened_at, body = excluded.body`)
	textIncidentDelete = statement(`delete from incident t using ` + unnest("bigint uuid bigint", "tenant run id") + `
		where t.tenant = w.tenant and t.run = w.run and t.id = w.id`)
	textIncidentPut = statement(`insert into incident (tenant, run, id, since, body)
		select w.tenant, w.run, w.id, w.since, w.body::json from ` + unnest("bigint uuid bigint timestamptz text", "tenant run id since body") + `
		on conflict (tenant, run, id) do update set since = excluded.since, body = excluded.body`)
	textSnapshotPut = statement(`insert into snapshot as s (tenant, run, seq, format, body)
		select * from ` + unnest("bigint uuid bigint bigint bytea", "tenant run seq format body") + `
		on conflict (tenant, run) do update set seq = excluded.seq, format = excluded.format, body = excluded.body where excluded.seq > s.seq`)
	textAudit = statement(`insert into audit (tenant, at, actor, kind, run, answer, data, head, commit_id, part)
		select * from ` + unnest("bigint timestamptz text text uuid text bytea bytea uuid bigint", "tenant at actor kind run answer data head commit_id part") + `
		on conflict (commit_id, part) where commit_id is not null do nothing`)
	textQueue = statement(`insert into queue (name, tenant) select * from ` + unnest("text bigint", "name tenant") + ` on conflict do nothing`)
	// textMessages numbers the messages of an aggregate in the order of commits:
	// the row of its head is locked until then. back counts from the last one.
	textMessages = statement(`with h as (insert into aggregate_head as a (tenant, aggregatetype, aggregateid, seq)
			select * from unnest($12::bigint[], $13::text[], $14::text[], $15::bigint[])
			on conflict (tenant, aggregatetype, aggregateid) do update set seq = a.seq + excluded.seq
			returning a.tenant, a.aggregatetype, a.aggregateid, a.seq)
		insert into outbox (id, tenant, destination, aggregatetype, aggregateid, type, payload, contenttype, headers, seq, next_at, created_at)
		select w.id, w.tenant, w.destination, w.aggregatetype, w.aggregateid, w.type, w.payload, w.contenttype, w.headers::jsonb,
			coalesce(h.seq - w.back, 0), w.at, w.at
		from ` + unnest("uuid bigint text text text text bytea text text timestamptz bigint",
		"id tenant destination aggregatetype aggregateid type payload contenttype headers at back") + `
		left join h on w.back is not null and h.tenant = w.tenant and h.aggregatetype = w.aggregatetype and h.aggregateid = w.aggregateid`)
)
