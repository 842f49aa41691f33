package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ringiflow/ringi/outbox"
)

// held is the answer of the script for a message behind a failure of its key.
const held = "held"

// appendAll appends messages to the stream KEYS[1]. ARGV[1] is about how many
// entries the stream keeps, 0 for all. Then for each message: its key, empty when
// it is unordered; how many words follow; names and values of its fields. The
// answer has for each an empty text, the server's error, or held.
const appendAll = `
local answers, failed, at = {}, {}, 2
while at <= #ARGV do
	local key, words = ARGV[at], tonumber(ARGV[at + 1])
	if key ~= '' and failed[key] then
		answers[#answers + 1] = 'held'
	else
		local call = {'XADD', KEYS[1]}
		if ARGV[1] ~= '0' then
			call[3], call[4], call[5] = 'MAXLEN', '~', ARGV[1]
		end
		call[#call + 1] = '*'
		for i = at + 2, at + 1 + words do
			call[#call + 1] = ARGV[i]
		end
		local answer = redis.pcall(unpack(call))
		if type(answer) == 'table' and answer.err then
			if key ~= '' then failed[key] = true end
			answers[#answers + 1] = answer.err
		else
			answers[#answers + 1] = ''
		end
	end
	at = at + 2 + words
end
return answers
`

// errReplicas is the answer when too few replicas have a message in time. The
// server has it.
var errReplicas = errors.New("redis: too few replicas have the message; it is sent again, and its consumers see it twice")

// Publish implements outbox.Sink. It returns when every message has its answer,
// at the latest when ctx or the configured time-out ends.
func (s *Sink) Publish(ctx context.Context, msgs []outbox.Message) []error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	answers := make([]error, len(msgs))
	failed := map[outbox.Key]bool{}
	for from := 0; from < len(msgs); {
		p := s.part(msgs, from, failed, answers)
		for _, stream := range p.order {
			s.append(ctx, stream, msgs, p.streams[stream], answers)
		}
		for i := from; i < p.end; i++ {
			if answers[i] != nil && msgs[i].Seq > 0 {
				failed[msgs[i].Key()] = true
			}
		}
		from = p.end
	}
	return answers
}

// A part of a batch can be sent stream by stream: no key has messages in two of
// its streams.
type part struct {
	streams map[string][]int
	order   []string
	end     int // the first message behind it
}

// part makes the part that begins with a message, and answers for the messages
// that cannot be sent and for those behind a failure.
func (s *Sink) part(msgs []outbox.Message, from int, failed map[outbox.Key]bool, answers []error) part {
	p := part{streams: map[string][]int{}, end: from}
	place := map[outbox.Key]string{}
	for ; p.end < len(msgs); p.end++ {
		m, i := &msgs[p.end], p.end
		stream := s.cfg.Stream(m)
		if m.Seq > 0 {
			if at, ok := place[m.Key()]; ok && at != stream {
				return p
			}
			place[m.Key()] = stream
		}
		if m.Seq > 0 && failed[m.Key()] {
			answers[i] = outbox.ErrHeld
			continue
		}
		if err := s.check(stream, m); err != nil {
			answers[i] = outbox.Refuse(err)
			failed[m.Key()] = m.Seq > 0
			continue
		}
		if p.streams[stream] == nil {
			p.order = append(p.order, stream)
		}
		p.streams[stream] = append(p.streams[stream], i)
	}
	return p
}

// append sends the messages of one stream and answers for each.
func (s *Sink) append(ctx context.Context, stream string, msgs []outbox.Message, these []int, answers []error) {
	said, err := s.run(ctx, stream, s.arguments(msgs, these))
	if err == nil && len(said) != len(these) {
		err = fmt.Errorf("the server gave %d answers for %d messages", len(said), len(these))
	}
	for n, i := range these {
		switch {
		case err != nil:
			answers[i] = judge(stream, err)
		case said[n] == held:
			answers[i] = outbox.ErrHeld
		case said[n] != "":
			answers[i] = outbox.Excuse(fmt.Errorf("redis: stream %s: %s", stream, said[n]))
		}
	}
}

// arguments are those of appendAll.
func (s *Sink) arguments(msgs []outbox.Message, these []int) []any {
	args := []any{s.cfg.Keep}
	keys := map[outbox.Key]int{}
	for _, i := range these {
		key := ""
		if m := &msgs[i]; m.Seq > 0 {
			if _, known := keys[m.Key()]; !known {
				keys[m.Key()] = len(keys)
			}
			key = strconv.Itoa(keys[m.Key()])
		}
		fields := s.fields(&msgs[i])
		args = append(append(args, key, len(fields)), fields...)
	}
	return args
}

// run runs appendAll, and waits until enough replicas have what it appended.
func (s *Sink) run(ctx context.Context, stream string, args []any) ([]string, error) {
	node, err := s.node(ctx, stream)
	if err != nil {
		return nil, err
	}
	if s.cfg.Replicas == 0 {
		return node.Eval(ctx, appendAll, []string{stream}, args...).StringSlice()
	}
	wait := s.cfg.Timeout
	if end, ok := ctx.Deadline(); ok {
		wait = max(time.Until(end)-waitMargin, time.Millisecond)
	}
	// Both on one connection: the server waits for what came over the same.
	pipe := node.Pipeline()
	eval, replicas := pipe.Eval(ctx, appendAll, []string{stream}, args...), pipe.Do(ctx, "WAIT", s.cfg.Replicas, wait.Milliseconds())
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, err
	}
	if n, err := replicas.Int(); err != nil || n < s.cfg.Replicas {
		return nil, fmt.Errorf("%w: %d of %d", errReplicas, n, s.cfg.Replicas)
	}
	return eval.StringSlice()
}

// node is who holds a stream.
func (s *Sink) node(ctx context.Context, stream string) (redis.UniversalClient, error) {
	if cluster, ok := s.client.(*redis.ClusterClient); ok && s.cfg.Replicas > 0 {
		return cluster.MasterForKey(ctx, stream)
	}
	return s.client, nil
}

// judge tells trouble of the destination, which costs no attempt, from an answer
// that did not come.
func judge(stream string, err error) error {
	wrapped := fmt.Errorf("redis: stream %s: %w", stream, err)
	var said redis.Error
	var broken *net.OpError
	var late net.Error
	switch {
	case errors.As(err, &said), errors.As(err, &broken) && broken.Op == "dial":
		return outbox.Excuse(wrapped)
	case errors.Is(err, errReplicas), errors.As(err, &late) && late.Timeout():
		return fmt.Errorf("%w (%w)", wrapped, context.DeadlineExceeded)
	}
	return wrapped
}
