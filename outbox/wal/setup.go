package wal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// columns are what is read of a message, where the server can send less than
	// whole rows.
	columns       = "(id, tenant, aggregatetype, aggregateid, destination)"
	columnsSince  = 150000
	longestName   = 63 // of anything in PostgreSQL, in bytes
	publicationOf = "ringi_outbox"

	lookAtServer = `select current_setting('wal_level'), current_setting('server_version_num')::int, pg_is_in_recovery(), current_user::text,
		coalesce((select setting::bigint from pg_settings where name = 'max_slot_wal_keep_size'), -1),
		coalesce((select n.nspname from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.oid = to_regclass('outbox')), '')`

	lookAtPublication = `select exists (select from pg_publication where pubname = $1),
		exists (select from pg_publication_tables where pubname = $1 and schemaname = $2 and tablename = 'outbox'),
		coalesce((select pubinsert from pg_publication where pubname = $1), true)`
)

// place is the table on its server.
type place struct {
	level, user, schema string
	version             int
	standby             bool
	keepMB              int64 // max_slot_wal_keep_size; -1 is no limit
	publication         string
}

// find looks whether the server can do it, and makes the publication if that is
// missing.
func (r *Reader) find(ctx context.Context) (place, error) {
	var p place
	err := r.cfg.DB.QueryRowContext(ctx, lookAtServer).Scan(&p.level, &p.version, &p.standby, &p.user, &p.keepMB, &p.schema)
	switch {
	case err != nil:
		return p, fmt.Errorf("outbox/wal: look at the server: %w", err)
	case p.standby:
		return p, errors.New("outbox/wal: this server is a standby, which has no slots of its own; name the primary, or all servers with target_session_attrs=read-write")
	case p.level != "logical":
		return p, fmt.Errorf("outbox/wal: the server's wal_level is %s: run ALTER SYSTEM SET wal_level = logical and restart the server", p.level)
	case p.schema == "":
		return p, errors.New("outbox/wal: there is no table outbox in the search_path: run ringi outbox schema --apply")
	}
	p.publication = r.cfg.Publication
	if p.publication == "" {
		p.publication = PublicationFor(p.schema)
	}
	return p, r.publish(ctx, p)
}

// PublicationFor is the usual name, which says whose table it is: publications are
// the whole database's.
func PublicationFor(schema string) string {
	if schema == "public" {
		return publicationOf
	}
	name := publicationOf + "_" + schema
	if len(name) <= longestName {
		return name
	}
	h := fnv.New64a()
	// A hash never fails to be written to.
	_, _ = h.Write([]byte(schema))
	return fmt.Sprintf("%s_%016x", publicationOf, h.Sum64())
}

// publish makes the publication or completes it. Several processes may do so at once.
func (r *Reader) publish(ctx context.Context, p place) error {
	table := quote(p.schema) + ".outbox"
	if p.version >= columnsSince {
		table += " " + columns
	}
	for range 2 {
		var there, complete, inserts bool
		err := r.cfg.DB.QueryRowContext(ctx, lookAtPublication, p.publication, p.schema).Scan(&there, &complete, &inserts)
		if err != nil {
			return fmt.Errorf("outbox/wal: look at the publication: %w", err)
		}
		if there && !inserts {
			return fmt.Errorf("outbox/wal: publication %s leaves inserts out: drop it, or run ALTER PUBLICATION %s SET (publish = 'insert')", p.publication, quote(p.publication))
		}
		if complete {
			return nil
		}
		statement := fmt.Sprintf("CREATE PUBLICATION %s FOR TABLE %s WITH (publish = 'insert')", quote(p.publication), table)
		if there { // its table was dropped
			statement = fmt.Sprintf("ALTER PUBLICATION %s ADD TABLE %s", quote(p.publication), table)
		}
		if err := r.declare(ctx, statement); err != nil && codeOf(err) != codeDuplicate {
			return fmt.Errorf("outbox/wal: the role %s may not make the publication; let the owner of the table and the database run: %s: %w", p.user, statement, err)
		}
	}
	return nil
}

// declare runs a statement that locks the table for a moment, and does not stop all
// writers behind it for longer.
func (r *Reader) declare(ctx context.Context, statement string) (err error) {
	tx, err := r.cfg.DB.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() {
		if rolled := tx.Rollback(); err == nil && !errors.Is(rolled, sql.ErrTxDone) {
			err = rolled
		}
	}()
	for _, text := range []string{"set local lock_timeout = '2s'", statement} {
		if _, err := tx.ExecContext(ctx, text); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// quote writes a name as PostgreSQL reads it.
func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// Codes of PostgreSQL's errors.
const (
	codeDuplicate     = "42710"
	codePrivilege     = "42501"
	codeAuthorization = "28000"
	codeProtocol      = "08P01"
	codeSlotsUsed     = "53400"
	codeConnections   = "53300"
	codeTerminated    = "57P01"
)

func codeOf(err error) string {
	if e := (*pgconn.PgError)(nil); errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// explained says what to do about an error of the replication connection.
func explained(err error, user string) error {
	var do string
	switch codeOf(err) {
	case codePrivilege:
		do = fmt.Sprintf("let a superuser run ALTER ROLE %s REPLICATION (Amazon RDS: GRANT rds_replication TO it)", quote(user))
	case codeAuthorization:
		do = "let pg_hba.conf admit the role to this database from here"
	case codeProtocol:
		do = "a pooler that knows no replication seems to stand in between; name the server itself"
	case codeSlotsUsed:
		do = "raise the server's max_replication_slots, one for each relay process, or run fewer of them with --source wal"
	case codeConnections:
		do = "raise the server's max_wal_senders and max_connections, one for each relay process"
	case codeTerminated:
		do = "somebody ended the connection, or the server stops, or it was over max_slot_wal_keep_size"
	default:
		return fmt.Errorf("outbox/wal: %w", err)
	}
	return fmt.Errorf("outbox/wal: %w: %s", err, do)
}
