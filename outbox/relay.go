package outbox

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/ringiflow/ringi/outbox/crash"
)

// Policy says what becomes of a message that its destination refuses again and
// again.
type Policy int

// The policies.
const (
	// DeadLetter sets it aside after RelayConfig.Attempts tries; later messages
	// of its key go on without it.
	DeadLetter Policy = iota
	// Block tries it for ever, at most RelayConfig.PauseMost apart; later
	// messages of its key wait. Stats.Failing shows it.
	Block
	// Park sets it aside after RelayConfig.Attempts tries, and its whole key with
	// it: nothing is sent out of order, and nothing is tried until a person looks
	// (Desk.Retry, Desk.Purge). Report.Parked and Stats.Parked tell.
	Park
)

// Defaults of RelayConfig, each with its reason.
const (
	DefaultBatch      = 256                   // as many as a commit of the engine; one fsync carries them all
	DefaultBatchBytes = 4 << 20               // a batch of the largest payloads stays small in memory
	DefaultLease      = 30 * time.Second      // a stopped relay holds its batch no longer than that
	DefaultAttempts   = 10                    // with the pauses below about four minutes of refusals
	DefaultPauseFirst = time.Second           // the engine's own retry pause
	DefaultPauseMost  = time.Minute           // the engine's own longest retry pause
	DefaultDoubt      = time.Hour             // longer than a deployment that answers errors goes unnoticed
	DefaultCircuit    = 30 * time.Second      // the longest wait between a recovery and its notice
	DefaultPollFirst  = 10 * time.Millisecond // shorter than anybody waits for, long enough to cost nothing
	DefaultPollMost   = time.Second           // the delay that a lost wake-up costs
	DefaultRetention  = 24 * time.Hour        // long enough to notice that a consumer lost something
	DefaultPruneEvery = time.Minute           // cheap when there is nothing to do
	DefaultPruneChunk = 500                   // a delete that holds up no other writer
)

// RelayConfig configures a Relay. Source and Sink are needed; every other field
// has a default that its zero value stands for.
type RelayConfig struct {
	Source Source
	Sink   Sink

	// Destination is whose messages are delivered; empty means those that name
	// none. Each destination has a relay of its own, and so a circuit of its own:
	// one that is down or slow holds up no other.
	Destination string

	// Fleet, if set, shares the partitions of the destination with relays in
	// other processes; usually it is the source itself. Without it the relay
	// takes from all partitions, which several relays may do too, but then
	// their claims wait for each other.
	Fleet Fleet

	// Feed, if set, tells a running relay of messages when they are committed; it
	// polls only every PollMost then, to find what the feed did not tell.
	Feed Feed

	// Now is the clock; nil means time.Now, or with a fleet its database's clock.
	Now func() time.Time

	// Name stands in the table while the relay has a message; empty means
	// "relay". With a fleet it must be no other relay's, so there a few random
	// letters are added to it.
	Name string

	// Batch and BatchBytes bound one claim, in messages and payload bytes.
	Batch      int
	BatchBytes int

	// Lease is how long a claim lasts. Publishing is given half of it, so that
	// the marks arrive before it ends.
	Lease time.Duration

	// AfterLast and Attempts say what becomes of a message that is refused;
	// PauseFirst and PauseMost are the pauses between its tries, doubling and
	// spread by a fifth to both sides.
	AfterLast  Policy
	Attempts   int
	PauseFirst time.Duration
	PauseMost  time.Duration

	// Circuit is the longest pause between two looks at a destination that is
	// down. The first pause is PauseFirst, or Circuit if that is shorter.
	Circuit time.Duration

	// Doubt is how long a destination may answer the only message that it gets with
	// an error of its own before that counts as the message's, and its attempts
	// begin to be spent. When other messages get through, it counts at once.
	Doubt time.Duration

	// PollFirst and PollMost bound the pause of Run after a round without work;
	// it doubles from the one to the other. A hint on Wake ends it at once.
	// Hints may get lost; polling is the guarantee. A nil Wake never hints.
	PollFirst time.Duration
	PollMost  time.Duration
	Wake      <-chan struct{}

	// Retention is how long a message is kept after its delivery; negative
	// keeps it for ever. Every PruneEvery, PruneChunk at a time are deleted.
	Retention  time.Duration
	PruneEvery time.Duration
	PruneChunk int

	// Observe, if set, is told about every round that did or met something,
	// from the relay's goroutine; it must not block.
	Observe func(Report)
}

// Report is what one round did.
type Report struct {
	At          time.Time
	Destination string

	// Claimed messages were each delivered, failed (to be tried again), set
	// aside as dead, parked with their key, or released (not tried, or the
	// destination was down).
	Claimed, Delivered, Failed, Dead, Parked, Released int

	// Fed counts those of the claimed that a feed told of, and earlier ones of their
	// keys; the others were found by polling.
	Fed int

	// Partitions is how many the relay has; 0 without a fleet.
	Partitions int

	// Lost counts marks that changed nothing, because the lease had ended and
	// the message was claimed anew, or because an earlier try of the mark had
	// reached the source after all.
	Lost int

	// Pruned messages were deleted, long after their delivery.
	Pruned int

	// Down is why the destination is taken for down; Until is when it is
	// looked at again.
	Down  error
	Until time.Time

	// Refused is why the first of the messages that failed, died or were parked did;
	// nil if none did.
	Refused error

	// Err is what the round returned.
	Err error
}

// Relay moves messages from a source to a sink. One goroutine calls Round or
// Run; several relays may share a source. Memory of the relay (its circuit and
// the marks that it could not write) only saves work; the table is the proof.
type Relay struct {
	cfg      RelayConfig
	circuit  circuit
	unmarked []Mark // settled, but the source did not take the marks yet
	pruneAt  time.Time

	parts     []Partition   // what the fleet gave
	holdAt    time.Time     // when to ask the fleet again
	holdPause time.Duration // how long after that once more
	heldAt    time.Time     // when it was asked
	clock     fleetClock

	ahead    ahead
	feed     feeding
	writing  *writing // marks that are being written while the relay goes on
	suspects suspects
}

// NewRelay checks cfg and fills its defaults in.
func NewRelay(cfg RelayConfig) (*Relay, error) {
	if cfg.Source == nil || cfg.Sink == nil {
		return nil, errors.New("outbox: a relay needs a source and a sink; set both in its config")
	}
	if cfg.AfterLast < DeadLetter || cfg.AfterLast > Park {
		return nil, fmt.Errorf("outbox: policy %d is not known; use DeadLetter, Block or Park", cfg.AfterLast)
	}
	if cfg.Name == "" {
		cfg.Name = "relay"
	}
	if cfg.Fleet != nil {
		cfg.Name += "-" + rand.Text()[:8]
	}
	if cfg.Observe == nil {
		cfg.Observe = func(Report) {}
	}
	orDefault(&cfg.Batch, DefaultBatch)
	orDefault(&cfg.BatchBytes, DefaultBatchBytes)
	orDefault(&cfg.Attempts, DefaultAttempts)
	orDefault(&cfg.PruneChunk, DefaultPruneChunk)
	orDefault(&cfg.Lease, DefaultLease)
	orDefault(&cfg.PauseFirst, DefaultPauseFirst)
	orDefault(&cfg.PauseMost, DefaultPauseMost)
	orDefault(&cfg.Circuit, DefaultCircuit)
	orDefault(&cfg.Doubt, DefaultDoubt)
	orDefault(&cfg.PollFirst, DefaultPollFirst)
	orDefault(&cfg.PollMost, DefaultPollMost)
	orDefault(&cfg.PruneEvery, DefaultPruneEvery)
	if cfg.Retention == 0 {
		cfg.Retention = DefaultRetention
	}
	r := &Relay{cfg: cfg}
	if cfg.Now == nil {
		r.cfg.Now = time.Now
		if cfg.Fleet != nil {
			r.cfg.Now = r.clock.now
			r.clock.follows = true
		}
	}
	return r, nil
}

// orDefault takes nothing and less for not set.
func orDefault[T int | time.Duration](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}

// Round does one bounded round: write marks that are owed, renew what the fleet
// gave, claim a batch, publish it outside any transaction, mark it, and now and
// then prune. worked says that calling again at once may do more. The error is
// the source's, or that of a sink that broke its contract; a destination that is
// down is not an error. Only under Run is the next batch claimed meanwhile.
func (r *Relay) Round(ctx context.Context) (worked bool, err error) {
	rep := Report{At: r.cfg.Now(), Destination: r.cfg.Destination}
	worked, err = r.round(ctx, &rep)
	rep.Err = err
	if worked || err != nil || rep.Down != nil || rep.Pruned > 0 {
		r.cfg.Observe(rep)
	}
	return worked, err
}

func (r *Relay) round(ctx context.Context, rep *Report) (bool, error) {
	r.putBack(rep)
	// With the next batch in its hands the relay goes on while marks are written.
	if !r.ahead.has() || len(r.unmarked) > 0 {
		if err := r.settle(ctx, rep); err != nil {
			return false, err
		}
	}
	if err := r.hold(ctx, rep); err != nil {
		return false, err
	}
	worked, err := r.deliver(ctx, rep)
	if err != nil || ctx.Err() != nil {
		return worked, err
	}
	more, err := r.prune(ctx, rep)
	return worked || more, err
}

// deliver claims, publishes and marks one batch.
func (r *Relay) deliver(ctx context.Context, rep *Report) (bool, error) {
	batch, err := r.take(ctx, rep)
	if err != nil || len(batch.Messages) == 0 {
		return batch.More || rep.Claimed > 0, err
	}
	crash.At(crash.Claimed)
	rep.Claimed += len(batch.Messages)
	tries, spent := r.sort(batch.Messages)
	for _, m := range spent {
		r.owe(rep, Mark{ID: m.ID, Epoch: m.Epoch, Fence: m.Fence, Outcome: r.last(), Error: errSpent.Error()})
		rep.Refused = errSpent
	}
	crash.At(crash.Publishing)
	claimed := r.claimAhead(ctx, batch)
	if len(tries) > 0 {
		err = r.try(ctx, rep, tries)
	}
	if err != nil { // left to their lease
		r.abandoned(batch.Messages)
	}
	err = errors.Join(err, claimed())
	// Without a fleet the writers of a source wait for each other anyway.
	if err == nil && r.cfg.Fleet != nil && r.ahead.has() && ctx.Err() == nil {
		return true, r.settleBehind(ctx, rep)
	}
	// Also when ctx has ended: what is known about the batch must not be lost
	// to a shutdown, or it is sent again.
	settling, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.cfg.Lease/2)
	defer cancel()
	return true, errors.Join(err, r.settle(settling, rep))
}

// errSpent is why a message is set aside whose every attempt ended with its relay.
var errSpent = errors.New("no answer to any of its attempts: the relay stopped while it was being sent")

// take returns the batch that was claimed ahead, or claims one.
func (r *Relay) take(ctx context.Context, rep *Report) (Batch, error) {
	if r.ahead.has() {
		r.spill() // full batches one behind the other are a backlog
		batch := r.ahead.batch
		r.ahead.batch = Batch{}
		return batch, nil
	}
	if r.circuit.open(rep.At) || r.cfg.Fleet != nil && len(r.parts) == 0 {
		r.spill()
		return Batch{}, nil
	}
	limit := r.cfg.Batch
	if r.circuit.probing(rep.At) {
		limit = 1
	}
	return r.claim(ctx, rep, limit)
}

func (r *Relay) claimOf(now time.Time, limit int) Claim {
	return Claim{
		By: r.cfg.Name, Destination: r.cfg.Destination, Partitions: r.parts,
		Now: now, Lease: r.cfg.Lease, Limit: limit, Bytes: r.cfg.BatchBytes,
	}
}

// sort parts the messages that may be tried from those that have spent their
// attempts without an answer, which happens when each one killed the relay. One
// that was answered and has spent more attempts than there are now, because there
// were more when it failed or the policy was Block, is tried once more: it stands
// in front of others of its key, which go as far as its answer lets them.
func (r *Relay) sort(msgs []ClaimedMessage) (tries, spent []ClaimedMessage) {
	for _, m := range msgs {
		if m.Orphaned && r.cfg.AfterLast != Block && m.Attempt > r.cfg.Attempts {
			spent = append(spent, m)
			continue
		}
		tries = append(tries, m)
	}
	return tries, spent
}

// send publishes those of the claimed messages that can be read, and answers for
// the others. sent are the answers of the destination alone.
func (r *Relay) send(ctx context.Context, tries []ClaimedMessage) (results, sent []error, err error) {
	results = make([]error, len(tries))
	msgs, at := make([]Message, 0, len(tries)), make([]int, 0, len(tries))
	stuck := map[Key]bool{}
	for i := range tries {
		m := &tries[i]
		switch {
		case m.Unreadable != "":
			results[i] = Refuse(fmt.Errorf("outbox: message %s is not sent: %s", m.ID, m.Unreadable))
			stuck[m.Key()] = m.Seq > 0
		case len(stuck) > 0 && m.Seq > 0 && stuck[m.Key()]:
			results[i] = ErrHeld
		default:
			msgs, at = append(msgs, m.Message), append(at, i)
		}
	}
	if len(msgs) == 0 {
		return results, nil, nil
	}
	publishing, cancel := context.WithTimeout(ctx, r.cfg.Lease/2)
	defer cancel()
	if sent, err = publish(publishing, r.cfg.Sink, msgs); err != nil {
		return nil, nil, err
	}
	if len(msgs) == len(tries) {
		return sent, sent, nil
	}
	for n, i := range at {
		results[i] = sent[n]
	}
	return results, sent, nil
}

// try publishes claimed messages and decides the mark of each. After an error
// nothing is known about them and they are left to their lease.
func (r *Relay) try(ctx context.Context, rep *Report, tries []ClaimedMessage) error {
	results, sent, err := r.send(ctx, tries)
	if err != nil {
		return err
	}
	crash.At(crash.Acknowledged)
	now := r.cfg.Now()
	alive, down := verdict(sent)
	if alive {
		excuseSilence(results)
	}
	r.weigh(ctx, rep, tries, results, weight{alive, down, now})
	failed := map[Key]bool{}
	for i := range tries {
		m := &tries[i]
		var own charged
		charge := alive || errors.As(results[i], &own)
		mark := r.markOf(m, results[i], now, charge, ctx.Err() != nil, failed[m.Key()] && m.Seq > 0)
		if mark.Outcome != MarkDelivered && m.Seq > 0 {
			failed[m.Key()] = true
		}
		if rep.Refused == nil && mark.Outcome != MarkDelivered && mark.Outcome != MarkReleased {
			rep.Refused = results[i]
		}
		r.owe(rep, mark)
	}
	return nil
}

// weight is what one call told about a destination.
type weight struct {
	alive bool
	down  error
	now   time.Time
}

// charged is a failure without a verdict that counts as the message's own.
type charged struct{ error }

func (c charged) Unwrap() error { return c.error }

// weigh draws from a call what it says about the destination, and whether the only
// message that failed in it is charged all the same.
func (r *Relay) weigh(ctx context.Context, rep *Report, tries []ClaimedMessage, results []error, w weight) {
	if w.alive {
		r.suspects.took = w.now
		if r.circuit.failures > 0 {
			r.holdAt = time.Time{} // the others of the fleet hear of it at once
		}
		r.circuit.heal()
	}
	if ctx.Err() != nil {
		return
	}
	alone, n := -1, 0
	for i, err := range results {
		switch {
		case silent(err):
			r.suspects.note(tries[i].ID, w.now)
			alone, n = i, n+1
		case err == nil || Refused(err):
			r.suspects.forget(tries[i].ID)
		}
	}
	if w.alive || w.down == nil {
		return
	}
	if n == 1 && r.suspects.guilty(tries[alone].ID, results[alone], w.now, r.cfg.Attempts, r.cfg.Doubt) {
		results[alone] = charged{results[alone]}
		r.circuit.look(w.now) // another message tells how the destination is
		return
	}
	r.circuit.fail(w.now, min(r.cfg.PauseFirst, r.cfg.Circuit), r.cfg.Circuit)
	rep.Down, rep.Until = w.down, r.circuit.until
}

// excuseSilence leaves one message of a call to be charged with an attempt for want
// of an answer, the first. It may be what the destination chokes on, as one that
// breaks the connection; the others may only have stood behind it, or behind all
// that a slow destination did take, and would lose their attempts one after the
// other to its fault. What was answered with an error of its own is charged by
// itself.
func excuseSilence(results []error) {
	first := true
	for i, err := range results {
		if !silent(err) || Blamed(err) {
			continue
		}
		if !first {
			results[i] = Excuse(err)
		}
		first = false
	}
}

// verdict says whether the destination took anything, and if not, what kept it.
func verdict(results []error) (alive bool, down error) {
	refused := false
	for _, err := range results {
		switch {
		case err == nil:
			return true, nil
		case Refused(err):
			refused = true
		case down == nil && !errors.Is(err, ErrHeld):
			down = err
		}
	}
	// A destination that only refuses is there all the same.
	return refused && down == nil, down
}

// markOf decides what becomes of one message. alive says that the destination
// took something in this call: then an answer like an outage's is the message's
// own, or one message that breaks connections would stop all others for ever.
func (r *Relay) markOf(m *ClaimedMessage, result error, now time.Time, alive, stopping, behind bool) Mark {
	mark := Mark{ID: m.ID, Epoch: m.Epoch, Fence: m.Fence, NextAt: now}
	switch {
	case result == nil:
		mark.Outcome = MarkDelivered
	case behind:
		mark.Outcome = MarkReleased
	case stopping && !Refused(result):
		mark.Outcome = MarkReleased
	case !Refused(result) && !alive:
		// Later than everything else that is due, so that the next probe takes
		// another message in case it is this one that breaks the destination.
		mark.Outcome, mark.NextAt, mark.Error = MarkReleased, r.circuit.until, reason(result)
	case Excused(result):
		// Others got through, so the circuit is closed and the pause is its first.
		mark.Outcome, mark.NextAt, mark.Error = MarkReleased, now.Add(r.cfg.PauseFirst), reason(result)
	case r.cfg.AfterLast != Block && m.Attempt >= r.cfg.Attempts:
		mark.Outcome, mark.Error = r.last(), reason(result)
	default:
		mark.Outcome, mark.Error = MarkFailed, reason(result)
		mark.NextAt = now.Add(backoff(m.ID, m.Attempt, r.cfg.PauseFirst, r.cfg.PauseMost))
	}
	return mark
}

// last is what becomes of a message after its last attempt.
func (r *Relay) last() Outcome {
	if r.cfg.AfterLast == Park {
		return MarkParked
	}
	return MarkDead
}

// owe notes a mark for the next settle.
func (r *Relay) owe(rep *Report, m Mark) {
	switch m.Outcome {
	case MarkDelivered:
		rep.Delivered++
	case MarkFailed:
		rep.Failed++
	case MarkDead:
		rep.Dead++
	case MarkParked:
		rep.Parked++
	case MarkReleased:
		rep.Released++
	}
	r.unmarked = append(r.unmarked, m)
}

// prune deletes one chunk of old messages when it is time; after a full chunk it
// is time again at once.
func (r *Relay) prune(ctx context.Context, rep *Report) (more bool, err error) {
	if r.cfg.Retention < 0 || rep.At.Before(r.pruneAt) {
		return false, nil
	}
	rep.Pruned, err = r.cfg.Source.Prune(ctx, rep.At.Add(-r.cfg.Retention), r.cfg.PruneChunk)
	if err != nil {
		return false, err
	}
	if rep.Pruned == r.cfg.PruneChunk {
		return true, nil
	}
	r.pruneAt = rep.At.Add(r.cfg.PruneEvery)
	return false, nil
}

// Run calls Round until ctx ends and then returns nil, after the round under way
// has marked what it knows, and the relay has given back what it had claimed ahead
// and left its fleet. Behind a full batch, the next is claimed while that one is
// published. Errors of rounds go to Observe; Run pauses PollMost after one,
// but no longer than a second, and goes on, because a database comes back.
func (r *Relay) Run(ctx context.Context) error {
	r.ahead.on = true
	r.join()
	defer r.unjoin()
	pause := r.cfg.PollFirst
	for ctx.Err() == nil {
		worked, err := r.Round(ctx)
		switch {
		case err != nil:
			pause = min(r.cfg.PollMost, DefaultPollMost)
		case worked:
			pause = r.cfg.PollFirst
			continue
		}
		if hinted := r.wait(ctx, r.pauseFor(pause)); hinted {
			pause = r.cfg.PollFirst
			continue
		}
		pause = min(2*pause, r.cfg.PollMost)
	}
	r.stopAhead(ctx)
	r.leave(ctx)
	return nil
}

// wait pauses; a hint ends the pause early.
func (r *Relay) wait(ctx context.Context, pause time.Duration) (hinted bool) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-r.feed.hints:
		return true
	case _, open := <-r.cfg.Wake:
		if !open {
			r.cfg.Wake = nil // a closed channel would hint for ever
		}
		return open
	}
	return false
}
