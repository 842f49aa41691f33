package grammar

import "slices"

// verbKeys are the verbs with what they hold.
func (g *Grammar) verbKeys() []Key {
	return []Key{
		{Name: "activity", Value: of(Name), Doc: "Calls an activity of a worker, such as payment.charge."},
		{Name: "http", Value: mapping(g.HTTP), Doc: g.HTTP.Doc},
		{Name: "approval", Value: mapping(g.Approval), Doc: g.Approval.Doc},
		{Name: "wait", Value: mapping(g.Wait), Doc: g.Wait.Doc},
		{Name: "choose", Value: Value{Kind: List, Item: ptr(mapping(g.Case)), Most: MaxWidth}, Doc: "Takes the first case whose condition holds."},
		{Name: "parallel", Value: mapping(g.Parallel), Doc: g.Parallel.Doc},
		{Name: "emit", Value: mapping(g.Emit), Doc: g.Emit.Doc},
		{Name: "set", Value: Value{Kind: Named, Names: Identifier, Item: ptr(of(Any)), Reserved: reservedWords()}, Doc: "Gives names to values: vars.NAME in later expressions. A name is set once."},
		{Name: "do", Value: g.steps(false), Doc: "Groups steps, so that one catch or one condition holds for all of them."},
		{Name: "fail", Value: mapping(g.Fail), Doc: g.Fail.Doc},
		{Name: "finish", Value: mapping(g.Finish), Doc: g.Finish.Doc},
	}
}

// step fills in the mapping that the blocks refer to already.
func (g *Grammar) step() {
	verbs := g.verbKeys()
	names := make([]string, len(verbs))
	for i, v := range verbs {
		names[i] = v.Name
	}
	beside := g.activityKeys()
	for i := range beside {
		if beside[i].Beside == nil {
			beside[i].Beside = []string{"activity", "http"}
		}
	}
	fails := slices.DeleteFunc(slices.Clone(names), func(v string) bool { return v == "fail" || v == "finish" })
	keys := []Key{
		{Name: "id", Value: Value{Kind: Identifier, Reserved: reservedWords()}, Doc: "Names the step in expressions, lists and the history of runs; unique in the file. Only fail and finish may go without."},
		{Name: "title", Value: of(Title), Doc: "What the step does, for people."},
		{Name: "when", Value: of(Condition), Doc: "The step runs only if this holds; else its outcome is not_run."},
	}
	catch := Key{Name: "catch", Beside: fails, Value: list(mapping(g.Catch)), Doc: "What is done when the step fails; the first entry that fits."}
	*g.Step = Mapping{
		What: "a step", Doc: "A step: exactly one verb, and what belongs to it.",
		Keys:  slices.Concat(keys, verbs, beside, []Key{catch}),
		OneOf: []OneOf{{Keys: names, Needed: true}},
		Rules: contract(),
	}
}

// definition is the top of the file.
func (g *Grammar) definition() {
	g.Start = &Mapping{What: "start", Doc: "How runs are started.", Keys: []Key{
		{Name: "key", Needed: true, Example: `key: "${ input.order_id }"`, Value: of(Text), Doc: "The start key: one key, one run. It may read only input."},
	}}
	g.Defaults = &Mapping{What: "defaults", Doc: "What activities of this file have that do not say otherwise.", Keys: []Key{
		{Name: "queue", Default: "default", Value: of(Name), Doc: "The queue of activities."},
		{Name: "timeouts", Value: mapping(g.Timeouts), Doc: g.Timeouts.Doc},
		{Name: "retry", Value: mapping(g.Retry), Doc: "How often activities are tried. It does not weaken at_most_once."},
	}}
	g.Deadline = &Mapping{What: "deadline", Doc: "How long a run may take.", Keys: []Key{
		{Name: "after", Needed: true, Example: "after: 30d", Value: of(Duration), Doc: "From the start of the run."},
		{Name: "then", Default: "compensate", Value: words("compensate", "incident"), Doc: "What follows: everything is undone, or a person is asked."},
	}}
	g.OnFailure = &Mapping{What: "on_failure", Doc: "What runs once when the run has failed and everything is undone.", Keys: []Key{
		{Name: "steps", Needed: true, Example: "steps: and a list of steps", Value: g.steps(false), Doc: "emit, set, and pure or idempotent activities."},
	}}
	g.Definition = &Mapping{What: "a definition", Doc: "A process that ringi runs.", Keys: []Key{
		{Name: "ringi", Needed: true, Example: "ringi: v1", Value: of(Version), Doc: "The version of the language."},
		{Name: "name", Needed: true, Example: "name: order_fulfilment", Value: of(Name), Doc: "What starts name."},
		{Name: "title", Value: of(Title), Doc: "What a run is called in lists; it may read only input."},
		{Name: "description", Value: of(Prose), Doc: "What the process is for."},
		{Name: "labels", Value: Value{Kind: Named, Names: Name, Item: ptr(of(Name)), Most: MaxLabels, MayBeNone: true}, Doc: "Labels that lists are filtered by; they are copied to every run."},
		{Name: "input", Value: of(Schema), Doc: "JSON Schema of the input. Expressions know its fields by it. Without it any input is taken."},
		{Name: "start", Value: mapping(g.Start), Doc: g.Start.Doc},
		{Name: "defaults", Value: mapping(g.Defaults), Doc: g.Defaults.Doc},
		{Name: "deadline", Value: mapping(g.Deadline), Doc: g.Deadline.Doc},
		{Name: "steps", Needed: true, Example: "steps: and a list of steps", Value: g.steps(false), Doc: "What is done, one after the other."},
		{Name: "output", Default: "null", Value: of(Any), Doc: "The output of the run."},
		{Name: "on_failure", Value: mapping(g.OnFailure), Doc: g.OnFailure.Doc},
	}}
}
