package sqlite

// Schema creates the tables outbox, aggregate_head and outbox_change and their
// indexes in SQLite; it may run again on a database that has them, but does not
// bring those of an earlier version up to date: Migrate does. Times are
// integers: microseconds since 1970 in UTC.
//
// id, aggregatetype, aggregateid, type and payload carry the names that
// Debezium's outbox router reads by default. next_at is the next try. lease_end is
// until when a relay has the row, and null while nobody does or a claim says it
// elsewhere: outbox_claim has a row for each claim under way that wrote none of the rows
// that it took, with their ids, until they are marked or its lease ends. What ended
// without a mark is claimed by a write to the row itself, which changes no column that
// an index has. claim_epoch grows with every claim of the row and is never reset; a
// mark of such a claim must name it. The id alone is the primary key, without
// the tenant, because consumers and brokers drop repeats by the id alone.
//
// The checks are for writers other than this package: a row that no claim could
// find or read must not be committed.
//
// Every index but the primary key is partial: what is delivered costs a claim
// nothing.
//
// A claim of which some messages were marked and others not has the size 0.
//
// outbox_change is what operators did through a Desk, and why: the ids of the
// messages, which may be gone by now. Nothing deletes from it.
const Schema = `
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
  lease_end     integer,
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
create table if not exists outbox_claim (
  id            integer not null primary key,
  destination   text    not null,
  claimed_by    text    not null,
  lease_end     integer not null,
  size          integer not null,
  messages      text    not null check (json_type(messages) = 'array')
) strict;
create table if not exists outbox_change (
  id            integer not null primary key,
  at            integer not null,
  verb          text    not null,
  reason        text    not null default '',
  messages      text    not null check (json_type(messages) = 'array')
) strict;
`
