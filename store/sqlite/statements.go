package sqlite

// statement names a statement that the writer keeps prepared.
type statement int

const (
	stmtBegin statement = iota
	stmtCommit
	stmtRollback
	stmtIncarnation
	stmtLogInsert
	stmtLogEnd
	stmtLogCommit
	stmtLogHolding
	stmtRunInsert
	stmtRunUpdate
	stmtRunName
	stmtKeyHolder
	stmtTaskPut
	stmtTaskNext
	stmtTaskNextCheck
	stmtTaskKeep
	stmtTaskBegun
	stmtTaskDelete
	stmtTaskRead
	stmtTaskOfToken
	stmtTaskExtend
	stmtTaskExtendCheck
	stmtTaskLapse
	stmtTaskCheck
	stmtReadyTenant
	stmtReadyCount
	stmtClaim
	stmtClaimOne
	stmtTimerPut
	stmtTimerDelete
	stmtTimerDrop
	stmtTimersDue
	stmtTimerClaim
	stmtWaitPut
	stmtWaitDelete
	stmtApprovalPut
	stmtApprovalDelete
	stmtIncidentPut
	stmtIncidentDelete
	stmtSnapshotPut
	stmtAuditInsert
	stmtDefinitionOfDigest
	stmtDefinitionInsert
	stmtEventOfID
	stmtEventInsert
	stmtEventExpire
	statements // how many there are
)

// claimable are the tasks of a queue that may be handed out: the partial
// index's condition, an activity filter (null: all), and a token left.
const claimable = ` from task indexed by task_ready where state = 0 and held = 0 and queue = ? and tenant = ? and ready_at <= ?
	and token - (seq << 16) < 65535 and (? is null or activity in (select value from json_each(?)))`

// handOut leases tasks.
const handOut = `update task set state = 1, token = token + 1, confirmed = 0, worker = ?, lease_end = ?,
		attempt_end = case when total_at > 0 then min(total_at, ? + timeout / 1000) else ? + timeout / 1000 end,
		check_at = min(check_at, ?, ? + timeout / 1000, case when total_at > 0 then total_at else check_at end)`

// leaseColumns sets the columns that leaseArgs fills.
const leaseColumns = `state = ?, token = ?, confirmed = ?, worker = ?, lease_end = ?, attempt_end = ?, lapsed = ?`

// rowColumns sets the columns that taskArgs fills.
const rowColumns = `step = ?, direction = ?, attempt = ?, seq = ?, input_seq = ?, activity = ?, queue = ?, ready_at = ?, give_up_at = ?,
	total_at = ?, timeout = ?, heartbeat = ?, begin = ?, begun = ?, held = ?`

// taskWhere finds the task of a lane, under a token unless that is null.
const taskWhere = ` where tenant = ? and run = ? and lane = ? and (? is null or token = ?)`

// statementText are the texts of the statements.
// constant: only read
var statementText = [statements]string{
	stmtBegin:       `begin immediate`,
	stmtCommit:      `commit`,
	stmtRollback:    `rollback`,
	stmtIncarnation: `select value from meta where key = 'incarnation'`,

	// The run must stand at First-1 with the head Prev; nobody may have been there first.
	stmtLogInsert: `insert into log (tenant, run, seq, last, commit_id, head, body) select ?, ?, ?, ?, ?, ?, ?
		where (select last, head from log where tenant = ? and run = ? and seq < ? order by seq desc limit 1) is (?, ?)
		on conflict do nothing`,
	stmtLogEnd:     `select last, head from log where tenant = ? and run = ? order by seq desc limit 1`,
	stmtLogCommit:  `select commit_id from log where tenant = ? and run = ? and seq = ?`,
	stmtLogHolding: `select seq, body from log where tenant = ? and run = ? and seq <= ? order by seq desc limit 1`,

	stmtRunInsert: `insert into run (tenant, id, name, version, digest, key, input_digest, requester, title, labels, started_at, repair_of,
		status, waits_for, waits_step, ended_at) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict do nothing`,
	stmtRunUpdate: `update run set status = ?, waits_for = ?, waits_step = ?, ended_at = ? where tenant = ? and id = ?`,
	stmtRunName:   `select name, version from run where tenant = ? and id = ?`,
	stmtKeyHolder: `select id, version, status, input_digest, (select last from log where log.tenant = run.tenant and log.run = run.id
		order by seq desc limit 1) from run where tenant = ? and name = ? and key = ?`,

	stmtTaskPut: `insert into task (` + taskColumns + `) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		on conflict do update set step = excluded.step, direction = excluded.direction, attempt = excluded.attempt, seq = excluded.seq,
		input_seq = excluded.input_seq, activity = excluded.activity, queue = excluded.queue, ready_at = excluded.ready_at,
		give_up_at = excluded.give_up_at, total_at = excluded.total_at, timeout = excluded.timeout, heartbeat = excluded.heartbeat,
		begin = excluded.begin, begun = excluded.begun, held = excluded.held, state = excluded.state, token = excluded.token,
		confirmed = excluded.confirmed, worker = excluded.worker, lease_end = excluded.lease_end, attempt_end = excluded.attempt_end,
		lapsed = excluded.lapsed, check_at = min(check_at, excluded.check_at)`,
	// The check time that stands is early enough in most cases; then its index is not touched.
	stmtTaskNext:      `update task set ` + rowColumns + `, ` + leaseColumns + taskWhere + ` and check_at <= ?`,
	stmtTaskNextCheck: `update task set ` + rowColumns + `, ` + leaseColumns + `, check_at = min(check_at, ?)` + taskWhere,
	stmtTaskKeep: `update task set ` + rowColumns + `, check_at = min(check_at, case when state = 0 and ? > 0 then ? else check_at end)` +
		taskWhere,
	stmtTaskBegun: `update task set ` + rowColumns + `, state = 1, confirmed = 1, lapsed = 0, lease_end = ?,
		check_at = min(check_at, ?, attempt_end)` + taskWhere,
	stmtTaskDelete: `delete from task` + taskWhere,
	stmtTaskRead:   `select ` + taskColumns + ` from task where tenant = ? and run = ? and lane = ?`,
	stmtTaskOfToken: `select ` + taskColumns + ` from task
		where tenant = ? and run = ? and step = ? and direction = ? and token = ? and token <> seq << 16`,
	stmtTaskExtend:      `update task set ` + leaseColumns + ` where tenant = ? and run = ? and lane = ?`,
	stmtTaskExtendCheck: `update task set ` + leaseColumns + `, check_at = ? where tenant = ? and run = ? and lane = ?`,
	stmtTaskLapse: `update task set state = 0, worker = '', lease_end = 0, lapsed = lapsed + 1 - ?, token = token - ?, ready_at = ?,
		check_at = case when give_up_at = 0 then ? else give_up_at end
		where tenant = ? and run = ? and lane = ? and token = ? and state = 1 and confirmed = 0 and held < 2 and lease_end = ?`,
	stmtTaskCheck: `update task set check_at = ? where tenant = ? and run = ? and lane = ? and token = ? and (? = 0 or lease_end = ?)`,

	stmtReadyTenant: `select tenant from task indexed by task_ready where state = 0 and held = 0 and queue = ? and tenant > ? order by tenant limit 1`,
	stmtReadyCount:  `select count(*) from (select 1` + claimable + ` limit ?)`,
	stmtClaim:       handOut + ` where (tenant, run, lane) in (select tenant, run, lane` + claimable + ` order by ready_at, run, lane limit ?) returning ` + taskColumns,
	stmtClaimOne: handOut + ` where tenant = ? and run = ? and lane = ? and state = 0 and held = 0 and queue = ? and ready_at <= ?
		and token - (seq << 16) < 65535 returning ` + taskColumns,

	stmtTimerPut: `insert into timer (tenant, run, id, generation, fire_at, due_at) values (?, ?, ?, ?, ?, ?)
		on conflict do update set generation = excluded.generation, fire_at = excluded.fire_at, due_at = excluded.due_at`,
	stmtTimerDelete: `delete from timer where tenant = ? and run = ? and id = ?`,
	stmtTimerDrop:   `delete from timer where tenant = ? and run = ? and id = ? and generation = ?`,
	stmtTimersDue:   `select tenant, run, id, generation, fire_at from timer where due_at <= ? order by due_at, tenant, run, id limit ?`,
	stmtTimerClaim:  `update timer set due_at = ? where tenant = ? and run = ? and id = ?`,

	stmtWaitPut: `insert into wait (tenant, run, step, name, key, generation, opened_at, not_event) values (?, ?, ?, ?, ?, ?, ?, ?)
		on conflict do update set name = excluded.name, key = excluded.key, generation = excluded.generation,
		opened_at = excluded.opened_at, not_event = excluded.not_event`,
	stmtWaitDelete: `delete from wait where tenant = ? and run = ? and step = ?`,

	stmtApprovalPut: `insert into approval (tenant, run, step, requester, opened_at, body) values (?, ?, ?, ?, ?, ?)
		on conflict do update set requester = excluded.requester, opened_at = excluded.opened_at, body = excluded.body`,
	stmtApprovalDelete: `delete from approval where tenant = ? and run = ? and step = ?`,

	stmtIncidentPut: `insert into incident (tenant, run, id, since, body) values (?, ?, ?, ?, ?)
		on conflict do update set since = excluded.since, body = excluded.body`,
	stmtIncidentDelete: `delete from incident where tenant = ? and run = ? and id = ?`,

	stmtSnapshotPut: `insert into snapshot (tenant, run, seq, format, body) values (?, ?, ?, ?, ?)
		on conflict do update set seq = excluded.seq, format = excluded.format, body = excluded.body where excluded.seq > snapshot.seq`,

	stmtAuditInsert: `insert into audit (tenant, at, actor, kind, run, answer, data, head, commit_id, part)
		values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict do nothing`,

	stmtDefinitionOfDigest: `select version from definition where tenant = ? and name = ? and digest = ?`,
	stmtDefinitionInsert: `insert into definition (tenant, name, version, digest, description, source, published_at, published_by)
		select ?, ?, 1 + (select coalesce(max(version), 0) from definition where tenant = ? and name = ?), ?, ?, ?, ?, ?`,

	stmtEventOfID:   `select id, name, key, data, sent_at from sent_event where tenant = ? and id = ?`,
	stmtEventInsert: `insert into sent_event (tenant, name, key, id, data, sent_at, keep_until) values (?, ?, ?, ?, ?, ?, ?) on conflict do nothing`,
	stmtEventExpire: `delete from sent_event where (tenant, name, key, id) in (
		select e.tenant, e.name, e.key, e.id from sent_event e where e.keep_until <= ?
		and not exists (select 1 from wait w where w.name = e.name and w.key = e.key and w.tenant = e.tenant and ` + serves + `)
		order by e.sent_at, e.id limit ?)`,
}

// serves is the condition under which event e may be given to wait w: it was
// open when the event was sent, however late it is now, or opened while the
// event was kept; and the event did not start the run.
const serves = `e.id <> w.not_event and (w.opened_at <= e.sent_at or w.opened_at < e.keep_until)`
