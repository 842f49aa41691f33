package build

// A Step is one step.
type Step struct {
	ID    string // unique in the definition; only Fail and Finish may go without
	Title string
	When  string // a bare expression: the step runs only if it holds
	Do    Verb   // what the step does
	Catch []Catch
}

// A Verb is what a step does: Activity, HTTP, Approval, Sleep, Until, Event, Choose,
// Parallel, Emit, Set, Group, Fail or Finish of this package.
type Verb interface {
	// write adds the verb, and the keys beside it, to the step's mapping.
	write(step object)
}

// Catch is what is done when its step fails in one of these ways: failure codes
// of the worker, timed_out, rejected, expired, cancelled, bad_output, expression
// or * for every failure.
type Catch struct {
	On []string
	Do []Step // nil is nothing
}

func steps(list []Step) []object {
	out := make([]object, len(list))
	for i, s := range list {
		o := object{}
		o.text("id", s.ID)
		o.text("title", s.Title)
		o.text("when", s.When)
		if s.Do != nil { // without one the checker says so
			s.Do.write(o)
		}
		var catches []object
		for _, c := range s.Catch {
			catches = append(catches, object{"on": c.On, "do": steps(c.Do)})
		}
		if catches != nil {
			o["catch"] = catches
		}
		out[i] = o
	}
	return out
}

// Set gives names to values: vars.NAME in later expressions.
type Set map[string]any

func (v Set) write(step object) { step["set"] = map[string]any(v) }

// Group is a list of steps that one condition or one catch holds for.
type Group []Step

func (v Group) write(step object) { step["do"] = steps(v) }

// Fail ends the run, or what stands in a catch, with a failure.
type Fail struct {
	Code    string
	Message string // may hold expressions
}

func (v Fail) write(step object) {
	o := object{"code": v.Code}
	o.text("message", v.Message)
	step["fail"] = o
}

// Finish completes the run at once, with this output.
type Finish struct{ Output any }

func (v Finish) write(step object) {
	o := object{}
	o.value("output", v.Output)
	step["finish"] = o
}

// Emit writes a message to the outbox, in the same commit as the step.
type Emit struct {
	Type          string // what happened
	AggregateType string // the kind of thing that it happened to
	AggregateID   string // which one; may hold expressions
	Data          any    // JSON; texts in it may hold expressions
}

func (v Emit) write(step object) {
	o := object{"type": v.Type, "aggregate": object{"type": v.AggregateType, "id": v.AggregateID}}
	o.value("data", v.Data)
	step["emit"] = o
}

// Choose takes the first case whose condition holds, else Else.
type Choose struct {
	Cases []Case
	Else  []Step // nil is nothing
}

// A Case is a condition, a bare expression, and its steps.
type Case struct {
	If string
	Do []Step
}

func (v Choose) write(step object) {
	var cases []object
	for _, c := range v.Cases {
		cases = append(cases, object{"if": c.If, "do": steps(c.Do)})
	}
	step["choose"] = append(cases, object{"else": steps(v.Else)})
}

// Parallel runs its branches side by side, by their names.
type Parallel map[string][]Step

func (v Parallel) write(step object) {
	branches := object{}
	for name, list := range v {
		branches[name] = steps(list)
	}
	step["parallel"] = object{"branches": branches}
}

// Sleep waits for a length of time.
type Sleep struct{ For Duration }

func (v Sleep) write(step object) { step["wait"] = object{"for": v.For.String()} }

// Until waits for an instant: as in RFC 3339, or an expression that yields one.
type Until struct{ Instant string }

func (v Until) write(step object) { step["wait"] = object{"until": v.Instant} }

// Event waits for an event of a name and a key.
type Event struct {
	Name    string
	Key     string   // may hold expressions
	Timeout Duration // zero waits for ever
	Then    string   // at the time-out: "fail" (the default) or "continue"
}

func (v Event) write(step object) {
	o, timeout := object{"event": v.Name, "key": v.Key}, object{}
	timeout.span("after", v.Timeout)
	timeout.text("then", v.Then)
	o.inner("timeout", timeout)
	step["wait"] = o
}
