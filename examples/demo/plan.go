package demo

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/ringiflow/ringi/examples/order"
)

const (
	// minSpan is the time over which even a few orders are spread: a dozen
	// kills have to find their place in it, with time to recover in between.
	minSpan = 30 * time.Second
	// maxSpan leaves two thirds of the three minutes that the demo may
	// take to orders that are held up by kills, and to slow machines.
	maxSpan = 60 * time.Second
	// perOrder is the time between two orders, within these limits.
	perOrder = 600 * time.Millisecond
	// chaosRate is how many come in a second under Config.Chaos, unless it says
	// otherwise: work for two cores.
	chaosRate = 8
	// openOrders is how many orders are under way at once at most, and how many
	// for each that comes in a second. More wait their turn, as they would while a
	// server is away for long.
	openOrders        = 64
	openOrdersPerRate = 12
)

// spanOf is the time over which n orders are fed.
func spanOf(n int) time.Duration {
	return min(max(time.Duration(n)*perOrder, minSpan), maxSpan)
}

// A plan is the orders that go in and when.
type plan struct {
	lines   []order.Line
	file    []byte        // the lines as they stand in orders.jsonl
	span    time.Duration // over which they are spread
	every   time.Duration // between two of them
	open    int           // under way at once, at most
	repeats bool          // the same orders come again and again, and none after span
}

// String says how many orders go in.
func (p plan) String() string {
	if p.repeats {
		return fmt.Sprintf("the orders again and again for %s", p.span)
	}
	return amount(len(p.lines), "order")
}

// planOf plans the first n embedded orders, all if n is 0, and repeats them
// under new ids for as long as chaos lasts, if it is not 0, rate in a second.
func planOf(n int, chaos time.Duration, rate int) (plan, error) {
	lines, err := order.Lines(n)
	if err != nil {
		return plan{}, err
	}
	feed := plan{lines: lines, file: order.OrdersFile(n), span: spanOf(len(lines)), open: openOrders}
	if chaos > 0 {
		if rate <= 0 {
			rate = chaosRate
		}
		feed.span, feed.repeats, feed.open = chaos, true, max(openOrders, openOrdersPerRate*rate)
		if feed.file, err = repeat(lines, int(chaos.Seconds()*float64(rate))+1); err != nil {
			return plan{}, err
		}
		if feed.lines, err = order.ParseLines(bytes.NewReader(feed.file)); err != nil {
			return plan{}, err
		}
	}
	feed.every = feed.span / time.Duration(len(feed.lines))
	return feed, nil
}

// repeat writes n lines that repeat these: the second time ORD-1 comes it
// is ORD-1-2. All else is carried over, faults and expectations too.
func repeat(lines []order.Line, n int) ([]byte, error) {
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

// firstLines returns the first n lines of an orders file.
func firstLines(file []byte, n int) []byte {
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
