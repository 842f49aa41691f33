package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ringiflow/ringi/inbox"
)

// place is a partition of a topic.
type place struct {
	topic     string
	partition int32
}

// line is what was fetched of a partition and not done yet, in order.
type line struct {
	records  []*kgo.Record
	failures int       // of the first, in a row
	until    time.Time // nothing is tried before
	done     *kgo.Record
}

// Round fetches once, receives what is due, and commits the offsets of what is
// done. It waits for records, at most until ctx ends or a failed one is due
// again. The error is the broker's; a failure of the work is none.
func (c *Consumer) Round(ctx context.Context) error {
	err := c.fetch(ctx)
	c.work(ctx)
	err = errors.Join(err, c.commit(ctx))
	c.hold()
	// Only now may partitions go to others: what was done here is committed.
	c.client.AllowRebalance()
	return err
}

// fetch appends new records to their lines.
func (c *Consumer) fetch(ctx context.Context) error {
	waiting := ctx
	if at, some := c.nextTry(); some {
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeout(ctx, max(time.Millisecond, at.Sub(c.cfg.Now())))
		defer cancel()
	}
	fetches := c.client.PollRecords(waiting, c.cfg.Batch)
	c.mu.Lock()
	defer c.mu.Unlock()
	fetches.EachRecord(func(r *kgo.Record) {
		at := place{r.Topic, r.Partition}
		if c.lines[at] == nil {
			c.lines[at] = &line{}
		}
		c.lines[at].records = append(c.lines[at].records, r)
	})
	for _, e := range fetches.Errors() {
		if waiting.Err() == nil {
			return fmt.Errorf("kafka: fetch topic %q partition %d: %w", e.Topic, e.Partition, e.Err)
		}
	}
	return nil
}

// nextTry is when the first of the records that failed is due again.
func (c *Consumer) nextTry() (at time.Time, some bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.lines {
		if len(l.records) > 0 && (!some || l.until.Before(at)) {
			at, some = l.until, true
		}
	}
	return at, some
}

// work receives from every line that is due, several lines at once.
func (c *Consumer) work(ctx context.Context) {
	now := c.cfg.Now()
	var due []*line
	c.mu.Lock()
	for _, l := range c.lines {
		if len(l.records) > 0 && !now.Before(l.until) {
			due = append(due, l)
		}
	}
	c.mu.Unlock()
	var wg sync.WaitGroup
	slots := make(chan struct{}, c.cfg.Parallel)
	for _, l := range due {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			c.follow(ctx, l)
		})
	}
	wg.Wait()
}

// follow receives the records of a line up to the first that fails.
func (c *Consumer) follow(ctx context.Context, l *line) {
	for len(l.records) > 0 && ctx.Err() == nil {
		d := delivery(l.records[0])
		outcome, err := c.cfg.Receive(ctx, d)
		c.cfg.Observe(d, outcome, err)
		if outcome == inbox.Failed {
			if ctx.Err() == nil {
				l.until = c.cfg.Now().Add(inbox.Pause(c.cfg.PauseFirst, c.cfg.PauseMost, l.failures))
				l.failures++
			}
			return
		}
		l.done, l.records, l.failures = l.records[0], l.records[1:], 0
	}
}

// commit tells the broker what is done. When it fails, the records come again
// after a restart or a rebalance, and the inbox drops them.
func (c *Consumer) commit(ctx context.Context) error {
	var done []*kgo.Record
	c.mu.Lock()
	for _, l := range c.lines {
		if l.done != nil {
			done = append(done, l.done)
		}
	}
	c.mu.Unlock()
	if len(done) == 0 {
		return nil
	}
	// Also when ctx has ended: what is done shall not be received again.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTime)
	defer cancel()
	if err := c.client.CommitRecords(ctx, done...); err != nil {
		return fmt.Errorf("kafka: commit offsets of group %s: %w", c.cfg.Group, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.lines {
		l.done = nil
	}
	return nil
}

// hold stops fetching partitions whose line is not empty, so that a record that
// fails for long does not fill the memory with what stands behind it.
func (c *Consumer) hold() {
	full, empty := map[string][]int32{}, map[string][]int32{}
	c.mu.Lock()
	for at, l := range c.lines {
		if len(l.records) > 0 {
			full[at.topic] = append(full[at.topic], at.partition)
			continue
		}
		empty[at.topic] = append(empty[at.topic], at.partition)
	}
	c.mu.Unlock()
	c.client.PauseFetchPartitions(full)
	c.client.ResumeFetchPartitions(empty)
}

// forget drops the lines of partitions that others have now. They begin where
// the last commit says.
func (c *Consumer) forget(lost map[string][]int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for topic, partitions := range lost {
		for _, p := range partitions {
			delete(c.lines, place{topic, p})
		}
	}
}
