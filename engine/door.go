package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
	"github.com/ringiflow/ringi/workflow"
)

const (
	// longestName bounds names, keys and codes, in bytes: they are columns
	// of indexes.
	longestName = 256
	// longestText bounds what people write as a reason or comment, in bytes.
	longestText = 4096
	// repairKeys is how the start keys of repair runs begin. Were one taken
	// beforehand, an effect that is found late could not be undone.
	repairKeys = "repair/"
)

// tenantOr is the tenant, or the default one when none was named.
func tenantOr(t ringi.Tenant) ringi.Tenant {
	if t == 0 {
		return ringi.DefaultTenant
	}
	return t
}

// Do implements the waist's method. A result whose error is unavailable
// because the caller went away may be of a command that was carried out.
func (d *door) Do(ctx context.Context, commands ...ringi.Command) []ringi.Result {
	call := &doorCall{results: make([]ringi.Result, len(commands)), done: make(chan struct{})}
	call.left.Store(int64(len(commands)) + 1)
	d.send(ctx, commands, call.set)
	call.count()
	select {
	case <-call.done:
		return call.results
	case <-ctx.Done():
	}
	out := make([]ringi.Result, len(commands))
	for i := range out {
		out[i] = ringi.Result{Run: commands[i].Run, Err: &ringi.Error{
			Code: ringi.CodeUnavailable, Message: "the caller stopped waiting; the command may be carried out",
			Hint: "send it again to learn its outcome", Err: ctx.Err(),
		}}
	}
	return out
}

// A door checks what comes in before anything is stored or decided.
type door struct{ *parts }

// send takes commands in; those of one committer stand in its inbox together, so
// that one commit can carry them all. then is called once for each, by its place,
// when its result is durable or it was refused.
func (d *door) send(ctx context.Context, commands []ringi.Command, then func(int, ringi.Result)) {
	to := make([][]*request, len(d.committers))
	for i, cmd := range commands {
		r := &request{cmd: cmd, done: func(s settled) { then(i, s.Result) }}
		if at, ok := d.submit(ctx, r); ok {
			to[at] = append(to[at], r)
		}
	}
	for at, rs := range to {
		d.committers[at].in.put(rs...)
	}
}

// submit checks a request, completes it, and finds its committer. ok is false
// when it was answered instead.
func (d *door) submit(ctx context.Context, r *request) (at int, ok bool) {
	r.cmd.Tenant = tenantOr(r.cmd.Tenant)
	r.cmd.Lost = nil
	if send, ok := r.cmd.Do.(ringi.SendEvent); ok {
		r.done(settled{Result: d.sendEvent(ctx, r.cmd, send)})
		return 0, false
	}
	var err error
	if r.def, err = d.admit(ctx, &r.cmd); err == nil {
		r.size = sizeOf(r.cmd.Do)
		at, err = d.address(r)
	}
	if err != nil {
		r.refuse(err)
		return 0, false
	}
	return at, true
}

// A doorCall gathers the results of one Do.
type doorCall struct {
	results []ringi.Result
	left    atomic.Int64
	done    chan struct{}
}

func (c *doorCall) set(i int, r ringi.Result) {
	c.results[i] = r
	c.count()
}

func (c *doorCall) count() {
	if c.left.Add(-1) == 0 {
		close(c.done)
	}
}

// A doorCheck keeps the first refusal of a list of checks.
type doorCheck struct{ err error }

func (c *doorCheck) fail(message, hint string) {
	if c.err == nil {
		c.err = &ringi.Error{Code: ringi.CodeInvalid, Message: message, Hint: hint}
	}
}

// name checks a name, key or code.
func (c *doorCheck) name(what, s string) {
	if len(s) > longestName {
		c.fail(fmt.Sprintf("the %s has %d bytes, the limit is %d", what, len(s), longestName), "shorten it")
	}
	c.clean(what, s)
}

// text checks what people write.
func (c *doorCheck) text(what, s string) {
	if len(s) > longestText {
		c.fail(fmt.Sprintf("the %s has %d bytes, the limit is %d", what, len(s), longestText), "shorten it")
	}
	c.clean(what, s)
}

func (c *doorCheck) clean(what, s string) {
	if !utf8.ValidString(s) {
		c.fail("the "+what+" is not valid UTF-8", "encode it")
	}
	if strings.IndexByte(s, 0) >= 0 {
		c.fail("the "+what+" contains a NUL byte", "remove it")
	}
}

// payload checks a JSON document that a person or program sends.
func (c *doorCheck) payload(what string, raw json.RawMessage) {
	if len(raw) > 0 {
		c.digest(what, raw)
	}
}

// digest is payload for a document whose digest is needed: one look at all of it
// serves for both.
func (c *doorCheck) digest(what string, raw json.RawMessage) string {
	if len(raw) > ringi.MaxPayload {
		if c.err == nil {
			c.err = &ringi.Error{
				Code: ringi.CodeTooLarge, Message: fmt.Sprintf("the %s has %d bytes, the limit is %d", what, len(raw), ringi.MaxPayload),
				Hint: "store the data elsewhere and send a reference",
			}
		}
		return ""
	}
	digest, err := workflow.Digest(raw)
	if err != nil {
		c.fail(fmt.Sprintf("the %s is not JSON that can be kept exactly: %v", what, err), "mend it")
	}
	return digest
}

// output checks what an activity answered. It did happen, so that the rules
// take it in whatever its size or schema; only what is no JSON cannot be kept.
func (c *doorCheck) output(raw json.RawMessage) {
	if len(raw) > 0 && !json.Valid(raw) {
		c.fail("the output is not JSON", "send it as JSON; the activity's effect is not recorded yet")
	}
}

// admit checks a command, and completes a start.
func (d *door) admit(ctx context.Context, cmd *ringi.Command) (*workflow.Definition, error) {
	if d.closed.Load() {
		return nil, draining()
	}
	var c doorCheck
	c.name("actor", cmd.Actor.ID)
	if start, ok := cmd.Do.(ringi.Start); ok {
		checkStart(&c, &start)
		if c.err != nil {
			return nil, c.err
		}
		return d.admitStart(ctx, cmd, start)
	}
	checkAction(&c, cmd)
	if c.err != nil {
		return nil, c.err
	}
	if _, ok := store.RunBytes(cmd.Run); !ok {
		return nil, &ringi.Error{Code: ringi.CodeNotFound, Message: fmt.Sprintf("there is no run %q", short(string(cmd.Run))), Hint: "check the id with `ringi runs`"}
	}
	return nil, nil
}

func short(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}

func checkStart(c *doorCheck, a *ringi.Start) {
	c.name("definition", a.Definition)
	c.name("start key", a.Key)
	c.name("requester", a.OnBehalfOf)
	c.name("event id", a.EventID)
	if len(a.Input) == 0 {
		a.Input = json.RawMessage("null")
	}
	a.InputDigest = c.digest("input", a.Input)
	if a.Repair != nil {
		c.fail("only the engine starts repair runs", "start an ordinary run")
	}
}

// admitStart finds the definition, fills in version and key, and checks the
// input. A start that is repeated after a new version was published may not fit
// that one any more: only when the input does not fit is the holder of its key
// looked up, so that a start costs no more than its commit.
func (d *door) admitStart(ctx context.Context, cmd *ringi.Command, a ringi.Start) (*workflow.Definition, error) {
	def, version, err := d.catalog.version(ctx, cmd.Tenant, a.Definition, a.Version)
	if err != nil {
		return nil, err
	}
	a.Version = version
	misfit := def.Input.Check(a.Input)
	key, err := ringi.StartKey(def, a, d.ev)
	if err != nil && misfit == nil {
		return nil, err
	}
	a.Key = key
	var c doorCheck
	c.name("start key", a.Key)
	if strings.HasPrefix(a.Key, repairKeys) {
		c.fail("start keys that begin with "+repairKeys+" belong to the engine", "use another key")
	}
	if c.err != nil {
		return nil, c.err
	}
	if misfit != nil {
		if cmd.Lost, err = d.holder(ctx, cmd.Tenant, a.Definition, a.Key); err != nil {
			return nil, err
		}
		if cmd.Lost == nil {
			return nil, &ringi.Error{
				Code: ringi.CodeInvalid, Message: fmt.Sprintf("the input does not fit %s: %v", def.Name, misfit),
				Hint: "mend the input", Err: misfit,
			}
		}
	}
	cmd.Do = a
	return def, nil
}

// holder finds the run that holds a start key, as a start that lost its race
// for the key is told of it; nil when nobody does. The rules say what the
// start is then: a repeat, or a conflict.
func (d *door) holder(ctx context.Context, tenant ringi.Tenant, definition, key string) (*ringi.Lost, error) {
	if key == "" {
		return nil, nil
	}
	list, _, err := d.Records.Runs(ctx, ringi.RunQuery{Tenant: tenant, Definition: definition, Key: key, Limit: 1})
	if d.reach.Note(ctx, err) != nil {
		return nil, storeFault(err)
	}
	if len(list) == 0 {
		return nil, nil
	}
	loaded, err := d.Store.Load(ctx, list[0].Key)
	if d.reach.Note(ctx, err) != nil {
		return nil, storeFault(err)
	}
	by := ringi.Holder{
		Run: list[0].Key.Run, Version: list[0].Version, Status: list[0].Status, InputDigest: list[0].InputDigest,
	}
	if s := loaded[0].Snapshot; s != nil {
		by.Seq = s.Seq
	}
	if n := len(loaded[0].Rows); n > 0 {
		by.Seq = loaded[0].Rows[n-1].Last
	}
	return &ringi.Lost{Holder: &by}, nil
}

func checkAction(c *doorCheck, cmd *ringi.Command) {
	switch a := cmd.Do.(type) {
	case ringi.BeginActivity:
		checkCall(c, a.CallRef, a.Worker)
	case ringi.CompleteActivity:
		checkCall(c, a.CallRef, a.Worker)
		c.output(a.Output)
	case ringi.FailActivity:
		checkCall(c, a.CallRef, a.Worker)
		c.name("failure code", a.Failure.Code)
		if a.Failure.Code == "" {
			c.fail("a failure needs a code", "name the kind of failure, such as card_declined")
		}
		a.Failure.Message = readable(a.Failure.Message)
		cmd.Do = a
	case ringi.DecideApproval:
		c.name("step", a.Step)
		c.name("subject digest", a.Digest)
		c.text("comment", a.Comment)
	case ringi.WithdrawDecision:
		c.name("step", a.Step)
		c.text("reason", a.Reason)
	case ringi.Cancel:
		c.text("reason", a.Reason)
	case ringi.Pause:
		c.text("reason", a.Reason)
	case ringi.Resume:
		c.text("reason", a.Reason)
	case ringi.Terminate:
		c.text("reason", a.Reason)
	case ringi.ResolveIncident:
		c.text("reason", a.Reason)
		c.name("activity", a.Activity)
		c.payload("output", a.Output)
		c.payload("input", a.Input)
	case ringi.FireTimer, ringi.ExpireLease, ringi.DeliverEvent:
		c.fail("only the engine sends "+kindOf(a), "")
	default:
		c.fail("there is no such command", "")
	}
}

func checkCall(c *doorCheck, ref ringi.CallRef, worker string) {
	c.name("step", ref.Step)
	c.name("worker", worker)
	switch ref.Direction {
	case ringi.Forward, ringi.Undo, ringi.Probe:
	default:
		c.fail(fmt.Sprintf("there is no direction %q", short(string(ref.Direction))), "send the one that the task had")
	}
}

// readable makes any text storable. A failure must be reportable whatever its
// message holds.
func readable(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
	if len(s) <= longestText {
		return s
	}
	return strings.ToValidUTF8(s[:longestText], "")
}

// sendEvent checks and stores an event.
func (d *door) sendEvent(ctx context.Context, cmd ringi.Command, a ringi.SendEvent) ringi.Result {
	if d.closed.Load() {
		return ringi.Result{Err: draining()}
	}
	var c doorCheck
	c.name("actor", cmd.Actor.ID)
	c.name("event id", a.ID)
	c.name("event name", a.Name)
	c.name("event key", a.Key)
	c.payload("data", a.Data)
	if a.Name == "" {
		c.fail("an event needs a name", "give the one that the waits name")
	}
	if c.err != nil {
		return ringi.Result{Err: c.err}
	}
	return d.waits.send(ctx, cmd, a)
}
