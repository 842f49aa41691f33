package mysql

// Schema creates the tables outbox, aggregate_head, outbox_change, outbox_partition
// and outbox_relay in MariaDB 10.6 or MySQL 8.0.19, or newer; it may run again on a
// database that has them. It is several statements, which Migrate runs one by one.
// The columns are those of sqlite.Schema, where they are told, and of
// postgres.Schema; times are integers, microseconds since 1970 in UTC, so that
// neither the time zone of a session nor a setting of the driver changes them.
//
// Texts are compared byte by byte, so that case and trailing spaces count. The
// collation for that has one name in MariaDB and another in MySQL; each reads its
// own of the two comments. destination is bytes because an index has no room for
// three long texts.
//
// There are no partial indexes. Every index that a claim reads begins with the
// state, or with a column that is null once the message is delivered: what is
// delivered is in another place of the index and costs a claim nothing. open_seq is
// seq while the message is ordered and undelivered. part is the message's partition,
// which the database computes, so that every writer agrees on it.
const Schema = `
create table if not exists outbox (
  id            char(36)       character set ascii collate ascii_bin not null primary key,
  tenant        bigint         not null check (tenant >= 0),
  destination   varbinary(256) not null default '',
  aggregatetype varchar(256)   not null,
  aggregateid   varchar(256)   not null,
  type          varchar(256)   not null,
  payload       longblob       not null,
  contenttype   varchar(256)   not null default '',
  headers       longtext       not null default ('{}') check (json_type(headers) = 'OBJECT'),
  seq           bigint         not null default 0 check (seq >= 0),
  state         tinyint        not null default 0,
  attempts      integer        not null default 0,
  next_at       bigint         not null,
  lease_end     bigint,
  claim_epoch   bigint         not null default 0,
  claimed_by    varchar(1024),
  created_at    bigint         not null,
  delivered_at  bigint,
  last_error    text,
  part          smallint       generated always as ((crc32(aggregateid) + tenant) % 64) stored,
  open_seq      bigint         generated always as (if(state < 2 and seq > 0, seq, null)) stored,
  index outbox_due (state, destination, tenant, next_at, id, part),
  unique index outbox_key (tenant, aggregatetype, aggregateid, destination, open_seq),
  index outbox_delivered (delivered_at)
) engine = InnoDB default character set utf8mb4 collate /*M! utf8mb4_nopad_bin */ /*!80000 utf8mb4_0900_bin */;
create table if not exists aggregate_head (
  tenant        bigint         not null,
  aggregatetype varchar(256)   not null,
  aggregateid   varchar(256)   not null,
  seq           bigint         not null,
  primary key (tenant, aggregatetype, aggregateid)
) engine = InnoDB default character set utf8mb4 collate /*M! utf8mb4_nopad_bin */ /*!80000 utf8mb4_0900_bin */;
create table if not exists outbox_change (
  id            bigint         not null auto_increment primary key,
  at            bigint         not null,
  verb          varchar(16)    not null,
  reason        text           not null default (''),
  messages      longtext       not null check (json_type(messages) = 'ARRAY')
) engine = InnoDB default character set utf8mb4 collate /*M! utf8mb4_nopad_bin */ /*!80000 utf8mb4_0900_bin */;
create table if not exists outbox_partition (
  destination   varbinary(256) not null,
  part          smallint       not null,
  owner         varchar(1024),
  epoch         bigint         not null default 0,
  lease_end     bigint         not null default 0,
  primary key (destination, part)
) engine = InnoDB default character set utf8mb4 collate /*M! utf8mb4_nopad_bin */ /*!80000 utf8mb4_0900_bin */;
create table if not exists outbox_relay (
  destination   varbinary(256) not null,
  relay         varchar(512)   not null,
  lease_end     bigint         not null,
  took_at       bigint,
  failed_at     bigint,
  primary key (destination, relay)
) engine = InnoDB default character set utf8mb4 collate /*M! utf8mb4_nopad_bin */ /*!80000 utf8mb4_0900_bin */;
`
