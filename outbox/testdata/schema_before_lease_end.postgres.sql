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
  claim_epoch   bigint      not null default 0,
  claimed_by    text,
  created_at    timestamptz not null,
  delivered_at  timestamptz,
  last_error    text,
  part          smallint    not null generated always as ((hashtextextended(aggregateid, tenant) & 63)::smallint) stored
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, toast.autovacuum_vacuum_scale_factor = 0.02);
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
  primary key (destination, relay)
) with (fillfactor = 50);
