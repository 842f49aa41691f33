package build_test

import "github.com/ringiflow/ringi/workflow/build"

// claim is the message about a claim.
func claim(what string, data any) build.Emit {
	return build.Emit{Type: what, AggregateType: "Claim", AggregateID: build.Expr("input.claim_id"), Data: data}
}

// withKey is an undo or a probe that needs only the key of its step.
func withKey(activity string) build.Call {
	return build.Call{Activity: activity, With: build.Fields{"key": build.Expr("step.key")}}
}

// everything is workflow/graph/testdata/everything.yaml in Go: every shape that
// a definition can have.
func everything() build.Definition {
	amount := build.Fields{"amount": build.Expr("input.amount")}
	return build.Definition{
		Name: "everything", Title: "Claim ${ input.claim_id }",
		Description: "A claim is checked, decided, paid and told to the world; it shows every shape that a definition can have.",
		Input: build.Object(
			build.Need("claim_id", build.String()), build.Need("amount", build.Number()), build.Need("email", build.String()), build.May("note", build.String()),
		),
		StartKey: build.Expr("input.claim_id"), Deadline: build.Deadline{After: build.Days(90), Then: "incident"},
		Steps: []build.Step{
			lookUp(), decide(), settle(),
			{ID: "pay", Title: "Send the money", Do: build.Activity{
				Name: "bank.transfer", With: amount, Contract: build.AtMostOnce{Undo: build.Irreversible{}}, Accepted: "decided above",
			}},
			{ID: "receipt", Do: build.Set{"paid": build.Expr("input.amount"), "text": "paid ${ input.amount } for ${ input.claim_id }"}},
			{ID: "told", Do: claim("claim.paid", amount)},
		},
		Output:    build.Fields{"paid": true, "amount": build.Expr("input.amount")},
		OnFailure: []build.Step{{ID: "failed_event", Do: claim("claim.failed", build.Fields{"code": build.Expr("error.code")})}},
	}
}

func lookUp() build.Step {
	return build.Step{
		ID: "look_up", Title: "Look the customer up",
		Do: build.Activity{
			Name: "customer.find", With: build.Fields{"email": build.Expr("input.email")}, Contract: build.Pure{},
			Output: build.Object(build.Need("known", build.Boolean())),
		},
		Catch: []build.Catch{
			{On: []string{"not_found"}, Do: []build.Step{{ID: "ask_for_papers", Do: build.Event{
				Name: "papers.received", Key: build.Expr("input.claim_id"), Timeout: build.Days(14), Then: "continue",
			}}}},
			{On: []string{"timed_out", "*"}, Do: []build.Step{{Do: build.Fail{Code: "no_register", Message: "the register of ${ input.email } cannot be read"}}}},
		},
	}
}

func decide() build.Step {
	return build.Step{ID: "decide", Do: build.Choose{Cases: []build.Case{
		{If: "input.amount > 100000", Do: []build.Step{{ID: "board", Do: build.Approval{
			Title: "Pay ${ input.amount } for claim ${ input.claim_id }?", Risk: "high",
			Subject: build.Fields{"claim": build.Expr("input.claim_id"), "amount": build.Expr("input.amount")},
			Ask: []build.Lane{
				{Name: "Board", From: []string{"group:board"}, Quorum: 3}, {Name: "Law", From: []string{"group:law", "user:chief"}, Quorum: 1},
			},
			Expires: build.Days(10),
		}}}},
		{If: "input.amount > 10000", Do: []build.Step{
			{ID: "manager", Do: build.Approval{Title: "Pay ${ input.amount }?", Ask: []build.Lane{{From: []string{"group:managers"}}}, GoOn: true}},
			{
				ID: "refused", When: `steps.manager.?output.orValue({}).?decision.orValue("") == "rejected"`,
				Do: build.Finish{Output: build.Fields{"paid": false}},
			},
		}},
	}}}
}

func settle() build.Step {
	return build.Step{
		ID: "settle",
		Do: build.Group{
			{ID: "reserve", Title: "Set the money aside", Do: build.Activity{
				Name: "ledger.reserve", With: build.Fields{"amount": build.Expr("input.amount")},
				Contract: build.Idempotent{Undo: build.Compensate{Call: withKey("ledger.release")}},
			}},
			{ID: "documents", Do: build.Parallel{
				"letter": {{ID: "letter_print", Do: build.Activity{Name: "letter.print", Contract: build.Idempotent{}, Accepted: "an unused letter is thrown away"}}},
				"archive": {{ID: "archive_store", Do: build.Activity{
					Name: "archive.store", Queue: "archive", Contract: build.Idempotent{Undo: build.Compensate{Call: withKey("archive.remove")}},
				}}},
				"stamp": {{ID: "stamp_wait", Do: build.Until{Instant: "2027-01-01T09:00:00Z"}}},
			}},
			{ID: "book", Do: build.Activity{
				Name: "ledger.book", Contract: build.Probeable{Probe: withKey("ledger.find"), Undo: build.Compensate{Call: withKey("ledger.cancel")}},
			}},
		},
		Catch: []build.Catch{{On: []string{"no_money"}, Do: []build.Step{
			{ID: "tell_treasury", Do: claim("treasury.short", nil)}, {Do: build.Fail{Code: "no_money"}},
		}}},
	}
}

// payment is testdata/payment.yaml in Go: calls over HTTP.
func payment() build.Definition {
	const charges = "https://pay.example.com/charges"
	return build.Definition{Name: "payment", Steps: []build.Step{
		{ID: "order", Do: build.HTTP{
			Request: build.Request{
				Method: "GET", URL: "https://shop.example.com/orders/1", Headers: map[string]string{"Accept": "application/json"},
				Query: build.Fields{"full": true}, Expect: []int{200},
			},
			Output: build.Object(build.Need("amount", build.Number())),
		}},
		{ID: "pay", Do: build.HTTP{
			Request: build.Request{Method: "POST", URL: charges, Body: build.Fields{"amount": build.Expr("steps.order.output.amount")}},
			Contract: build.Probeable{
				Probe: build.Call{HTTP: &build.Request{Method: "GET", URL: charges, Query: build.Fields{"key": build.Expr("step.key")}}},
				Undo:  build.Compensate{Call: build.Call{HTTP: &build.Request{Method: "DELETE", URL: charges + "/${ url_escape(step.key) }"}}},
			},
		}},
		{ID: "book", Do: build.HTTP{
			Request: build.Request{Method: "PUT", URL: "https://books.example.com/1", Body: "paid"},
			Undo:    build.Compensate{Call: withKey("books.remove")},
		}},
	}}
}
