package outbox_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/postgres"
)

// space is how many bytes the table, its indexes and what PostgreSQL keeps beside
// it for long payloads take.
func space(t *testing.T, db *sql.DB, what string) (bytes int64) {
	t.Helper()
	if err := db.QueryRow(`select ` + what).Scan(&bytes); err != nil {
		t.Fatal(err)
	}
	return bytes
}

// A claim writes a row of its own and none of those that it takes.
func TestAClaimWritesNoneOfItsRows(t *testing.T) { // O-29
	db := openPostgres(t, postgresURL(t))
	f := fixture{Source: postgres.New(db), insert: insertPostgres(db)}
	var msgs []outbox.Message
	for n := range 2000 {
		m := order(n, fmt.Sprint("a", n))
		m.Payload = bytes.Repeat([]byte("x"), 200)
		msgs = append(msgs, m)
	}
	f.put(t, msgs...)
	const table, indexes = `pg_relation_size('outbox')`, `pg_indexes_size('outbox')`
	before, indexed := space(t, db, table), space(t, db, indexes)
	for range 2000 / 250 {
		f.claim(t, begin.Add(time.Hour), 250)
	}
	var claimed int
	if err := db.QueryRow(`select sum(size) from outbox_claim`).Scan(&claimed); err != nil || claimed != 2000 || f.stats(t).Claimed != 2000 {
		t.Fatalf("%d are claimed, %v", claimed, err)
	}
	if after, now := space(t, db, table), space(t, db, indexes); after != before || now != indexed {
		t.Errorf("2000 claims made a table of %d bytes one of %d, and its indexes of %d ones of %d", before, after, indexed, now)
	}
}

// Rows come, are delivered and go, with payloads that stay in the row and such that
// do not; the space that they take is used again.
func TestDeliveredRowsDoNotBloatTheTable(t *testing.T) { // O-29
	db := openPostgres(t, postgresURL(t))
	w := newWorld(t, fixture{Source: postgres.New(db), insert: insertPostgres(db)}, func(c *outbox.RelayConfig) {
		c.Retention, c.PruneEvery = time.Minute, time.Minute
	})
	const rounds, each = 30, 400
	const total = `pg_total_relation_size('outbox')`
	var settled int64
	for round := range rounds {
		var msgs []outbox.Message
		for n := range each {
			m := order(round*each+n, fmt.Sprint("a", n%40))
			m.Payload = bytes.Repeat(fmt.Appendf(nil, "%x", n), 30)
			if n%10 == 0 {
				m.Payload = []byte(randomText(round*each+n, 8<<10)) // compresses badly
			}
			m.CreatedAt = w.now
			msgs = append(msgs, m)
		}
		w.put(t, msgs...)
		w.pass(t, 2*time.Minute, 2*time.Minute)             // delivers these and deletes the last ones
		if _, err := db.Exec(`vacuum outbox`); err != nil { // as autovacuum does
			t.Fatal(err)
		}
		if size := space(t, db, total); round == rounds/3 {
			settled = size
		} else if round > rounds/3 && size > settled+settled/5 {
			t.Fatalf("%d bytes in round %d, %d in round %d: the table grows", size, round, settled, rounds/3)
		}
	}
	t.Logf("%d messages went through %d bytes", rounds*each, space(t, db, total))
	if len(w.got) != rounds*each {
		t.Errorf("%d delivered of %d", len(w.got), rounds*each)
	}
}

// randomText is a text of a length that a seed fixes.
func randomText(seed, length int) string {
	var b bytes.Buffer
	for x := uint64(seed) + 1; b.Len() < length; {
		x = x*6364136223846793005 + 1442695040888963407
		fmt.Fprintf(&b, "%016x", x)
	}
	return b.String()[:length]
}
