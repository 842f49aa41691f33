package demo

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/ringiflow/ringi/examples/order"
)

// W31: orders that are fed once are those of the file, byte for byte.
func TestOrdersAreFedAsTheyStandInTheFile(t *testing.T) {
	feed, err := planOf(25, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(feed.lines) != 25 || !bytes.Equal(feed.file, order.OrdersFile(25)) || feed.repeats {
		t.Errorf("fed %d orders, %d bytes", len(feed.lines), len(feed.file))
	}
	if end := time.Duration(len(feed.lines)-1) * feed.every; end >= feed.span {
		t.Errorf("the last order comes after %s, and the feeding lasts %s", end, feed.span)
	}
}

// W31: under --chaos the orders come again under new ids, with the faults, votes
// and expectations that they had.
func TestRepeatedOrdersCarryEverythingButTheirID(t *testing.T) {
	feed, err := planOf(0, time.Minute, 0)
	if err != nil {
		t.Fatal(err)
	}
	if want := 60*chaosRate + 1; len(feed.lines) != want {
		t.Fatalf("%d lines, want %d", len(feed.lines), want)
	}
	ids := map[string]bool{}
	for i, line := range feed.lines {
		first := feed.lines[i%100]
		id := line.Order.OrderID
		if ids[id] || !strings.HasPrefix(id, first.Order.OrderID) || !bytes.Contains(line.Input, []byte(`"`+id+`"`)) {
			t.Fatalf("line %d repeats %s as %s", i+1, first.Order.OrderID, id)
		}
		ids[id] = true
		if line.Kind() != first.Kind() || line.Expect != first.Expect || len(line.People) != len(first.People) || len(line.Faults) != len(first.Faults) {
			t.Errorf("order %s is not a repetition of %s", id, first.Order.OrderID)
		}
	}
}

// W31: orders.jsonl in the kept directory holds the orders that were fed.
func TestTheFirstLinesOfAFile(t *testing.T) {
	for n, want := range []string{"", "a\n", "a\nb\n", "a\nb\n"} {
		if got := string(firstLines([]byte("a\nb\n"), n)); got != want {
			t.Errorf("%d lines: %q, want %q", n, got, want)
		}
	}
}
