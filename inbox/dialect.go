package inbox

import (
	"context"
	"time"
)

// Dialect is how a database writes the statements of an inbox. Its zero value is
// Standard.
type Dialect int

// The dialects.
const (
	Standard Dialect = iota // SQLite and PostgreSQL
	MySQL                   // MariaDB 10.6, MySQL 8.0.19, or newer
)

// statements are those of one dialect; all take their parameters in one order.
type statements struct {
	schema                              []string
	insertID, pruneIDs                  string
	pastFailures, recordOne, dropFailed string
	listPoison, onePoison, dropPoison   string
	forgetFailures                      string
}

// MySQLSchema creates the tables of Schema in MariaDB and MySQL, where it is two
// statements, of which most drivers take only one at a time; see Dialect.Schema.
// Ids and names are compared byte by byte, so that case and trailing spaces count;
// the collation for that has one name in MariaDB and another in MySQL, and each
// reads its own of the two comments.
const MySQLSchema = mysqlIDs + mysqlPoison

const (
	mysqlIDs = `
create table if not exists inbox (
  consumer   varchar(256) not null,
  message    varchar(256) not null,
  handled_at bigint       not null,
  primary key (consumer, message),
  index inbox_handled (consumer, handled_at)
) engine = InnoDB default character set utf8mb4 collate /*M! utf8mb4_nopad_bin */ /*!80000 utf8mb4_0900_bin */;
`
	mysqlPoison = `create table if not exists inbox_poison (
  consumer    varchar(256) not null,
  message     varchar(256) not null,
  failures    bigint       not null,
  failed_at   bigint       not null,
  last_error  text         not null,
  poisoned_at bigint,
  body        longtext,
  headers     longtext,
  primary key (consumer, message)
) engine = InnoDB default character set utf8mb4 collate /*M! utf8mb4_nopad_bin */ /*!80000 utf8mb4_0900_bin */;
`
)

// Schema lists the statements that create the tables, one by one.
func (d Dialect) Schema() []string { return d.statements().schema }

func (d Dialect) statements() statements {
	if d == MySQL {
		return mysqlStatements()
	}
	return statements{
		schema: []string{Schema}, insertID: insertID, pruneIDs: pruneIDs, pastFailures: pastFailures, recordOne: recordOne,
		dropFailed: dropFailed, listPoison: listPoison, onePoison: onePoison, dropPoison: dropPoison, forgetFailures: forgetFailures,
	}
}

func mysqlStatements() statements {
	return statements{
		schema:       []string{mysqlIDs, mysqlPoison},
		insertID:     `insert ignore into inbox (consumer, message, handled_at) values (?, ?, ?)`,
		pruneIDs:     `delete from inbox where consumer = ? and handled_at < ? order by handled_at limit ?`,
		pastFailures: `select failures, poisoned_at from inbox_poison where consumer = ? and message = ?`,
		recordOne: `insert into inbox_poison (consumer, message, failures, failed_at, last_error, poisoned_at, body, headers) values (?, ?, 1, ?, ?, ?, ?, ?)
			on duplicate key update failures = failures + 1, failed_at = values(failed_at), last_error = values(last_error),
				poisoned_at = coalesce(poisoned_at, values(poisoned_at)), body = coalesce(body, values(body)), headers = coalesce(headers, values(headers))`,
		dropFailed: `delete from inbox_poison where consumer = ? and poisoned_at is null and failed_at < ? order by message limit ?`,
		listPoison: `select message, failures, last_error, poisoned_at, body, headers from inbox_poison
			where consumer = ? and poisoned_at is not null and message > ? order by message limit ?`,
		onePoison:  `select message, failures, last_error, poisoned_at, body, headers from inbox_poison where consumer = ? and poisoned_at is not null and message = ?`,
		dropPoison: `delete from inbox_poison where consumer = ? and message = ? and poisoned_at is not null`,

		forgetFailures: `delete from inbox_poison where consumer = ? and message = ? and poisoned_at is null`,
	}
}

// Handle is the function of that name for a transaction of the dialect. In MySQL an
// error may mean that the database has ended the transaction because of a deadlock:
// roll back, and let the broker deliver the message again.
func (d Dialect) Handle(ctx context.Context, tx Tx, consumer, messageID string, work func(ctx context.Context) error) (fresh bool, err error) {
	return d.handle(ctx, tx, consumer, messageID, time.Now(), work)
}
