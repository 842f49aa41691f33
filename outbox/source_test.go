package outbox_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/memory"
	"github.com/ringiflow/ringi/outbox/postgres"
	"github.com/ringiflow/ringi/outbox/sqlite"
)

// fixture is a source under test and the way to write into it.
type fixture struct {
	outbox.Source
	insert func(...outbox.Message) error
}

// put inserts messages in one transaction.
func (f fixture) put(t *testing.T, msgs ...outbox.Message) {
	t.Helper()
	if err := f.insert(msgs...); err != nil {
		t.Fatal(err)
	}
}

// claim takes up to limit messages for half a minute.
func (f fixture) claim(t *testing.T, now time.Time, limit int) []outbox.ClaimedMessage {
	t.Helper()
	for {
		b, err := f.Claim(t.Context(), outbox.Claim{By: "test", Now: now, Lease: 30 * time.Second, Limit: limit})
		if err != nil {
			t.Fatal(err)
		}
		if len(b.Messages) > 0 || !b.More {
			return b.Messages
		}
	}
}

// mark settles one claimed message and tells whether the mark applied.
func (f fixture) mark(t *testing.T, at time.Time, m outbox.ClaimedMessage, o outbox.Outcome, next time.Time) bool {
	t.Helper()
	n, err := f.Mark(t.Context(), at, []outbox.Mark{{ID: m.ID, Epoch: m.Epoch, Outcome: o, NextAt: next, Error: "because"}})
	if err != nil {
		t.Fatal(err)
	}
	return n == 1
}

// openSQLite opens a database file as a service would, waiting for locks. Given
// pragmas come in place of the wait.
func openSQLite(t *testing.T, path string, pragmas ...string) *sql.DB {
	t.Helper()
	dsn := "file:" + path + "?_pragma=journal_mode(wal)"
	if len(pragmas) == 0 {
		pragmas = []string{"busy_timeout(10000)", "synchronous(off)"} // processes die in these tests, machines do not
	}
	for _, p := range pragmas {
		dsn += "&_pragma=" + p
	}
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	for range 2 { // a schema may run again
		if _, err := db.Exec(sqlite.Schema); err != nil {
			t.Fatal(err)
		}
	}
	return db
}

// insertInto returns an insert that begins and commits a transaction of its own.
func insertInto(db *sql.DB) func(...outbox.Message) error {
	return func(msgs ...outbox.Message) error {
		tx, err := db.Begin()
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if err := sqlite.Insert(context.Background(), tx, msgs...); err != nil {
			return err
		}
		return tx.Commit()
	}
}

// eachSource runs a test on every source.
func eachSource(t *testing.T, test func(t *testing.T, f fixture)) {
	t.Run("memory", func(t *testing.T) {
		m := new(memory.Outbox)
		test(t, fixture{Source: m, insert: m.Insert})
	})
	t.Run("sqlite", func(t *testing.T) {
		db := openSQLite(t, filepath.Join(t.TempDir(), "outbox.db"))
		test(t, fixture{Source: sqlite.New(db), insert: insertInto(db)})
	})
	t.Run("postgres", func(t *testing.T) {
		db := openPostgres(t, postgresURL(t))
		test(t, fixture{Source: postgres.New(db), insert: insertPostgres(db)})
	})
	t.Run("mysql", func(t *testing.T) { test(t, mysqlFixture(openMySQL(t, mysqlURL(t)))) })
}

// taken tells whether a sink acknowledged everything.
func taken(results []error) bool { return errors.Join(results...) == nil }

// names shows messages by aggregate and number.
func names(msgs []outbox.ClaimedMessage) string {
	var s []string
	for _, m := range msgs {
		s = append(s, fmt.Sprintf("%s/%d", m.AggregateID, m.Seq))
	}
	return strings.Join(s, " ")
}

// same compares messages; a payload and headers that are nil or empty are alike.
func same(a, b outbox.Message) bool {
	return a.ID == b.ID && a.Key() == b.Key() && a.Type == b.Type && bytes.Equal(a.Payload, b.Payload) &&
		a.ContentType == b.ContentType && maps.Equal(a.Headers, b.Headers) && a.Unordered == b.Unordered &&
		a.Seq == b.Seq && a.CreatedAt == b.CreatedAt
}

func wantNames(t *testing.T, got []outbox.ClaimedMessage, want string) {
	t.Helper()
	if names(got) != want {
		t.Fatalf("claimed %q, want %q", names(got), want)
	}
}

func TestAMessageComesOutAsItWentIn(t *testing.T) {
	eachSource(t, func(t *testing.T, f fixture) {
		m := order(1, "o-1")
		m.Tenant, m.Headers, m.Payload, m.ContentType = 1<<40, map[string]string{"traceparent": "00-ab", "X": "稟議"}, []byte{0, 255, '\n'}, "application/x"
		m.CreatedAt = begin.In(time.FixedZone("JST", 9*3600))
		bare := outbox.Message{ID: id(2), AggregateType: "Order", AggregateID: "o-2", Type: "t", Unordered: true, CreatedAt: begin}
		f.put(t, m, bare)
		got := f.claim(t, begin, 10)
		if len(got) != 2 {
			t.Fatalf("claimed %d messages", len(got))
		}
		slices.SortFunc(got, func(a, b outbox.ClaimedMessage) int { return strings.Compare(a.ID, b.ID) })
		m.Seq, m.CreatedAt = 1, begin
		for i, want := range []outbox.Message{m, bare} {
			if !same(got[i].Message, want) || got[i].Attempt != 1 || got[i].Epoch == 0 {
				t.Errorf("got %+v\nwant %+v, attempt 1, an epoch", got[i], want)
			}
		}
	})
}

func TestAnInsertIsAllOrNothing(t *testing.T) { // O1
	eachSource(t, func(t *testing.T, f fixture) {
		f.put(t, order(1, "o-1"))
		numbered := order(4, "o-1")
		numbered.Seq = 9
		wrong := order(5, "o-1")
		wrong.Type = ""
		for _, tc := range []struct {
			name string
			last outbox.Message
			want error
		}{
			{"an id that stands", order(1, "o-9"), outbox.ErrDuplicate},
			{"an id twice in the insert", order(2, "o-1"), outbox.ErrDuplicate},
			{"a number from outside", numbered, nil},
			{"a message that Check refuses", wrong, nil},
		} {
			err := f.insert(order(2, "o-1"), order(3, "o-2"), tc.last)
			if err == nil || (tc.want != nil && !errors.Is(err, tc.want)) {
				t.Errorf("%s: got %v, want %v", tc.name, err, tc.want)
			}
		}
		f.put(t, order(2, "o-1"))
		wantNames(t, f.claim(t, begin, 10), "o-1/1 o-1/2") // no gap in the numbers
	})
}

func TestNumbersAreCountedPerAggregateAndTenant(t *testing.T) {
	eachSource(t, func(t *testing.T, f fixture) {
		other := order(4, "b")
		other.Tenant = 2
		free := order(5, "a")
		free.Unordered = true
		f.put(t, order(1, "b"), order(2, "a"), order(3, "b"), other, free)
		f.put(t, order(6, "a"))
		got := map[string]int64{}
		for _, m := range f.claim(t, begin, 10) {
			got[m.ID] = m.Seq
		}
		want := map[string]int64{id(1): 1, id(2): 1, id(3): 2, id(4): 1, id(5): 0, id(6): 2}
		if !maps.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

// Case, accents and spaces at the end make another aggregate, and another destination.
func TestKeysAreComparedByteByByte(t *testing.T) { // O-2
	eachSource(t, func(t *testing.T, f fixture) {
		var msgs []outbox.Message
		for n, aggregate := range []string{"o", "O", "o ", "ö", "o\u0308", "o"} {
			msgs = append(msgs, order(n, aggregate))
		}
		msgs[5].AggregateType = "order"
		elsewhere := order(6, "x")
		elsewhere.Destination = "Test"
		f.put(t, append(msgs, elsewhere)...)
		wantNames(t, f.claim(t, begin, 10), "o/1 O/1 o /1 ö/1 o\u0308/1 o/1")
		for destination, want := range map[string]int{"test": 0, "Test ": 0, "Test": 1} {
			b, err := f.Claim(t.Context(), outbox.Claim{By: "t", Destination: destination, Now: begin, Lease: time.Minute, Limit: 10})
			if err != nil || len(b.Messages) != want {
				t.Errorf("%q: %d messages, %v, want %d", destination, len(b.Messages), err, want)
			}
		}
	})
}

func TestARowIsClaimedOnlyWithAllEarlierOnesOfItsKey(t *testing.T) { // O-8
	eachSource(t, func(t *testing.T, f fixture) {
		f.put(t, order(1, "a"), order(2, "a"), order(3, "a"), order(4, "b"))
		first := f.claim(t, begin, 2)
		wantNames(t, first, "a/1 a/2")
		wantNames(t, f.claim(t, begin, 10), "b/1") // a/3 waits for the claim of another
		f.mark(t, begin, first[1], outbox.MarkReleased, begin)
		f.mark(t, begin, first[0], outbox.MarkFailed, begin.Add(time.Minute))
		wantNames(t, f.claim(t, begin.Add(59*time.Second), 10), "b/1") // only b's lease has ended
		at := begin.Add(time.Minute)
		got := f.claim(t, at, 10)
		wantNames(t, got, "a/1 a/2 a/3")
		if got[0].Attempt != 2 || got[1].Attempt != 1 {
			t.Errorf("attempts %d and %d, want 2 for the one that failed and 1 for the one given back", got[0].Attempt, got[1].Attempt)
		}
	})
}

func TestALaterCommitOfAnotherKeyOvertakesNothing(t *testing.T) { // O-1, O-2
	eachSource(t, func(t *testing.T, f fixture) {
		// The larger id and the later time commit first.
		late := order(9, "a")
		late.CreatedAt = begin.Add(time.Second)
		f.put(t, late)
		got := f.claim(t, begin.Add(time.Minute), 10)
		wantNames(t, got, "a/1")
		f.mark(t, begin, got[0], outbox.MarkDelivered, time.Time{})
		f.put(t, order(1, "a"), order(2, "b"))
		wantNames(t, f.claim(t, begin.Add(time.Minute), 10), "a/2 b/1")
	})
}

func TestAnUnorderedMessageWaitsForNoOther(t *testing.T) {
	eachSource(t, func(t *testing.T, f fixture) {
		free := order(2, "a")
		free.Unordered = true
		f.put(t, order(1, "a"), free, order(3, "a"))
		wantNames(t, f.claim(t, begin, 1), "a/1")
		wantNames(t, f.claim(t, begin, 10), "a/0")
	})
}

func TestADeadMessageLetsItsKeyGoOnAndStays(t *testing.T) { // O-8, O-26
	eachSource(t, func(t *testing.T, f fixture) {
		f.put(t, order(1, "a"), order(2, "a"))
		got := f.claim(t, begin, 1)
		f.mark(t, begin, got[0], outbox.MarkDead, time.Time{})
		at := begin.Add(time.Second)
		wantNames(t, f.claim(t, at, 10), "a/2")
		if n, err := f.Prune(t.Context(), begin.AddDate(100, 0, 0), 10); n != 0 || err != nil {
			t.Errorf("pruned %d, %v", n, err)
		}
		if st, err := f.Stats(t.Context()); err != nil || st.Dead != 1 || st.Claimed != 1 {
			t.Errorf("got %+v, %v", st, err)
		}
	})
}

func TestAMarkOfAnOldClaimChangesNothing(t *testing.T) { // O-16
	eachSource(t, func(t *testing.T, f fixture) {
		f.put(t, order(1, "a"))
		old := f.claim(t, begin, 1)[0]
		if len(f.claim(t, begin.Add(30*time.Second-time.Microsecond), 1)) != 0 {
			t.Fatal("claimed under another's lease")
		}
		at := begin.Add(30 * time.Second)
		now := f.claim(t, at, 1)[0] // by the same name, which fences nothing
		if now.Epoch == old.Epoch || now.Attempt != 2 {
			t.Errorf("epoch %d after %d, attempt %d, want another and 2", now.Epoch, old.Epoch, now.Attempt)
		}
		for _, o := range []outbox.Outcome{outbox.MarkDelivered, outbox.MarkFailed, outbox.MarkDead, outbox.MarkReleased} {
			if f.mark(t, at, old, o, at) {
				t.Errorf("outcome %d of the old claim applied", o)
			}
		}
		if !f.mark(t, at, now, outbox.MarkDelivered, at) {
			t.Error("the mark of the new claim did not apply")
		}
		if f.mark(t, at, now, outbox.MarkFailed, at) {
			t.Error("a second mark of one claim applied")
		}
	})
}

func TestALateMarkCountsWhileNobodyElseClaimed(t *testing.T) {
	eachSource(t, func(t *testing.T, f fixture) {
		f.put(t, order(1, "a"))
		m := f.claim(t, begin, 1)[0]
		if !f.mark(t, begin.Add(time.Hour), m, outbox.MarkDelivered, time.Time{}) {
			t.Error("the delivery is known and was forgotten")
		}
	})
}

func TestWhatMayHaveKilledARelayIsClaimedAlone(t *testing.T) { // O-17
	eachSource(t, func(t *testing.T, f fixture) {
		f.put(t, order(1, "a"), order(2, "b"), order(3, "a"))
		wantNames(t, f.claim(t, begin, 10), "a/1 a/2 b/1")
		f.put(t, order(4, "c"))
		at := begin.Add(30 * time.Second)
		wantNames(t, f.claim(t, at, 10), "c/1") // not a suspect, and older
		got := f.claim(t, at, 10)
		wantNames(t, got, "a/1")
		f.mark(t, at, got[0], outbox.MarkFailed, at.Add(time.Minute))
		got = f.claim(t, at, 10) // a/2 is a suspect too, but waits for a/1
		wantNames(t, got, "b/1")
		f.mark(t, at, got[0], outbox.MarkDelivered, at)
		at = at.Add(time.Minute)
		got = f.claim(t, at, 10)
		for len(got) > 0 && got[0].AggregateID == "c" { // its lease has ended as well
			f.mark(t, at, got[0], outbox.MarkDelivered, at)
			got = f.claim(t, at, 10)
		}
		wantNames(t, got, "a/1") // failed in the meantime: not a suspect any more, but a/2 behind it is
		if got[0].Attempt != 3 {
			t.Errorf("attempt %d, want 3: one per claim", got[0].Attempt)
		}
	})
}

func TestTenantsTakeTurns(t *testing.T) { // O-28, O-34
	eachSource(t, func(t *testing.T, f fixture) {
		var flood []outbox.Message
		for n := range 40 {
			flood = append(flood, order(n, fmt.Sprintf("flood-%d", n%5)))
		}
		f.put(t, flood...)
		for tenant := range 3 {
			m := order(100+tenant, "quiet")
			m.Tenant = int64(tenant) + 2
			m.CreatedAt = begin.Add(time.Second)
			f.put(t, m)
		}
		at := begin.Add(time.Minute)
		got := f.claim(t, at, 8)
		count := map[int64]int{}
		for _, m := range got {
			count[m.Tenant]++
		}
		if want := map[int64]int{1: 5, 2: 1, 3: 1, 4: 1}; !maps.Equal(count, want) {
			t.Errorf("got %v, want %v", count, want)
		}
	})
}

func TestASmallClaimBeginsWithAnotherTenantEachTime(t *testing.T) { // O-28
	eachSource(t, func(t *testing.T, f fixture) {
		for n := range 6 {
			m := order(n, fmt.Sprint(n))
			m.Tenant = int64(n % 3)
			f.put(t, m)
		}
		var got []int64
		for range 6 {
			got = append(got, f.claim(t, begin, 1)[0].Tenant)
		}
		if want := []int64{1, 2, 0, 1, 2, 0}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

func TestABlockedKeyOfThousandsHidesNoOther(t *testing.T) { // O-22, O-28
	eachSource(t, func(t *testing.T, f fixture) {
		var msgs []outbox.Message
		for n := range 3000 {
			msgs = append(msgs, order(n, "blocked"))
		}
		last := order(5000, "free")
		last.CreatedAt = begin.Add(time.Second)
		f.put(t, append(msgs, last)...)
		head := f.claim(t, begin, 1)[0]
		retry := begin.Add(time.Hour)
		f.mark(t, begin, head, outbox.MarkFailed, retry)
		at := begin.Add(time.Minute)
		var got []outbox.ClaimedMessage
		rounds := 0
		for more := true; more && len(got) == 0; rounds++ {
			b, err := f.Claim(t.Context(), outbox.Claim{Now: at, Lease: time.Minute, Limit: 10})
			if err != nil {
				t.Fatal(err)
			}
			got, more = b.Messages, b.More
		}
		wantNames(t, got, "free/1")
		f.mark(t, at, got[0], outbox.MarkDelivered, at)
		if rounds > 3 {
			t.Errorf("it took %d claims", rounds)
		}
		wantNames(t, f.claim(t, retry, 3), "blocked/1 blocked/2 blocked/3") // and in its time all goes on
	})
}

func TestAClaimKeepsItsLimits(t *testing.T) {
	eachSource(t, func(t *testing.T, f fixture) {
		for n := range 5 {
			m := order(n, "a")
			m.Payload = make([]byte, 1000)
			f.put(t, m)
		}
		claim := func(limit, bytes int) outbox.Batch {
			b, err := f.Claim(t.Context(), outbox.Claim{Now: begin, Lease: time.Minute, Limit: limit, Bytes: bytes})
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range b.Messages {
				f.mark(t, begin, m, outbox.MarkReleased, begin)
			}
			return b
		}
		for _, tc := range []struct {
			limit, bytes, want int
			more               bool
		}{
			{2, 0, 2, true}, {6, 0, 5, false}, {9, 2500, 2, true}, {9, 1, 1, true}, {9, 5000, 5, false},
		} {
			if b := claim(tc.limit, tc.bytes); len(b.Messages) != tc.want || b.More != tc.more {
				t.Errorf("limit %d, %d bytes: got %d messages, more %v, want %d, %v", tc.limit, tc.bytes, len(b.Messages), b.More, tc.want, tc.more)
			}
		}
		for _, c := range []outbox.Claim{{Limit: 0, Lease: 1}, {Limit: 1, Lease: 0}} {
			if _, err := f.Claim(t.Context(), c); err == nil {
				t.Errorf("claim %+v is accepted", c)
			}
		}
	})
}

func TestRetentionCountsFromTheDelivery(t *testing.T) { // O-5
	eachSource(t, func(t *testing.T, f fixture) {
		old := order(1, "a") // written by a transaction that stayed open for two days
		old.CreatedAt = begin.Add(-48 * time.Hour)
		f.put(t, old, order(2, "b"), order(3, "c"))
		prune := func(before time.Time, limit, want int) {
			t.Helper()
			if n, err := f.Prune(t.Context(), before, limit); n != want || err != nil {
				t.Errorf("pruned %d, %v, want %d", n, err, want)
			}
		}
		prune(begin.Add(time.Hour), 10, 0)
		for i, m := range f.claim(t, begin, 10) {
			f.mark(t, begin.Add(time.Duration(i)*time.Second), m, outbox.MarkDelivered, time.Time{})
		}
		prune(begin, 10, 0)
		prune(begin.Add(time.Hour), 2, 2)
		prune(begin.Add(time.Hour), 2, 1)
		f.put(t, order(4, "a"))
		wantNames(t, f.claim(t, begin, 10), "a/2") // the numbers go on
	})
}

func TestStatsCountWhatWaits(t *testing.T) {
	eachSource(t, func(t *testing.T, f fixture) {
		want := outbox.Stats{}
		check := func() {
			t.Helper()
			if got, err := f.Stats(t.Context()); got != want || err != nil {
				t.Errorf("got %+v, %v, want %+v", got, err, want)
			}
		}
		check()
		late := order(2, "b")
		late.CreatedAt = begin.Add(time.Second)
		f.put(t, order(1, "a"), late)
		want = outbox.Stats{Pending: 2, Oldest: begin}
		check()
		a := f.claim(t, begin, 1)[0]
		want = outbox.Stats{Pending: 1, Claimed: 1, Oldest: begin}
		check()
		f.mark(t, begin, a, outbox.MarkFailed, begin)
		want = outbox.Stats{Pending: 2, Failing: 1, Oldest: begin}
		check()
		a = f.claim(t, begin, 1)[0]
		f.mark(t, begin, a, outbox.MarkDead, begin)
		want = outbox.Stats{Pending: 1, Dead: 1, Oldest: begin.Add(time.Second)}
		check()
	})
}

func TestAnEndedContextChangesNothing(t *testing.T) {
	eachSource(t, func(t *testing.T, f fixture) {
		f.put(t, order(1, "a"))
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		_, claim := f.Claim(ended, outbox.Claim{Now: begin, Lease: time.Minute, Limit: 1})
		_, mark := f.Mark(ended, begin, []outbox.Mark{{ID: id(1), Epoch: 1}})
		_, prune := f.Prune(ended, begin, 1)
		_, stats := f.Stats(ended)
		for i, err := range []error{claim, mark, prune, stats} {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("call %d: got %v", i, err)
			}
		}
		if got := f.claim(t, begin, 1); len(got) != 1 || got[0].Attempt != 1 {
			t.Errorf("got %+v", got)
		}
	})
}
