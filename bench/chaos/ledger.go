package chaos

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ringiflow/ringi/inbox"
	"github.com/ringiflow/ringi/outbox/postgres"
)

// tables are those of the service and of its consumers. Effects have no unique key:
// one that happens twice has to be seen.
const tables = `
create table account (key text primary key, n bigint not null);
create table change (id uuid primary key, key text not null, n bigint not null, producer text not null);
create table effect (place bigint generated always as identity primary key, id uuid not null, key text not null, n bigint not null,
  consumer text not null, relay text not null);
create index effect_id on effect (id);
`

const (
	// ledgerSuffix is how the files end in which processes write what only they know.
	ledgerSuffix = ".ledger"

	// mostAsked is how many ids are asked about at once.
	mostAsked = 10_000

	lastProducer = "the last word"
)

// A ledger reads what the rows and the files of the producers say.
type ledger struct {
	pool *pgxpool.Pool
	seen func() string // draws ids
}

// makeTables makes all tables, and a row for each key.
func (l *ledger) makeTables(ctx context.Context) error {
	if _, err := l.pool.Exec(ctx, postgres.Schema+inbox.Schema+tables); err != nil {
		return fmt.Errorf("make the tables: %w", err)
	}
	var all []string
	for n := range keys {
		all = append(all, key(n))
	}
	_, err := l.pool.Exec(ctx, `insert into account select key, 0 from unnest($1::text[]) key`, all)
	return err
}

// lastWords makes one more change of each key.
func (l *ledger) lastWords(ctx context.Context, family string) error {
	for n := range keys {
		if err := makeChange(ctx, l.pool, family, lastProducer, l.seen(), n); err != nil {
			return fmt.Errorf("make the last change of a key: %w", err)
		}
	}
	return nil
}

const (
	countStuck = `select count(*) from outbox where state <> 2`
	countLost  = `select count(*) from change c where not exists (select 1 from effect e where e.id = c.id)`
)

// left is how many messages are not delivered and how many changes have no effect.
func (l *ledger) left(ctx context.Context) (n int, err error) {
	err = l.pool.QueryRow(ctx, `select (`+countStuck+`) + (`+countLost+`)`).Scan(&n)
	return n, err
}

// judge says what came of it.
func (l *ledger) judge(ctx context.Context, dir string) (r Result, err error) {
	var unfounded int
	for _, q := range []struct {
		into *int
		text string
	}{
		{&r.Produced, `select count(*) from change`},
		{&r.Effects, `select count(*) from effect`},
		{&r.Lost, countLost},
		{&r.Stuck, countStuck},
		{&r.DuplicateEffects, `select count(*) - count(distinct id) from effect`},
		{&unfounded, `select count(*) from effect e where not exists (select 1 from change c where c.id = e.id)`},
		{&r.OutOfOrder, `select count(*) from (select n, max(n) over (partition by key order by place rows between unbounded preceding and 1 preceding) as before
			from (select id, key, n, min(place) as place from effect group by id, key, n) firsts) ordered where n < before`},
	} {
		if err := l.pool.QueryRow(ctx, q.text).Scan(q.into); err != nil {
			return r, fmt.Errorf("read the ledger: %w", err)
		}
	}
	r.DuplicateEffects += unfounded
	if r.PublishedByRelay, err = l.byRelay(ctx); err != nil {
		return r, err
	}
	books, err := filepath.Glob(filepath.Join(dir, "*"+ledgerSuffix))
	if err != nil {
		return r, err
	}
	for _, book := range books {
		said, err := readBook(book)
		if err != nil {
			return r, err
		}
		there, err := l.there(ctx, said[knew])
		if err != nil {
			return r, err
		}
		r.Lost += len(said[knew]) - there
		r.UnknownCommits += len(said[unsure])
		if there, err = l.there(ctx, said[unsure]); err != nil {
			return r, err
		}
		r.UnknownCommitted += there
		r.Repeats += len(said[dropped])
	}
	return r, nil
}

func (l *ledger) byRelay(ctx context.Context) (map[string]int, error) {
	sent := map[string]int{}
	for n := range relays {
		sent[memberName(roleRelay, n)] = 0
	}
	rows, err := l.pool.Query(ctx, `select relay, count(*) from effect group by relay`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		var n int
		if err := rows.Scan(&name, &n); err != nil {
			return nil, err
		}
		sent[name] = n
	}
	return sent, rows.Err()
}

// there is how many changes with these ids were committed.
func (l *ledger) there(ctx context.Context, ids []string) (n int, err error) {
	for chunk := range slices.Chunk(ids, mostAsked) {
		var some int
		if err := l.pool.QueryRow(ctx, `select count(*) from change where id = any($1::uuid[])`, chunk).Scan(&some); err != nil {
			return n, fmt.Errorf("look for the changes of a producer: %w", err)
		}
		n += some
	}
	return n, nil
}

// readBook reads ids by the words that stand before them.
func readBook(path string) (said map[string][]string, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	said = map[string][]string{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		word, id, _ := strings.Cut(lines.Text(), " ")
		said[word] = append(said[word], id)
	}
	return said, lines.Err()
}
