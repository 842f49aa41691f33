-- The tables of ringi. Times are integers: microseconds since 1970 in UTC, 0
-- is none. Durations are nanoseconds. Run ids are the 16 bytes of the UUID.
-- A new version adds a file beside this one and never changes one.

create table run (
  tenant       integer not null,
  id           blob    not null,
  name         text    not null,
  version      integer not null,
  digest       text    not null,
  key          text,
  input_digest text    not null,
  requester    text    not null,
  title        text    not null,
  labels       text,
  started_at   integer not null,
  repair_of    blob,
  status       integer not null,
  waits_for    text    not null,
  waits_step   text    not null,
  ended_at     integer not null
) strict;
create unique index run_id on run (tenant, id);
create unique index run_key on run (tenant, name, key) where key is not null;
create index run_open on run (tenant, status, id) where status < 10;
create index run_repair on run (tenant, repair_of) where repair_of is not null;

-- One row per transition, never updated. last is the sequence of its last
-- event, head the chain after it. A rowid table with an index beside it only
-- appends to pages; without rowid it costs a fifth more.
create table log (
  tenant    integer not null,
  run       blob    not null,
  seq       integer not null,
  last      integer not null,
  commit_id blob    not null,
  head      blob    not null,
  body      blob    not null
) strict;
create unique index log_seq on log (tenant, run, seq);

create table snapshot (
  tenant integer not null,
  run    blob    not null,
  seq    integer not null,
  format integer not null,
  body   blob    not null
) strict;
create unique index snapshot_run on snapshot (tenant, run);

-- One row per open lane of a run, updated in place. Only what finds a task is
-- in an index. check_at may be early, never late; a sweep alone moves it later.
create table task (
  tenant      integer not null,
  run         blob    not null,
  lane        integer not null,
  step        text    not null,
  direction   text    not null,
  attempt     integer not null,
  seq         integer not null,
  input_seq   integer not null,
  activity    text    not null,
  queue       text    not null,
  ready_at    integer not null,
  give_up_at  integer not null,
  total_at    integer not null,
  timeout     integer not null,
  heartbeat   integer not null,
  begin       integer not null,
  begun       integer not null,
  held        integer not null, -- 1 the run is paused, 2 only this attempt is let finish
  state       integer not null, -- 0 ready, 1 leased
  token       integer not null,
  confirmed   integer not null,
  worker      text    not null,
  lease_end   integer not null,
  attempt_end integer not null,
  lapsed      integer not null,
  check_at    integer not null,
  primary key (tenant, run, lane)
) strict, without rowid;
create index task_ready on task (queue, tenant, ready_at) where state = 0 and held = 0;
create index task_check on task (check_at);

-- due_at is the fire time, or until when a node has claimed the timer.
create table timer (
  tenant     integer not null,
  run        blob    not null,
  id         text    not null,
  generation integer not null,
  fire_at    integer not null,
  due_at     integer not null,
  primary key (tenant, run, id)
) strict, without rowid;
create index timer_due on timer (due_at);

create table wait (
  tenant     integer not null,
  run        blob    not null,
  step       text    not null,
  name       text    not null,
  key        text    not null,
  generation integer not null,
  opened_at  integer not null,
  not_event  text    not null,
  primary key (tenant, run, step)
) strict, without rowid;
create index wait_event on wait (name, key, tenant);

create table sent_event (
  tenant     integer not null,
  name       text    not null,
  key        text    not null,
  id         text    not null,
  data       blob,
  sent_at    integer not null,
  keep_until integer not null,
  primary key (tenant, name, key, id)
) strict, without rowid;
create index sent_event_keep on sent_event (keep_until);

create table approval (
  tenant    integer not null,
  run       blob    not null,
  step      text    not null,
  requester text    not null,
  opened_at integer not null,
  body      text    not null, -- JSON
  primary key (tenant, run, step)
) strict, without rowid;
create index approval_opened on approval (tenant, opened_at, run, step);

create table incident (
  tenant integer not null,
  run    blob    not null,
  id     integer not null,
  since  integer not null,
  body   text    not null, -- JSON
  primary key (tenant, run, id)
) strict, without rowid;
create index incident_since on incident (tenant, since, run, id);

create table definition (
  tenant       integer not null,
  name         text    not null,
  version      integer not null,
  digest       text    not null,
  description  text    not null,
  source       blob    not null,
  published_at integer not null,
  published_by text    not null
) strict;
create unique index definition_version on definition (tenant, name, version);
create unique index definition_digest on definition (tenant, name, digest);

-- n is the order of writing and no number of the trail: a sealer gives those.
-- commit_id and part tell a repeated write from a new one.
create table audit (
  n         integer primary key autoincrement,
  tenant    integer not null,
  at        integer not null,
  actor     text    not null,
  kind      text    not null,
  run       blob,
  answer    text    not null,
  data      blob,
  head      blob,
  commit_id blob,
  part      integer not null
) strict;
create unique index audit_commit on audit (commit_id, part) where commit_id is not null;
create index audit_run on audit (tenant, run, n) where run is not null;
