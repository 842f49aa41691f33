package grammar

// people are the mappings of an approval.
func (g *Grammar) people() {
	g.Show = &Mapping{What: "an entry of show", Doc: "A line or a table that the approver sees.", Keys: []Key{
		{Name: "label", Needed: true, Example: "label: Items", Value: of(Name), Doc: "What it is."},
		{Name: "value", Value: of(Any), Doc: "A value."},
		{Name: "table", Value: of(Table), Doc: "A list of objects, shown as rows."},
	}, OneOf: []OneOf{{Keys: []string{"value", "table"}, Needed: true}}}
	g.Lane = &Mapping{What: "a lane of ask", Doc: "A group of people, and how many of them must agree.", Keys: []Key{
		{Name: "name", Value: of(Name), Doc: "What the lane is called; unique in the approval."},
		{Name: "from", Needed: true, Example: "from: [group:finance]", Value: list(of(Who)), Doc: "Who may vote: group:NAME and user:ID."},
		{Name: "quorum", Default: "1", Value: count(1, MaxQuorum), Doc: "How many different people must agree."},
	}}
	g.Expires = &Mapping{What: "expires", Doc: "How long people have.", Keys: []Key{
		{Name: "after", Needed: true, Example: "after: 72h", Value: of(Duration), Doc: "How long the approval is open. It is not held up by a pause of the run."},
		{Name: "then", Default: "reject", Value: words("reject"), Doc: "What follows: it counts as rejected."},
	}}
	g.Approval = &Mapping{What: "approval", Doc: "Waits for people to agree. All lanes must reach their quorum; one rejection decides.", Keys: []Key{
		{Name: "title", Value: of(Title), Doc: "What is asked, in one line. Without it the title of the step, else its id."},
		{Name: "summary", Value: of(Text), Doc: "What the people should know."},
		{Name: "risk", Default: "normal", Value: words("low", "normal", "high"), Doc: "How careful to be."},
		{Name: "subject", Value: of(Object), Doc: "Exactly what is approved. Its digest is bound into every vote."},
		{Name: "show", Value: list(mapping(g.Show)), Doc: "Lines and tables that the people see."},
		{Name: "consequence", Value: of(Text), Doc: "What happens when they agree."},
		{Name: "ask", Needed: true, Example: "ask: [ { name: Finance, from: [group:finance], quorum: 1 } ]", Value: list(mapping(g.Lane)), Doc: "Who is asked: every lane must reach its quorum."},
		{Name: "separation", Value: list(of(Who)), Doc: "Who may not vote, besides the person who asked for the run."},
		{Name: "expires", Value: mapping(g.Expires), Doc: "How long people have: 72h unless it says otherwise."},
		{Name: "on_reject", Default: "fail", Value: words("fail", "continue"), Doc: "What a rejection does: fail ends the step with the failure rejected, continue goes on with the decision as its output."},
	}}
}

// flow are the mappings of waits, branches and messages.
func (g *Grammar) flow() {
	g.WaitTimeout = &Mapping{What: "timeout", Doc: "How long the event is waited for.", Keys: []Key{
		{Name: "after", Needed: true, Example: "after: 3d", Value: of(Duration), Doc: "How long at most."},
		{Name: "then", Default: "fail", Value: words("fail", "continue"), Doc: "What follows: fail ends the step with the failure timed_out, continue goes on."},
	}}
	g.Wait = &Mapping{What: "wait", Doc: "Waits for a time or for an event.", Keys: []Key{
		{Name: "for", Value: of(Duration), Doc: "A length of time. A pause of the run does not count."},
		{Name: "until", Value: of(Instant), Doc: "An instant, such as 2026-03-01T09:00:00Z, or an expression that yields one."},
		{Name: "event", Value: of(Name), Doc: "The name of an event. One that came up to 24 hours before is found too."},
		{Name: "key", Value: of(Text), Beside: []string{"event"}, Doc: "The key that the event is sent with: it tells this run's event from others."},
		{Name: "timeout", Value: mapping(g.WaitTimeout), Beside: []string{"event"}, Doc: "How long the event is waited for; for ever without it."},
	}, OneOf: []OneOf{{Keys: []string{"for", "until", "event"}, Needed: true}}, Rules: []Rule{{If: is("event"), Needs: "key"}}}
	g.Case = &Mapping{What: "a case", Doc: "A condition and its steps, or the steps for when no condition holds.", Keys: []Key{
		{Name: "if", Value: of(Condition), Doc: "The case is taken when this holds and none above does."},
		{Name: "do", Value: g.steps(true), Doc: "What is done then; [] is nothing."},
		{Name: "else", Value: g.steps(true), Doc: "What is done when no condition holds. It is the last entry and stands alone; [] is nothing."},
	}}
	g.Parallel = &Mapping{What: "parallel", Doc: "Branches that run side by side. The step ends when all have ended.", Keys: []Key{
		{
			Name: "branches", Needed: true, Example: "branches: and a mapping of names to lists of steps", Doc: "The branches by their names.",
			Value: Value{Kind: Named, Names: Identifier, Item: ptr(g.steps(false)), Most: MaxWidth, Kept: "catch_"},
		},
	}}
	g.Catch = &Mapping{What: "an entry of catch", Doc: "What is done when the step fails in a certain way. The run goes on behind the step.", Keys: []Key{
		{Name: "on", Needed: true, Example: "on: [timed_out]", Value: list(of(Name)), Doc: "Failure codes of the worker, or timed_out, rejected, expired, cancelled, bad_output, expression, or * for every failure."},
		{Name: "do", Needed: true, Example: "do: and a list of steps", Value: g.steps(true), Doc: "What is done then; [] is nothing. error.code and error.message tell what happened."},
	}}
	g.messages()
}

func ptr(v Value) *Value { return &v }

func (g *Grammar) messages() {
	g.Aggregate = &Mapping{What: "aggregate", Doc: "What the message is about. Messages about one aggregate keep their order.", Keys: []Key{
		{Name: "type", Needed: true, Example: "type: Order", Value: of(Name), Doc: "The kind of thing, such as Order."},
		{Name: "id", Needed: true, Example: `id: "${ input.order_id }"`, Value: of(Text), Doc: "Which one of them."},
	}}
	g.Emit = &Mapping{What: "emit", Doc: "Writes a message to the outbox, in the same commit as the step.", Keys: []Key{
		{Name: "type", Needed: true, Example: "type: order.fulfilled", Value: of(Name), Doc: "What happened, such as order.fulfilled."},
		{Name: "aggregate", Needed: true, Example: `aggregate: { type: Order, id: "${ input.order_id }" }`, Value: mapping(g.Aggregate), Doc: g.Aggregate.Doc},
		{Name: "data", Default: "null", Value: of(Any), Doc: "The data of the message."},
	}}
	g.Fail = &Mapping{What: "fail", Doc: "Ends the run, or what stands in a catch, with a failure.", Keys: []Key{
		{Name: "code", Needed: true, Example: "code: over_limit", Value: of(Name), Doc: "The code of the failure, which a catch can name."},
		{Name: "message", Value: of(Text), Doc: "What happened, for people."},
	}}
	g.Finish = &Mapping{What: "finish", Doc: "Completes the run at once. It cannot stand inside a parallel.", Keys: []Key{
		{Name: "output", Value: of(Any), Doc: "The output of the run."},
	}}
}
