package grammar

import "slices"

// small are the mappings that others are made of.
func (g *Grammar) small() {
	g.Timeouts = &Mapping{What: "timeouts", Doc: "How long things may take.", Keys: []Key{
		{Name: "attempt", Default: "30s", Value: of(Duration), Doc: "One attempt, from its hand-out to a worker."},
		{Name: "total", Default: "15m", Value: of(Duration), Doc: "The step with all its attempts and the pauses between them."},
		{Name: "queue", Value: of(Duration), Doc: "How long an attempt may wait for a worker. Without it an attempt waits for as long as it takes, and the lack of a worker is shown."},
		{Name: "heartbeat", Default: "30s", Value: of(Duration), Doc: "The length of the work lease: how soon a worker that died is noticed. Workers heartbeat three times in it."},
	}}
	g.Backoff = &Mapping{What: "backoff", Doc: "The pauses between attempts.", Keys: []Key{
		{Name: "initial", Default: "1s", Value: of(Duration), Doc: "The pause before the second attempt."},
		{Name: "factor", Default: "2", Value: of(Factor), Doc: "How much longer each pause is than the one before."},
		{Name: "max", Default: "1m", Value: of(Duration), Doc: "The longest pause. It cannot be shorter than the first."},
	}}
	g.Retry = &Mapping{What: "retry", Doc: "How often an activity is tried, and with what pauses.", Keys: []Key{
		{Name: "attempts", Default: "5", Value: count(1, MaxAttempts), Doc: "Attempts in all, with the first. An activity of the effect at_most_once has one."},
		{Name: "backoff", Value: mapping(g.Backoff), Doc: "The pauses between attempts; they are spread by a fifth, so that not all come at once."},
		{Name: "stop_on", Value: list(of(Name)), Doc: "Failure codes of the worker after which no further attempt is made."},
	}}
}

// calls are the calls that belong to a step.
func (g *Grammar) calls() {
	g.HTTP = request("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
	g.ProbeHTTP = request("GET", "HEAD", "POST")
	either := []OneOf{{Keys: []string{"activity", "http"}, Needed: true}}
	g.Probe = &Mapping{
		What: "probe", Doc: "The call that says whether the effect took place when an answer was lost. It answers { applied: yes | no | unknown, output }.",
		Keys: []Key{
			{Name: "activity", Example: "activity: payment.find", Value: of(Name), Doc: "The activity that is called."},
			{Name: "http", Value: mapping(g.ProbeHTTP), Doc: "The request that is made instead."},
			{Name: "with", Beside: []string{"activity"}, Value: of(Object), Doc: "The input of the activity. step.key is the idempotency key of the call that is asked about."},
		},
		OneOf: either,
	}
	g.Compensate = &Mapping{
		What: "compensate", Doc: "The call that undoes the step when the run fails later. It is tried until it succeeds, or a person is asked.",
		Keys: []Key{
			{Name: "activity", Example: "activity: payment.refund", Value: of(Name), Doc: "The activity that is called."},
			{Name: "http", Value: mapping(g.HTTP), Doc: "The request that is made instead."},
			{Name: "with", Beside: []string{"activity"}, Value: of(Object), Doc: "The input of the activity, frozen when the step ends. step.key is the idempotency key of the step: it exists even when its answer was lost."},
			{Name: "effect", Default: "idempotent", Value: words("idempotent", "at_most_once"), Doc: "What the undo can bear when its answer is lost."},
			{Name: "key", Value: of(KeyText), Doc: "The idempotency key of the undo. Without it the key is made of run and step."},
			{Name: "retry", Value: mapping(g.Retry), Doc: "How often the undo is tried: 5 times within 15 minutes unless it says otherwise."},
		},
		OneOf: either, Rules: []Rule{{If: is("effect", "at_most_once"), Once: true}},
	}
}

// request is a call over HTTP with one of these methods.
func request(methods ...string) *Mapping {
	return &Mapping{What: "http", Doc: "A call over HTTP, which the engine's own workers make. Every request but GET and HEAD carries the header Idempotency-Key.", Keys: []Key{
		{Name: "method", Needed: true, Example: "method: GET", Value: words(methods...), Doc: "The method. GET and HEAD are pure, PUT and DELETE idempotent unless effect says otherwise."},
		{Name: "url", Needed: true, Example: `url: "https://api.example.com/orders/${ input.order_id }"`, Value: of(Address), Doc: "The address: https:// or http://. Put what comes from an input through url_escape. It must hold no secret."},
		{Name: "headers", Value: Value{Kind: Named, Names: Header, Item: ptr(of(Text)), Most: MaxHeaders}, Doc: "Further headers by their names. They are in the log of the run: put no secrets here."},
		{Name: "query", Value: Value{Kind: Named, Names: Name, Item: ptr(of(Any)), Most: MaxQuery}, Doc: "What stands behind ? in the address, by names; null leaves one out."},
		{Name: "body", Value: of(Any), Doc: "What is sent, as JSON. With another Content-Type among the headers a text is sent as it is, and with application/x-www-form-urlencoded an object as a form."},
		{Name: "expect", Value: Value{Kind: List, Item: ptr(count(200, 599)), Most: MaxExpected}, Doc: "The statuses that are no failure; every 2xx without it."},
	}, Rules: []Rule{{
		If: is("method", "GET", "HEAD"), Never: "body", Why: "servers do not look at the body of such a request", Instead: "use query, or another method",
	}}}
}

// activityKeys are the keys that stand beside activity and http.
func (g *Grammar) activityKeys() []Key {
	return []Key{
		{Name: "with", Beside: []string{"activity"}, Value: of(Object), Doc: "The input of the activity: an object, or an expression that yields one."},
		{Name: "queue", Default: "default", Value: of(Name), Doc: "The queue that workers take the activity from."},
		{Name: "key", Value: of(KeyText), Doc: "The idempotency key that goes out with the call. Without it the key is made of run and step, which is right unless two steps must share one."},
		{Name: "effect", Value: words(Effects()...), Doc: "What the side effect can bear when an answer is lost.\n\npure: it only reads or computes; run it again.\nidempotent: the service honours the idempotency key; run it again with the same key.\nprobeable: it can be asked whether it took place; see probe.\nat_most_once: it is never tried twice blindly; see on_unknown. An effect of an activity that nobody declares is taken for this one."},
		{Name: "probe", Value: mapping(g.Probe), Doc: g.Probe.Doc},
		{Name: "on_unknown", Default: "incident", Value: words("incident", "assume_applied", "assume_not_applied", "compensate", "fail"), Doc: "What follows when nobody knows whether an attempt had its effect.\n\nincident: a person is asked.\nassume_applied, assume_not_applied: it is taken for that.\ncompensate: it is undone like an effect that is known.\nfail: the step has failed."},
		{Name: "irreversible", Default: "false", Value: of(Flag), Doc: "The effect cannot be undone: from this step on the run only goes forward."},
		{Name: "accepted", Value: of(Reason), Doc: "Why a finding about the step's effect is meant, in words: it is not reported then."},
		{Name: "retry", Value: mapping(g.Retry), Doc: g.Retry.Doc},
		{Name: "timeouts", Value: mapping(g.Timeouts), Doc: g.Timeouts.Doc},
		{Name: "output", Value: of(Schema), Doc: "JSON Schema of what the activity answers. Expressions know the fields of steps.ID.output by it."},
		{Name: "compensate", Value: mapping(g.Compensate), Doc: g.Compensate.Doc},
	}
}

// contract are the rules between the keys of a call.
func contract() (rules []Rule) {
	by := func(methods ...string) []Is {
		return []Is{{Key: "effect", Missing: true}, {Key: "http.method", Words: methods}}
	}
	pure := [][]Is{is("effect", "pure"), by("GET", "HEAD")}
	idempotent := [][]Is{is("effect", "idempotent"), by("PUT", "DELETE")}
	once := [][]Is{is("effect", "at_most_once"), {{Key: "effect", Missing: true}, {Key: "activity"}}}
	never := func(key, why, instead string, kinds ...[][]Is) {
		for _, condition := range slices.Concat(kinds...) {
			rules = append(rules, Rule{If: condition, Never: key, Why: why, Instead: instead})
		}
	}
	const nothing, declare = "a pure step changes nothing", "remove it, or declare the effect that the step has"
	never("compensate", nothing, declare, pure)
	never("irreversible", nothing, declare, pure)
	never("key", nothing, "remove it, or declare effect: idempotent", pure)
	never("on_unknown", "a lost answer is asked for again", "remove it", pure, idempotent)
	never("probe", "only a probeable step is asked about", "write effect: probeable, or remove it", pure, idempotent, once)
	undone, pivot := Is{Key: "on_unknown", Words: []string{"compensate"}}, Is{Key: "irreversible", Words: []string{"true"}}
	never("on_unknown", "an irreversible step has nothing to undo it", "write on_unknown: incident", [][]Is{{undone, pivot}})
	for _, condition := range once {
		rules = append(rules, Rule{If: condition, Once: true})
	}
	return append(rules,
		Rule{If: is("effect", "probeable"), Needs: "probe"},
		Rule{If: is("http.method", "POST", "PATCH"), Needs: "effect"},
		Rule{
			If: []Is{pivot}, Never: "compensate", Contrary: true, Why: "the step is irreversible and yet says how to undo it",
			Instead: "remove irreversible if the effect can be undone, else remove compensate",
		},
		Rule{If: []Is{undone, {Key: "irreversible", Words: []string{"false"}, Missing: true}}, Needs: "compensate"})
}
