create table if not exists outbox (
  id            text    not null primary key,
  tenant        integer not null check (tenant >= 0),
  destination   text    not null default '',
  aggregatetype text    not null,
  aggregateid   text    not null,
  type          text    not null,
  payload       blob    not null,
  contenttype   text    not null default '',
  headers       text    not null default '{}' check (json_type(headers) = 'object'),
  seq           integer not null default 0 check (seq >= 0),
  state         integer not null default 0,
  attempts      integer not null default 0,
  next_at       integer not null,
  claim_epoch   integer not null default 0,
  claimed_by    text,
  created_at    integer not null,
  delivered_at  integer,
  last_error    text
) strict;
create index if not exists outbox_due on outbox (destination, tenant, next_at) where state < 2;
create unique index if not exists outbox_key on outbox (tenant, aggregatetype, aggregateid, destination, seq) where state < 2 and seq > 0;
create index if not exists outbox_delivered on outbox (delivered_at) where state = 2;
create index if not exists outbox_dead on outbox (tenant, id) where state = 3;
create table if not exists aggregate_head (
  tenant        integer not null,
  aggregatetype text    not null,
  aggregateid   text    not null,
  seq           integer not null,
  primary key (tenant, aggregatetype, aggregateid)
) strict, without rowid;
