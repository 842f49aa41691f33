package outbox

import "fmt"

// State is where a row stands. Column state stores it, except that a claimed row
// stays a pending one there and has a lease_end: a claim then changes no column
// that an index has, and so writes to no index.
type State int

// The states of a row. Those below Delivered are undelivered, and every index
// that a claim reads holds only them.
const (
	Parked    State = -1 // refused too often; blocks its key until a person acts
	Pending   State = 0  // waits until its next_at
	Claimed   State = 1  // a relay has it until its lease_end
	Delivered State = 2  // the destination acknowledged it; kept until pruned
	Dead      State = 3  // set aside after too many refusals; kept until a person acts
)

// SQLiteSchema creates the tables outbox, aggregate_head and outbox_change and their
// indexes in SQLite; it may run again on a database that has them, but does not
// bring those of an earlier version up to date: Dialect.Migrate does. Times are
// integers: microseconds since 1970 in UTC.
//
// id, aggregatetype, aggregateid, type and payload carry the names that
// Debezium's outbox router reads by default. next_at is the next try. lease_end is
// until when a relay has the row, and null while nobody does; neither it nor any
// other column that a claim changes is in an index. claim_epoch grows with every claim of the row and
// is never reset; a mark must name it. The id alone is the primary key, without
// the tenant, because consumers and brokers drop repeats by the id alone.
//
// The checks are for writers other than this package: a row that no claim could
// find or read must not be committed.
//
// Every index but the primary key is partial: what is delivered costs a claim
// nothing.
//
// outbox_change is what operators did through a Desk, and why: the ids of the
// messages, which may be gone by now. Nothing deletes from it.
const SQLiteSchema = `
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
create table if not exists outbox_change (
  id            integer not null primary key,
  at            integer not null,
  verb          text    not null,
  reason        text    not null default '',
  messages      text    not null check (json_type(messages) = 'array')
) strict;
`

// PostgresSchema creates the same tables, columns and indexes in PostgreSQL 14
// or newer; it may run again on a database that has them, and brings those of an
// earlier version, whose claims had no lease_end, up to date.
//
// Every row is updated twice and then deleted. So that this does not bloat the
// table, half of each page is left free: a claim puts its version of the row
// beside the old one without touching an index (a heap-only update), and the
// delivery takes the place of the version before the claim. What is longer than
// two kilobytes PostgreSQL keeps in a table beside this one, which no update
// touches. Both are vacuumed early.
//
// part is the message's partition, which the database computes from tenant and
// aggregate id, so that every writer agrees on it. outbox_partition says which
// relay has which partition of a destination and under which epoch, and
// outbox_relay which relays are alive to share them, and when the destination last
// took something from each and last failed; see Fleet.
const PostgresSchema = `
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

// Dialect is a database that has a schema, an insert and a source here.
type Dialect string

// The dialects.
const (
	DialectSQLite   Dialect = "sqlite"
	DialectPostgres Dialect = "postgres"
)

// Schema returns the statements that create the tables, which may run again; see
// Migrate, which also upgrades them.
// The error names the dialects that there are.
func (d Dialect) Schema() (string, error) {
	switch d {
	case DialectSQLite:
		return SQLiteSchema, nil
	case DialectPostgres:
		return PostgresSchema, nil
	}
	return "", d.unknown()
}

func (d Dialect) unknown() error {
	return fmt.Errorf("outbox: dialect %q is not known; use %s or %s", clip(string(d)), DialectSQLite, DialectPostgres)
}
