package postgres

import (
	"context"
	"fmt"
	"strings"
)

// textLocks names the tables of ours that others have locked against us, the
// oldest transaction first. A lock of rows is not among them.
const textLocks statement = `select c.relname, l.pid, coalesce(nullif(a.application_name, ''), 'a program without a name'), a.xact_start
	from pg_locks l join pg_class c on c.oid = l.relation join pg_namespace n on n.oid = c.relnamespace
	cross join lateral pg_stat_get_activity(l.pid) a
	where l.granted and l.locktype = 'relation' and n.nspname = current_schema() and c.relkind in ('r', 'i')
		and l.mode in ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
		and l.database = (select oid from pg_database where datname = current_database())
	order by a.xact_start, c.relname limit 5`

// Locks says which tables others have locked, who and since when; "" is none.
// It waits for no lock itself.
func (s *Store) Locks(ctx context.Context) (string, error) {
	var list []string
	c := &call{statement: textLocks, row: func(row cells) error {
		who := fmt.Sprintf("%s by session %d (%s)", row.text(0), row.num(1), row.text(2))
		if since := row.time(3); !since.IsZero() {
			who += " since " + since.Format("15:04:05Z07:00")
		}
		list = append(list, who)
		return nil
	}}
	err := s.read(ctx, c)
	return strings.Join(list, ", "), err
}
