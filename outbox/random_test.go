package outbox_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/postgres"
	"github.com/ringiflow/ringi/outbox/sqlite"
)

// chaos is a world in which sinks fail, relays die and sleep, as a random
// program says.
type chaos struct {
	t       *rapid.T
	f       fixture
	now     time.Time
	written map[string]outbox.Message
	got     map[string]bool           // ids that the destination has
	last    map[outbox.Key]int64      // the largest number it has, per key
	held    [][]outbox.ClaimedMessage // claims whose relay has not come back
}

// send is a destination's side: it checks order and remembers.
func (c *chaos) send(m outbox.Message) {
	want, ok := c.written[m.ID]
	if !ok || string(m.Payload) != string(want.Payload) {
		c.t.Fatalf("sent %s, which nobody wrote like that", m.ID)
	}
	if m.Seq > 0 && !c.got[m.ID] {
		if m.Seq != c.last[m.Key()]+1 {
			c.t.Fatalf("%v: number %d came after %d", m.Key(), m.Seq, c.last[m.Key()])
		}
		c.last[m.Key()] = m.Seq
	}
	c.got[m.ID] = true
}

func (c *chaos) claim(limit int) []outbox.ClaimedMessage {
	b, err := c.f.Claim(context.Background(), outbox.Claim{By: "r", Now: c.now, Lease: 10 * time.Second, Limit: limit})
	if err != nil {
		c.t.Fatal(err)
	}
	return b.Messages
}

// publish lets each key fail at a random place; what follows there is given back.
func (c *chaos) publish(msgs []outbox.ClaimedMessage) []outbox.Mark {
	failed := map[outbox.Key]bool{}
	var marks []outbox.Mark
	for _, m := range msgs {
		mark := outbox.Mark{ID: m.ID, Epoch: m.Epoch, NextAt: c.now.Add(time.Duration(rapid.IntRange(0, 20).Draw(c.t, "pause")) * time.Second)}
		switch {
		case m.Seq > 0 && failed[m.Key()]:
			mark.Outcome = outbox.MarkReleased
		case rapid.IntRange(0, 3).Draw(c.t, "fails") == 0:
			mark.Outcome = outbox.MarkFailed
			failed[m.Key()] = true
		default:
			c.send(m.Message)
		}
		marks = append(marks, mark)
	}
	return marks
}

func (c *chaos) mark(marks []outbox.Mark) int {
	n, err := c.f.Mark(context.Background(), c.now, marks)
	if err != nil {
		c.t.Fatal(err)
	}
	return n
}

// step does one random thing.
func (c *chaos) step() {
	switch rapid.IntRange(0, 6).Draw(c.t, "do") {
	case 0, 1:
		var msgs []outbox.Message
		for range rapid.IntRange(1, 5).Draw(c.t, "messages") {
			m := order(len(c.written), fmt.Sprint(rapid.IntRange(0, 3).Draw(c.t, "aggregate")))
			m.Tenant = int64(rapid.IntRange(0, 2).Draw(c.t, "tenant"))
			m.Unordered = rapid.IntRange(0, 5).Draw(c.t, "unordered") == 0
			m.CreatedAt, m.Payload = c.now, []byte(m.ID)
			c.written[m.ID] = m
			msgs = append(msgs, m)
		}
		if err := c.f.insert(msgs...); err != nil {
			c.t.Fatal(err)
		}
	case 2, 3: // a round that goes well or badly, perhaps without its mark
		marks := c.publish(c.claim(rapid.IntRange(1, 8).Draw(c.t, "limit")))
		if rapid.Bool().Draw(c.t, "marked") && c.mark(marks) != len(marks) {
			c.t.Fatal("a mark within its lease was lost")
		}
	case 4: // a relay claims and freezes
		c.held = append(c.held, c.claim(rapid.IntRange(1, 8).Draw(c.t, "limit")))
	case 5: // one wakes; if its leases are over and taken, its marks must not count
		if len(c.held) > 0 {
			var marks []outbox.Mark
			for _, m := range c.held[0] {
				marks = append(marks, outbox.Mark{ID: m.ID, Epoch: m.Epoch, Outcome: outbox.MarkFailed, NextAt: c.now})
			}
			c.mark(marks)
			c.held = c.held[1:]
		}
	case 6:
		c.now = c.now.Add(time.Duration(rapid.IntRange(0, 15).Draw(c.t, "seconds")) * time.Second)
	}
}

// finish ends all faults and expects everything to come through.
func (c *chaos) finish() {
	for range 20 {
		c.now = c.now.Add(20 * time.Second)
		for {
			msgs := c.claim(100)
			if len(msgs) == 0 {
				break
			}
			var marks []outbox.Mark
			for _, m := range msgs {
				c.send(m.Message)
				marks = append(marks, outbox.Mark{ID: m.ID, Epoch: m.Epoch})
			}
			c.mark(marks)
		}
	}
	for id := range c.written {
		if !c.got[id] {
			c.t.Fatalf("%s was lost", id)
		}
	}
	if st, err := c.f.Stats(context.Background()); err != nil || st != (outbox.Stats{}) {
		c.t.Fatalf("left over: %+v, %v", st, err)
	}
}

// TestNothingIsLostAndOrderHolds runs random programs of writers, failing
// destinations and relays that die or sleep. O-1, O-2, O-7, O-8, O-16, O7.
func TestNothingIsLostAndOrderHolds(t *testing.T) {
	run := func(rt *rapid.T, f fixture) {
		c := &chaos{t: rt, f: f, now: begin, written: map[string]outbox.Message{}, got: map[string]bool{}, last: map[outbox.Key]int64{}}
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			c.step()
		}
		c.finish()
	}
	t.Run("memory", func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) { run(rt, inMemory()) })
	})
	t.Run("sqlite", func(t *testing.T) {
		// One file for all programs, emptied before each: opening one is slow.
		db := openSQLite(t, filepath.Join(t.TempDir(), "outbox.db"), "synchronous(off)", "busy_timeout(10000)")
		rapid.Check(t, func(rt *rapid.T) {
			if _, err := db.Exec(`delete from outbox; delete from aggregate_head`); err != nil {
				rt.Fatal(err)
			}
			run(rt, fixture{Source: sqlite.New(db), insert: insertInto(db)})
		})
	})
	t.Run("postgres", func(t *testing.T) {
		db := openPostgres(t, postgresURL(t))
		rapid.Check(t, func(rt *rapid.T) {
			if _, err := db.Exec(`truncate outbox, aggregate_head`); err != nil {
				rt.Fatal(err)
			}
			run(rt, fixture{Source: postgres.New(db), insert: insertPostgres(db)})
		})
	})
	t.Run("mysql", func(t *testing.T) {
		db, _ := dialectMySQL.empty(t)
		rapid.Check(t, func(rt *rapid.T) {
			for _, table := range []string{"outbox", "aggregate_head"} {
				if _, err := db.Exec("delete from " + table); err != nil {
					rt.Fatal(err)
				}
			}
			run(rt, dialectMySQL.fixture(db))
		})
	})
}

// TestWritersAndRelaysShareOneFile lets real goroutines meet on one database,
// with a pool of connections and with a single one. O-1, O-2, O-16.
func TestWritersAndRelaysShareOneFile(t *testing.T) {
	for _, conns := range []int{1, 8} {
		t.Run(fmt.Sprint(conns, " connections"), func(t *testing.T) {
			db := openSQLite(t, filepath.Join(t.TempDir(), "outbox.db"), "synchronous(off)", "busy_timeout(10000)")
			db.SetMaxOpenConns(conns)
			insert := insertInto(db)
			var writers, relays sync.WaitGroup
			const each, total = 50, 4 * 50
			for w := range 4 {
				writers.Go(func() {
					for n := range each {
						m := order(w*each+n, fmt.Sprint(n%3))
						if err := insert(m); err != nil {
							t.Error(err)
						}
					}
				})
			}
			var mu sync.Mutex
			var ticks atomic.Int64 // each claim is 10 ms later than the one before
			last, count := map[outbox.Key]int64{}, 0
			for range 2 {
				relays.Go(func() {
					src := sqlite.New(db)
					for range 100_000 {
						mu.Lock()
						done := count == total
						mu.Unlock()
						if done {
							return
						}
						b, err := src.Claim(context.Background(), outbox.Claim{Now: begin.Add(time.Duration(ticks.Add(1)) * 10 * time.Millisecond), Lease: 1000 * time.Hour, Limit: 7})
						if err != nil {
							t.Error(err)
							return
						}
						var marks []outbox.Mark
						mu.Lock()
						for _, m := range b.Messages {
							if m.Seq != last[m.Key()]+1 {
								t.Errorf("%v: %d after %d", m.Key(), m.Seq, last[m.Key()])
							}
							last[m.Key()] = m.Seq
							count++
							marks = append(marks, outbox.Mark{ID: m.ID, Epoch: m.Epoch})
						}
						mu.Unlock()
						if n, err := src.Mark(context.Background(), begin, marks); err != nil || n != len(marks) {
							t.Errorf("marked %d of %d, %v", n, len(marks), err)
						}
					}
				})
			}
			writers.Wait()
			relays.Wait()
			if count != total {
				t.Errorf("delivered %d, want %d", count, total)
			}
		})
	}
}
