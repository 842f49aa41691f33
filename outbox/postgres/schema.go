package postgres

// Schema creates the tables outbox, aggregate_head and outbox_change and their
// indexes as sqlite.Schema does, where the columns are told, and two more tables, in
// PostgreSQL 14 or newer; it may run again on a database that has them, and brings those of an
// earlier version, whose claims had no lease_end, up to date.
//
// Every row is updated once, by its mark, and then deleted. So that this does not
// bloat the table, half of each page is left free: the delivered version goes beside
// the old one, as does that of a claim that writes the row, which touches no index (a
// heap-only update). What is longer than two kilobytes PostgreSQL keeps in a table
// beside this one, which no update touches. All are vacuumed early.
//
// part is the message's partition, which the database computes from tenant and
// aggregate id, so that every writer agrees on it. outbox_partition says which
// relay has which partition of a destination and under which epoch, and
// outbox_relay which relays are alive to share them, and when the destination last
// took something from each and last failed; see outbox.Fleet.
const Schema = `
create table if not exists outbox (
  id            uuid        not null primary key,
  tenant        bigint      not null check (tenant >= 0),
  destination   text        not null default '',
  aggregatetype text        not null,
  aggregateid   text        not null,
  type          text        not null,
  payload       bytea       not null,
  contenttype   text        not null default '',
  headers       jsonb       not null default '{}' check (jsonb_typeof(headers) = 'object'),
  seq           bigint      not null default 0 check (seq >= 0),
  state         smallint    not null default 0,
  attempts      integer     not null default 0,
  next_at       timestamptz not null,
  lease_end     timestamptz,
  claim_epoch   bigint      not null default 0,
  claimed_by    text,
  created_at    timestamptz not null,
  delivered_at  timestamptz,
  last_error    text,
  part          smallint    not null generated always as ((hashtextextended(aggregateid, tenant) & 63)::smallint) stored
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, toast.autovacuum_vacuum_scale_factor = 0.02);
do $$ begin if not exists (select from pg_attribute where attrelid = 'outbox'::regclass and attname = 'lease_end' and not attisdropped)
  then alter table outbox add column lease_end timestamptz, set (fillfactor = 50); update outbox set state = 0, lease_end = next_at where state = 1; end if; end $$;
create index if not exists outbox_due on outbox (destination, tenant, next_at, id, part) where state < 2;
create unique index if not exists outbox_key on outbox (tenant, aggregatetype, aggregateid, destination, seq) where state < 2 and seq > 0;
create index if not exists outbox_delivered on outbox (delivered_at) where state = 2;
create index if not exists outbox_dead on outbox (tenant, id) where state = 3;
create table if not exists aggregate_head (
  tenant        bigint not null,
  aggregatetype text   not null,
  aggregateid   text   not null,
  seq           bigint not null,
  primary key (tenant, aggregatetype, aggregateid)
) with (fillfactor = 70);
create table if not exists outbox_change (
  id            bigint      not null generated always as identity primary key,
  at            timestamptz not null,
  verb          text        not null,
  reason        text        not null default '',
  messages      jsonb       not null check (jsonb_typeof(messages) = 'array')
);
create table if not exists outbox_claim (
  id            bigint      not null primary key,
  destination   text        not null,
  claimed_by    text        not null,
  lease_end     timestamptz not null,
  size          integer     not null,
  messages      uuid[]      not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200, toast.autovacuum_vacuum_scale_factor = 0, toast.autovacuum_vacuum_threshold = 500);
create table if not exists outbox_partition (
  destination   text        not null,
  part          smallint    not null,
  owner         text,
  epoch         bigint      not null default 0,
  lease_end     timestamptz not null default 'epoch',
  primary key (destination, part)
) with (fillfactor = 50);
create table if not exists outbox_relay (
  destination   text        not null,
  relay         text        not null,
  lease_end     timestamptz not null,
  took_at       timestamptz,
  failed_at     timestamptz,
  primary key (destination, relay)
) with (fillfactor = 50);
do $$ begin if not exists (select from pg_attribute where attrelid = 'outbox_relay'::regclass and attname = 'took_at' and not attisdropped)
  then alter table outbox_relay add column took_at timestamptz, add column failed_at timestamptz; end if; end $$;
`
