package outbox_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ringiflow/ringi/outbox/mysql"
	"github.com/ringiflow/ringi/outbox/postgres"
	"github.com/ringiflow/ringi/outbox/sqlite"
)

// columns returns the column names of a table in a schema.
func columns(schema, table string) []string {
	_, rest, _ := strings.Cut(schema, "create table if not exists "+table+" (")
	body, _, _ := strings.Cut(rest, "\n)")
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^  (\w+) +(text|blob|integer|bigint|uuid|bytea|jsonb|smallint|timestamptz|char|varchar|varbinary|longblob|longtext|tinyint)\b`).FindAllStringSubmatch(body, -1) {
		names = append(names, m[1])
	}
	return names
}

func TestAllDialectsHaveTheSameColumnsAndIndexes(t *testing.T) {
	for _, table := range []string{"outbox", "aggregate_head", "outbox_change"} {
		lite, pg := columns(sqlite.Schema, table), columns(postgres.Schema, table)
		my := columns(mysql.Schema, table)
		pg = slices.DeleteFunc(pg, func(c string) bool { return c == "part" }) // several processes do not share SQLite
		my = slices.DeleteFunc(my, func(c string) bool { return c == "part" || c == "open_seq" })
		if len(lite) == 0 || !slices.Equal(lite, pg) || !slices.Equal(lite, my) {
			t.Errorf("%s: SQLite has %v, PostgreSQL %v, MySQL %v", table, lite, pg, my)
		}
	}
	indexes := regexp.MustCompile(`create (unique )?index [^;]+;`)
	lite, pg := indexes.FindAllString(sqlite.Schema, -1), indexes.FindAllString(postgres.Schema, -1)
	for i := range pg {
		pg[i] = strings.Replace(pg[i], "next_at, id, part", "next_at", 1)
	}
	if len(lite) == 0 || !slices.Equal(lite, pg) {
		t.Errorf("indexes: SQLite has %q, PostgreSQL %q", lite, pg)
	}
}

func TestDebeziumFindsItsColumns(t *testing.T) { // O2
	for _, schema := range []string{sqlite.Schema, postgres.Schema, mysql.Schema} {
		got := columns(schema, "outbox")
		for _, want := range []string{"id", "aggregatetype", "aggregateid", "type", "payload"} {
			if !slices.Contains(got, want) {
				t.Errorf("no column %s in %v", want, got)
			}
		}
	}
}
