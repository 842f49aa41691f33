package redis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ringiflow/ringi/inbox"
)

// Names under which a delivery's headers have what is not a field of the entry.
const (
	HeaderStream = "redis-stream"
	HeaderPlace  = "redis-place" // stream/entry

	fieldID = "ce-id"
)

// owner is the one consumer of a group. Who has an entry is told by the signs of
// life alone, so that processes need no names of their own, which would stay in
// the group when they are gone.
const owner = "ringi"

// left is how long an entry is said to have waited when it is given back.
const left = 24 * time.Hour

// takeNext takes the next entry of the stream KEYS[1] for the group ARGV[1] and
// its owner ARGV[2]: the oldest that nobody gave a sign of life for in ARGV[3]
// milliseconds, else a new one if fewer than ARGV[4] are out. It answers with the
// entry and how often it was handed out; with the stream's last id when there is
// nothing new; or with "busy".
const takeNext = `
local out = redis.call('XPENDING', KEYS[1], ARGV[1], '-', '+', ARGV[4])
local n = #out
for _, entry in ipairs(out) do
	if entry[3] >= tonumber(ARGV[3]) then
		local taken = redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[2], ARGV[3], entry[1])
		if taken[1] then
			return {taken[1], entry[4] + 1}
		end
		redis.call('XACK', KEYS[1], ARGV[1], entry[1]) -- it was trimmed
		n = n - 1
	end
end
if n >= tonumber(ARGV[4]) then
	return 'busy'
end
local read = redis.call('XREADGROUP', 'GROUP', ARGV[1], ARGV[2], 'COUNT', 1, 'STREAMS', KEYS[1], '>')
if read then
	return {read[1][2][1], 1}
end
local about = redis.call('XINFO', 'STREAM', KEYS[1])
for i = 1, #about, 2 do
	if about[i] == 'last-generated-id' then
		return about[i + 1]
	end
end
`

// An entry is out: here, until it is answered.
type entry struct {
	id      string
	fields  map[string]string
	attempt int
}

// Round waits a while for an entry, receives it until it is done or set aside, and
// acknowledges it. The error is the server's; a failure of the work is none.
func (c *Consumer) Round(ctx context.Context) error {
	if err := c.join(ctx); err != nil {
		return err
	}
	e, last, err := c.take(ctx)
	switch {
	case err != nil:
		return c.lost(err)
	case e != nil:
		return c.receive(ctx, e)
	case last == "":
		inbox.Rest(ctx, min(idlePause, c.cfg.AckWait))
		return nil
	}
	// Only a sign that there is something; what is taken is decided above.
	err = c.client.XRead(ctx, &redis.XReadArgs{Streams: []string{c.cfg.Stream, last}, Count: 1, Block: min(fetchWait, c.cfg.AckWait)}).Err()
	if err != nil && !errors.Is(err, redis.Nil) && ctx.Err() == nil {
		return c.lost(err)
	}
	return nil
}

// join makes the group, and the stream if it is not there.
func (c *Consumer) join(ctx context.Context) error {
	if c.joined {
		return nil
	}
	err := c.client.XGroupCreateMkStream(ctx, c.cfg.Stream, c.cfg.Name, "0").Err()
	if err != nil && !strings.HasPrefix(err.Error(), "BUSYGROUP") {
		return fmt.Errorf("redis: group %s of stream %s: %w", c.cfg.Name, c.cfg.Stream, err)
	}
	c.joined = true
	return nil
}

// lost has the group looked for again before the next entry; somebody may have
// deleted it.
func (c *Consumer) lost(err error) error {
	c.joined = false
	return fmt.Errorf("redis: read stream %s: %w", c.cfg.Stream, err)
}

// take takes the next entry; without one it answers with the last id of the
// stream, which is empty while others have as many as may be out.
func (c *Consumer) take(ctx context.Context) (e *entry, last string, err error) {
	answer, err := c.client.Eval(ctx, takeNext, []string{c.cfg.Stream}, c.cfg.Name, owner, c.cfg.AckWait.Milliseconds(), c.cfg.Pending).Result()
	if err != nil {
		return nil, "", err
	}
	switch a := answer.(type) {
	case string:
		if a == "busy" {
			a = ""
		}
		return nil, a, nil
	case []any:
		e, err = parse(a)
		return e, "", err
	}
	return nil, "", fmt.Errorf("the server answered %v", answer)
}

// parse reads {{id, {name, value, …}}, handed out}.
func parse(answer []any) (*entry, error) {
	unknown := fmt.Errorf("the server answered %v", answer)
	if len(answer) != 2 {
		return nil, unknown
	}
	whole, isEntry := answer[0].([]any)
	attempt, isNumber := answer[1].(int64)
	if !isEntry || !isNumber || len(whole) != 2 {
		return nil, unknown
	}
	id, isText := whole[0].(string)
	words, areWords := whole[1].([]any)
	if !isText || !areWords || len(words)%2 != 0 {
		return nil, unknown
	}
	e := &entry{id: id, fields: make(map[string]string, len(words)/2), attempt: int(min(attempt, 1<<30))}
	for i := 0; i < len(words); i += 2 {
		name, isText := words[i].(string)
		value, isAlso := words[i+1].(string)
		if !isText || !isAlso {
			return nil, unknown
		}
		e.fields[name] = value
	}
	return e, nil
}

// receive does the work of one entry, again and again while it fails, and then
// acknowledges it. The entry is kept meanwhile and not given back to the server:
// every hand-out counts there, so that a database that is down for some minutes
// would look like a message that kills processes.
func (c *Consumer) receive(ctx context.Context, e *entry) error {
	quiet := c.keep(ctx, e)
	d := c.delivery(e)
	outcome, _ := c.receiver().Insist(ctx, d, nil) // its error was observed
	quiet()
	answering, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerWait)
	defer cancel()
	var err error
	if outcome == inbox.Failed {
		err = c.sign(answering, e, left) // we are stopping; somebody else may have it at once
	} else {
		err = c.client.XAck(answering, c.cfg.Stream, c.cfg.Name, e.id).Err()
	}
	if err != nil {
		return fmt.Errorf("redis: answer for entry %s: %w", d.ID, err)
	}
	return nil
}

// keep says signs of life for an entry until stop is called.
func (c *Consumer) keep(ctx context.Context, e *entry) (stop func()) {
	signing, quiet := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(c.cfg.AckWait / signs)
		defer ticker.Stop()
		for {
			select {
			case <-signing.Done():
				return
			case <-ticker.C:
				// A sign that got lost costs a second delivery, which is dropped.
				_ = c.sign(signing, e, 0)
			}
		}
	}()
	return func() {
		quiet()
		<-ended
	}
}

// sign says that an entry waits for so long; it does not count as a hand-out.
func (c *Consumer) sign(ctx context.Context, e *entry, idle time.Duration) error {
	return c.client.Do(ctx, "XCLAIM", c.cfg.Stream, c.cfg.Name, owner, 0, e.id, "IDLE", idle.Milliseconds(), "JUSTID").Err()
}

// delivery is an entry as the inbox takes it.
func (c *Consumer) delivery(e *entry) inbox.Delivery {
	place := c.cfg.Stream + "/" + e.id
	d := inbox.Delivery{ID: place, Body: []byte(e.fields[c.cfg.Body]), Headers: maps.Clone(e.fields), Attempt: e.attempt}
	delete(d.Headers, c.cfg.Body)
	if id := e.fields[fieldID]; inbox.Usable(id) {
		d.ID = id
	}
	d.Headers[HeaderStream], d.Headers[HeaderPlace] = c.cfg.Stream, place
	return d
}
