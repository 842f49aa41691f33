package wal

import (
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pglogrepl"
	"pgregory.net/rapid"

	"github.com/ringiflow/ringi/outbox"
)

// read is what a slot sends: a transaction of some messages that ends at a place.
func (l *ledger) read(end pglogrepl.LSN, ids ...string) {
	l.begin()
	for _, id := range ids {
		l.add(id)
	}
	l.commit(end)
}

func newLedger(most int) *ledger {
	l := &ledger{most: most}
	l.reset(1)
	return l
}

func TestTheLogIsConfirmedUpToTheFirstThatIsNotSettled(t *testing.T) {
	l := newLedger(100)
	want := func(what string, at pglogrepl.LSN) {
		t.Helper()
		if l.done != at {
			t.Errorf("%s: confirmed up to %d, want %d", what, l.done, at)
		}
	}
	want("at the beginning", 1)
	l.read(10)
	want("a transaction without messages", 10)
	l.read(20, "a", "b")
	l.read(30, "c")
	l.read(40)
	l.passed(50)
	want("three wait", 10)
	l.settle("c")
	l.settle("a")
	want("the first transaction waits", 10)
	l.settle("b")
	l.settle("b")
	l.settle("unknown")
	want("all are settled", 40)
	l.passed(60)
	want("nothing waits", 60)
	l.begin()
	l.passed(70)
	want("in the middle of a transaction", 60)
	l.add("d")
	l.settle("d")
	l.commit(80)
	want("settled before its end was read", 80)
}

func TestALedgerRemembersNoMoreThanItHasRoomFor(t *testing.T) {
	l := newLedger(2)
	l.begin()
	for i, want := range []bool{true, true, false} {
		if got := l.add(fmt.Sprint(i)); got != want {
			t.Errorf("message %d: %v", i, got)
		}
	}
	l.commit(10)
	l.settle("0")
	l.settle("1")
	if l.done != 10 || len(l.of) != 0 || len(l.open) != 0 {
		t.Errorf("left: %+v", l)
	}
}

// Whatever the order in which messages are settled, nothing is confirmed before a
// message of it is settled, and everything is in the end.
func TestNoMessageIsConfirmedBeforeItIsSettled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLedger(rapid.IntRange(1, 30).Draw(t, "room"))
		ends := map[string]pglogrepl.LSN{} // of what waits
		at := pglogrepl.LSN(1)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			waiting := make([]string, 0, len(ends))
			for id := range ends {
				waiting = append(waiting, id)
			}
			slices.Sort(waiting)
			at += 10
			switch {
			case len(waiting) > 0 && rapid.Bool().Draw(t, "settles"):
				id := rapid.SampledFrom(waiting).Draw(t, "which")
				l.settle(id)
				delete(ends, id)
			case rapid.Bool().Draw(t, "passes"):
				l.passed(at)
			default:
				l.begin()
				for i := range rapid.IntRange(0, 4).Draw(t, "messages") {
					if id := fmt.Sprintf("%d/%d", at, i); l.add(id) {
						ends[id] = at
					}
				}
				l.commit(at)
			}
			for id, end := range ends {
				if l.done >= end {
					t.Fatalf("confirmed up to %d, and %s of %d is not settled", l.done, id, end)
				}
			}
		}
		for id := range ends {
			l.settle(id)
		}
		l.passed(at + 10)
		if l.done != at+10 || len(l.of)+len(l.open) != 0 {
			t.Fatalf("in the end confirmed up to %d of %d: %+v", l.done, at+10, l)
		}
	})
}

// all is every partition.
func all() (parts []outbox.Partition) {
	for n := range outbox.Partitions {
		parts = append(parts, outbox.Partition{Number: n})
	}
	return parts
}

func TestALaneHearsOnlyOfItsPartitions(t *testing.T) {
	d := newDesk(100)
	hints := 0
	one := d.join("", func() { hints++ })
	two := d.join("", func() {})
	elsewhere := d.join("elsewhere", func() {})
	mine := partitionOf(7, "a")
	one.Take([]outbox.Partition{{Number: mine}}, 0)
	rest := slices.DeleteFunc(all(), func(p outbox.Partition) bool { return p.Number == mine })
	two.Take(rest[1:], 0)
	elsewhere.Take(nil, 0)
	add := func(id, aggregate, destination string) {
		d.add(message{id: id, destination: destination, aggregateID: aggregate, tenant: 7})
	}
	nobodys := ""
	for n := 0; nobodys == ""; n++ {
		if name := fmt.Sprint("k", n); partitionOf(7, name) == rest[0].Number {
			nobodys = name
		}
	}
	d.begin()
	add("1", "a", "")
	add("2", nobodys, "") // another process has it
	add("3", "a", "elsewhere")
	add("4", "a", "unknown")
	d.commit(10)
	if hints != 1 {
		t.Errorf("%d hints", hints)
	}
	for _, tc := range []struct {
		lane *lane
		want []string
	}{{one, []string{"1"}}, {two, nil}, {elsewhere, []string{"3"}}} {
		if got, gap := tc.lane.Take(all(), 10); !slices.Equal(got, tc.want) || gap {
			t.Errorf("took %v, gap %v, want %v", got, gap, tc.want)
		}
	}
	one.Settle([]string{"1"})
	elsewhere.Settle([]string{"3"})
	if d.confirmed() != 10 {
		t.Errorf("confirmed up to %d", d.confirmed())
	}
}

func TestALaneIsToldOfWhatItIsNotToldOf(t *testing.T) {
	d := newDesk(2)
	l := d.join("", func() {})
	if _, gap := l.Take(nil, 10); !gap {
		t.Error("a new lane does not poll")
	}
	d.begin()
	for i := range 5 {
		d.add(message{id: fmt.Sprint(i)})
	}
	d.commit(10)
	got, gap := l.Take(nil, 10)
	if !slices.Equal(got, []string{"4"}) || !gap { // 0 to 3 were left to polling, in pairs
		t.Errorf("took %v, gap %v", got, gap)
	}
	if waiting, overflow := d.left(); waiting != 1 || overflow != 4 {
		t.Errorf("%d wait, %d had no room", waiting, overflow)
	}
	d.begin()
	for i := range 3 {
		d.add(message{id: fmt.Sprint("more", i)})
	}
	d.commit(11)
	if waiting, overflow := d.left(); waiting != 2 || overflow != 2 { // 4 is in the hands of the relay
		t.Errorf("%d wait, %d had no room", waiting, overflow)
	}
	d.reset(20)
	if got, gap := l.Take(nil, 10); len(got) != 0 || !gap {
		t.Errorf("of a new slot: took %v, gap %v", got, gap)
	}
}

// What a relay finds by polling is not taken once more, and does not pile up.
func TestALaneDropsWhatIsSettled(t *testing.T) {
	d := newDesk(10)
	l := d.join("", func() {})
	l.Take(nil, 0)
	for i := range 1000 {
		id := fmt.Sprint(i)
		d.begin()
		d.add(message{id: id})
		d.commit(pglogrepl.LSN(i + 1))
		if i < 999 {
			l.Settle([]string{id})
		}
	}
	if len(l.queue) > 20 {
		t.Errorf("%d wait", len(l.queue))
	}
	if got, _ := l.Take(nil, 100); !slices.Equal(got, []string{"999"}) {
		t.Errorf("took %v", got)
	}
	l.Leave()
	if got := d.lanes[""]; len(got) != 0 {
		t.Errorf("%d lanes are left", len(got))
	}
}

func FuzzAnEntryOfTheLogStopsNobody(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("w\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01I\x00\x00\x00\x01N\x00\x01t\x00\x00\x00\x011"))
	f.Add([]byte("wxxxxxxxxxxxxxxxxxxxxxxxxB"))
	f.Add([]byte("k\x00\x00\x00\x00\x00\x00\x00\x09\x00\x00\x00\x00\x00\x00\x00\x01\x01"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := &session{Reader: &Reader{desk: newDesk(10)}}
		_, _ = s.data(data) // an error ends the session; a panic would end the process
	})
}
