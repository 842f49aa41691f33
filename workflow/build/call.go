package build

// Activity calls an activity of a worker.
type Activity struct {
	Name     string
	With     any      // Fields, or Expr of an object; nil sends {}
	Queue    string   // "" is the queue of the definition
	Key      string   // idempotency key; "" is made of run and step
	Contract Contract // what the effect can bear; nil is taken for AtMostOnce, with a warning
	Output   Schema
	Timeouts Timeouts
	Retry    Retry
	Accepted string // why a finding about the effect is meant
}

func (v Activity) write(step object) {
	step["activity"] = v.Name
	step.value("with", v.With)
	step.text("queue", v.Queue)
	step.text("key", v.Key)
	if v.Contract != nil {
		v.Contract.write(step)
	}
	step.schema("output", v.Output)
	step.inner("timeouts", v.Timeouts.object())
	step.inner("retry", v.Retry.object())
	step.text("accepted", v.Accepted)
}

// HTTP is a call over HTTP, which the server makes itself.
type HTTP struct {
	Request
	Key      string   // idempotency key; "" is made of run and step
	Contract Contract // nil is what the method says: GET and HEAD are pure, PUT and DELETE idempotent
	Undo     Undoing  // with a nil Contract; else the contract has it
	Output   Schema
	Timeouts Timeouts
	Retry    Retry
	Accepted string // why a finding about the effect is meant
}

func (v HTTP) write(step object) {
	step["http"] = v.Request.object()
	step.text("key", v.Key)
	if v.Contract != nil {
		v.Contract.write(step)
	} else {
		undo(step, v.Undo)
	}
	step.schema("output", v.Output)
	step.inner("timeouts", v.Timeouts.object())
	step.inner("retry", v.Retry.object())
	step.text("accepted", v.Accepted)
}

// A Request is what is sent over HTTP. Texts may hold expressions.
type Request struct {
	Method  string
	URL     string
	Headers map[string]string
	Query   Fields
	Body    any
	Expect  []int // statuses that are no failure; nil is every 2xx
}

func (r Request) object() object {
	o := object{"method": r.Method, "url": r.URL}
	if len(r.Headers) > 0 {
		o["headers"] = r.Headers
	}
	if len(r.Query) > 0 {
		o["query"] = r.Query
	}
	o.value("body", r.Body)
	if len(r.Expect) > 0 {
		o["expect"] = r.Expect
	}
	return o
}

// A Contract says what a side effect can bear when an answer is lost: Pure,
// Idempotent, Probeable or AtMostOnce.
type Contract interface {
	// write adds the keys of the contract to the step's mapping.
	write(step object)
}

// Pure only reads or computes: it is run again.
type Pure struct{}

func (Pure) write(step object) { step["effect"] = "pure" }

// Idempotent is repeated under the same key, which the service honours.
type Idempotent struct{ Undo Undoing }

func (c Idempotent) write(step object) {
	step["effect"] = "idempotent"
	undo(step, c.Undo)
}

// Probeable is not repeated but asked about.
type Probeable struct {
	Probe     Call   // answers { applied: yes | no | unknown, output }
	OnUnknown string // when the probe does not know either: "" asks a person; see workflow.OnUnknown
	Undo      Undoing
}

func (c Probeable) write(step object) {
	step["effect"] = "probeable"
	step["probe"] = c.Probe.object()
	step.text("on_unknown", c.OnUnknown)
	undo(step, c.Undo)
}

// AtMostOnce is never tried twice blindly.
type AtMostOnce struct {
	OnUnknown string // "" asks a person; see workflow.OnUnknown
	Undo      Undoing
}

func (c AtMostOnce) write(step object) {
	step["effect"] = "at_most_once"
	step.text("on_unknown", c.OnUnknown)
	undo(step, c.Undo)
}

// A Call is the call of a probe or of an undo: to an activity, or over HTTP.
type Call struct {
	Activity string
	With     any      // Fields, or Expr of an object
	HTTP     *Request // in place of both
}

func (c Call) object() object {
	if c.HTTP != nil {
		return object{"http": c.HTTP.object()}
	}
	o := object{"activity": c.Activity}
	o.value("with", c.With)
	return o
}

// Undoing says how an effect is undone: Compensate, or Irreversible. Nil is
// neither, which the checker finds.
type Undoing interface {
	// write adds what undoes the step to its mapping.
	write(step object)
}

func undo(step object, u Undoing) {
	if u != nil {
		u.write(step)
	}
}

// Compensate undoes the step by a call.
type Compensate struct {
	Call
	Once  bool   // the undo is at_most_once; else it is idempotent
	Key   string // idempotency key of the undo; "" is made of run and step
	Retry Retry
}

func (c Compensate) write(step object) {
	o := c.object()
	if c.Once {
		o["effect"] = "at_most_once"
	}
	o.text("key", c.Key)
	o.inner("retry", c.Retry.object())
	step["compensate"] = o
}

// Irreversible is the pivot: from here on the run only goes forward.
type Irreversible struct{}

func (Irreversible) write(step object) { step["irreversible"] = true }
