package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/ringiflow/ringi/examples/order"
)

const (
	// demoMinSpan is the time over which even a few orders are spread: a dozen
	// kills have to find their place in it, with time to recover in between.
	demoMinSpan = 30 * time.Second
	// demoMaxSpan leaves two thirds of the three minutes that the demo may
	// take to orders that are held up by kills, and to slow machines.
	demoMaxSpan = 60 * time.Second
	// demoPerOrder is the time between two orders, within these limits.
	demoPerOrder = 600 * time.Millisecond
	// demoChaosPerOrder is the same under --chaos: work for two cores.
	demoChaosPerOrder = 125 * time.Millisecond
	// demoOpen is how many orders are under way at once at most. More wait
	// their turn, as they would while a server is away for long.
	demoOpen = 64
)

// demoSpan is the time over which n orders are fed.
func demoSpan(n int) time.Duration {
	return min(max(time.Duration(n)*demoPerOrder, demoMinSpan), demoMaxSpan)
}

// A demoFeed is the orders that go in and when.
type demoFeed struct {
	lines   []order.Line
	file    []byte        // the lines as they stand in orders.jsonl
	span    time.Duration // over which they are spread
	every   time.Duration // between two of them
	repeats bool          // the same orders come again and again, and none after span
}

// String says how many orders go in.
func (f demoFeed) String() string {
	if f.repeats {
		return fmt.Sprintf("the orders again and again for %s", f.span)
	}
	return demoCount(len(f.lines), "order")
}

// demoFeedOf plans the first n embedded orders, all if n is 0, and repeats them
// under new ids for as long as chaos lasts, if it is not 0.
func demoFeedOf(n int, chaos time.Duration) (demoFeed, error) {
	lines, err := order.Lines(n)
	if err != nil {
		return demoFeed{}, err
	}
	if n > len(lines) {
		return demoFeed{}, usage("--chaos feeds them again and again", "there are %d orders, not %d", len(lines), n)
	}
	feed := demoFeed{lines: lines, file: order.OrdersFile(n), span: demoSpan(len(lines))}
	if chaos > 0 {
		feed.span, feed.repeats = chaos, true
		if feed.file, err = demoRepeat(lines, int(chaos/demoChaosPerOrder)+1); err != nil {
			return demoFeed{}, err
		}
		if feed.lines, err = order.ParseLines(bytes.NewReader(feed.file)); err != nil {
			return demoFeed{}, err
		}
	}
	feed.every = feed.span / time.Duration(len(feed.lines))
	return feed, nil
}

// demoRepeat writes n lines that repeat these: the second time ORD-1 comes it
// is ORD-1-2. All else is carried over, faults and expectations too.
func demoRepeat(lines []order.Line, n int) ([]byte, error) {
	var file bytes.Buffer
	for i := range n {
		line := lines[i%len(lines)]
		if round := i/len(lines) + 1; round > 1 {
			line.Order.OrderID = fmt.Sprintf("%s-%d", line.Order.OrderID, round)
		}
		text, err := json.Marshal(line)
		if err != nil {
			return nil, fmt.Errorf("repeat order %s: %w", line.Order.OrderID, err)
		}
		file.Write(append(text, '\n'))
	}
	return file.Bytes(), nil
}

// demoFirst returns the first n lines of an orders file.
func demoFirst(file []byte, n int) []byte {
	size := 0
	for range n {
		end := bytes.IndexByte(file[size:], '\n')
		if end < 0 {
			return file
		}
		size += end + 1
	}
	return file[:size]
}
