-- The tables of ringi. Times are timestamptz, null is none; durations are
-- nanoseconds. A new version adds a file beside this one and never changes one.
-- Texts that are in an index are compared as bytes: the order of a language may
-- change with the operating system, and breaks every index that relies on it.
--
-- Rows that are updated in place have room on their page for the next version
-- (fillfactor) and their changing columns in no index, so that an update
-- touches no index. Tables that churn are vacuumed early: by default a fifth
-- of a table may be dead rows before anything happens.

create table run (
  tenant       integer     not null,
  id           uuid        not null,
  name         text collate "C" not null,
  version      integer     not null,
  digest       text        not null,
  key          text collate "C",
  input_digest text        not null,
  requester    text        not null,
  title        text        not null,
  labels       jsonb,
  started_at   timestamptz not null,
  repair_of    uuid,
  status       smallint    not null,
  waits_for    text        not null,
  waits_step   text        not null,
  ended_at     timestamptz,
  primary key (tenant, id)
) with (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);
create unique index run_key on run (tenant, name, key) where key is not null;
create index run_open on run (tenant, status, id) where status < 10;
create index run_repair on run (tenant, repair_of) where repair_of is not null;

-- One row per transition, never updated. last is the sequence of its last
-- event, head the chain after it. Bodies are not compressed: small ones stay
-- in the row, and sealed ones would not shrink.
create table log (
  tenant    integer not null,
  run       uuid    not null,
  seq       bigint  not null,
  last      bigint  not null,
  commit_id uuid    not null,
  head      bytea   not null,
  body      bytea   not null,
  primary key (tenant, run, seq)
) with (autovacuum_vacuum_insert_scale_factor = 0.1);
alter table log alter column body set storage external;

create table snapshot (
  tenant integer not null,
  run    uuid    not null,
  seq    bigint  not null,
  format integer not null,
  body   bytea   not null,
  primary key (tenant, run)
) with (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.05, toast.autovacuum_vacuum_scale_factor = 0.05);
alter table snapshot alter column body set storage external;

-- One row per open lane of a run, updated in place. ready_at is what the run's
-- state says; due_at orders the ready tasks of a queue and is set whenever a
-- row becomes ready, so that no row ever appears below where claims begin to
-- look. check_at may be early, never late; a sweep alone moves it later. A
-- heartbeat changes no column that is in an index or in its condition.
create table task (
  tenant      integer     not null,
  run         uuid        not null,
  lane        integer     not null,
  step        text        not null,
  direction   text        not null,
  attempt     integer     not null,
  seq         bigint      not null,
  input_seq   bigint      not null,
  activity    text        not null,
  queue       text collate "C" not null,
  ready_at    timestamptz,
  give_up_at  timestamptz,
  total_at    timestamptz,
  timeout     bigint      not null,
  heartbeat   bigint      not null,
  begin       boolean     not null,
  begun       bigint      not null,
  held        smallint    not null, -- 1 the run is paused, 2 only this attempt is let finish
  state       smallint    not null, -- 0 ready, 1 leased
  token       bigint      not null,
  confirmed   boolean     not null,
  worker      text        not null,
  lease_end   timestamptz,
  attempt_end timestamptz,
  lapsed      integer     not null,
  check_at    timestamptz,
  due_at      timestamptz,
  primary key (tenant, run, lane)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500, autovacuum_analyze_scale_factor = 0.05);
create index task_ready on task (queue, tenant, due_at) where state = 0 and held = 0;
create index task_check on task (check_at);

-- The tenants that ever had a task in a queue, so that a claim for all of them
-- need not look for them among the tasks.
create table queue (
  name   text collate "C" not null,
  tenant integer not null,
  primary key (name, tenant)
);

-- due_at is the fire time, or until when a node has claimed the timer.
create table timer (
  tenant     integer     not null,
  run        uuid        not null,
  id         text collate "C" not null,
  generation integer     not null,
  fire_at    timestamptz not null,
  due_at     timestamptz not null,
  primary key (tenant, run, id)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
create index timer_due on timer (due_at);

create table wait (
  tenant     integer     not null,
  run        uuid        not null,
  step       text collate "C" not null,
  name       text collate "C" not null,
  key        text collate "C" not null,
  generation bigint      not null,
  opened_at  timestamptz not null,
  not_event  text        not null,
  primary key (tenant, run, step)
) with (autovacuum_vacuum_scale_factor = 0.05);
create index wait_event on wait (name, key, tenant);

create table sent_event (
  tenant     integer     not null,
  id         text collate "C" not null,
  name       text collate "C" not null,
  key        text collate "C" not null,
  data       bytea,
  sent_at    timestamptz not null,
  keep_until timestamptz not null,
  primary key (tenant, id)
) with (autovacuum_vacuum_scale_factor = 0.05);
create index sent_event_key on sent_event (name, key, tenant, sent_at);
create index sent_event_keep on sent_event (keep_until);

create table approval (
  tenant    integer     not null,
  run       uuid        not null,
  step      text collate "C" not null,
  requester text        not null,
  opened_at timestamptz not null,
  body      json        not null,
  primary key (tenant, run, step)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
create index approval_opened on approval (tenant, opened_at, run, step);

create table incident (
  tenant integer     not null,
  run    uuid        not null,
  id     bigint      not null,
  since  timestamptz not null,
  body   json        not null,
  primary key (tenant, run, id)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
create index incident_since on incident (tenant, since, run, id);

create table definition (
  tenant       integer     not null,
  name         text collate "C" not null,
  version      integer     not null,
  digest       text collate "C" not null,
  description  text        not null,
  source       bytea       not null,
  published_at timestamptz not null,
  published_by text        not null,
  primary key (tenant, name, version)
);
create unique index definition_digest on definition (tenant, name, digest);

-- n is the order of writing and no number of the trail: a sealer gives those.
-- commit_id and part tell a repeated write from a new one.
create table audit (
  n         bigint      not null generated always as identity primary key,
  tenant    integer     not null,
  at        timestamptz not null,
  actor     text        not null,
  kind      text        not null,
  run       uuid,
  answer    text        not null,
  data      bytea,
  head      bytea,
  commit_id uuid,
  part      integer     not null
) with (autovacuum_vacuum_insert_scale_factor = 0.1);
create unique index audit_commit on audit (commit_id, part) where commit_id is not null;
create index audit_run on audit (tenant, run, n) where run is not null;
create index audit_tenant on audit (tenant, n);
