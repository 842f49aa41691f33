package build_test

import (
	"os"
	"testing"

	"github.com/ringiflow/ringi/workflow"
	"github.com/ringiflow/ringi/workflow/build"
)

// hello is examples/hello/hello.yaml in Go.
func hello() build.Definition {
	return build.Definition{
		Name: "hello", Title: "A greeting for ${ input.who }",
		Input: build.Object(build.Need("who", build.String())),
		Steps: []build.Step{
			{ID: "ask", Do: build.Approval{
				Title: "Greet ${ input.who }?", Subject: build.Fields{"who": build.Expr("input.who")},
				Ask: []build.Lane{{Name: "Finance", From: []string{"group:finance"}}},
			}},
			{ID: "greet", Do: build.Activity{
				Name: "hello.greet", With: build.Fields{"who": build.Expr("input.who")}, Contract: build.Pure{},
				Output: build.Object(build.Need("text", build.String())),
			}},
			{ID: "nap", Do: build.Sleep{For: build.Seconds(2)}},
		},
		Output: build.Fields{"said": build.Expr("steps.greet.output.text")},
	}
}

// quick is how the demonstration retries.
func quick(stopOn ...string) build.Retry {
	return build.Retry{Attempts: 25, Initial: build.Milliseconds(200), Factor: 2, Max: build.Seconds(2), StopOn: stopOn}
}

// by is an undo that needs only the key of its step.
func by(activity string) build.Compensate {
	return build.Compensate{Call: build.Call{Activity: activity, With: build.Fields{"key": build.Expr("step.key")}}, Retry: quick()}
}

// order is examples/order/order_fulfilment.yaml in Go.
func order() build.Definition {
	id := build.Fields{"order_id": build.Expr("input.order_id")}
	return build.Definition{
		Name: "order_fulfilment", Title: "Order ${ input.order_id }",
		Description: "Reserves stock, charges, ships and tells the customer; undoes what can be undone when it fails.",
		Input: build.Object(
			build.Need("order_id", build.String()), build.Need("customer", build.String()), build.Need("amount", build.Number()),
			build.Need("items", build.List(build.Object(build.Need("sku", build.String()), build.Need("qty", build.Integer())))),
		),
		Timeouts: build.Timeouts{Attempt: build.Seconds(3), Total: build.Minutes(10), Heartbeat: build.Seconds(2)},
		Deadline: build.Deadline{After: build.Days(30), Then: "compensate"},
		Steps: []build.Step{
			{ID: "reserve", Title: "Reserve stock", Do: build.Activity{
				Name: "inventory.reserve", With: build.Fields{"order_id": build.Expr("input.order_id"), "items": build.Expr("input.items")},
				Contract: build.Idempotent{Undo: by("inventory.release")}, Retry: quick("out_of_stock"),
				Output: build.Object(build.Need("reservation_id", build.String())),
			}},
			{ID: "approve", Title: "Approve by two of finance", When: "input.amount > 100000", Do: build.Approval{
				Title:       "Order ${ input.order_id }, ${ input.amount } yen",
				Subject:     build.Fields{"order": build.Expr("input.order_id"), "amount": build.Expr("input.amount")},
				Show:        []build.Show{{Label: "Items", Table: build.Expr("input.items")}},
				Consequence: "Charges ${ input.customer } and ships.",
				Ask:         []build.Lane{{Name: "Finance", From: []string{"group:finance"}, Quorum: 2}},
				Expires:     build.Hours(72),
			}},
			{ID: "charge", Title: "Charge the customer", Do: build.Activity{
				Name:     "payment.charge",
				With:     build.Fields{"order_id": build.Expr("input.order_id"), "customer": build.Expr("input.customer"), "amount": build.Expr("input.amount")},
				Contract: build.Probeable{Probe: build.Call{Activity: "payment.find", With: build.Fields{"key": build.Expr("step.key")}}, Undo: by("payment.refund")},
				Retry:    quick("card_declined"), Output: build.Object(build.Need("charge_id", build.String())),
			}},
			{ID: "deliver", Title: "Book the parcel and print its label", Do: build.Parallel{
				"ship":  {{ID: "book", Do: build.Activity{Name: "shipping.book", With: id, Contract: build.Idempotent{Undo: by("shipping.cancel")}, Retry: quick("book_refused")}}},
				"label": {{ID: "print", Do: build.Activity{Name: "shipping.label", With: id, Contract: build.Pure{}, Retry: quick("label_refused")}}},
			}},
			{ID: "confirm", Title: "Tell the customer", Do: build.Activity{
				Name: "mail.send", With: build.Fields{"order_id": build.Expr("input.order_id"), "to": build.Expr("input.customer")},
				Contract: build.AtMostOnce{Undo: build.Irreversible{}, OnUnknown: "assume_applied"},
				Accepted: "a second mail is worse than none, and nothing can fail after it",
			}},
			{ID: "announce", Title: "Announce the fulfilled order", Do: build.Emit{
				Type: "order.fulfilled", AggregateType: "Order", AggregateID: build.Expr("input.order_id"), Data: id,
			}},
		},
		Output: build.Fields{"charge_id": build.Expr("steps.charge.output.charge_id")},
	}
}

// The same words in YAML and in Go are the same definition: one digest.
func TestADefinitionInGoHasTheDigestOfItsFile(t *testing.T) { // W3
	for file, d := range map[string]build.Definition{
		"../../examples/hello/hello.yaml":            hello(),
		"../../examples/order/order_fulfilment.yaml": order(),
		"../graph/testdata/everything.yaml":          everything(),
		"testdata/payment.yaml":                      payment(),
	} {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want, problems := workflow.Parse(file, src)
		if want == nil {
			t.Fatal(problems)
		}
		got, problems := d.Build()
		if got == nil {
			t.Errorf("%s in Go: %v", file, problems)
			continue
		}
		if got.Digest != want.Digest {
			t.Errorf("%s: the digest is %s, in Go %s\n%s\n%s", file, want.Digest, got.Digest, want.Source, got.Source)
		}
	}
}

func TestWhatIsWrongInGoIsToldLikeInAFile(t *testing.T) {
	for name, c := range map[string]struct {
		steps []build.Step
		want  string
	}{
		"a step that does nothing":  {[]build.Step{{ID: "a"}}, "RG0101"},
		"an unknown step":           {[]build.Step{{ID: "a", Do: build.Set{"x": build.Expr("steps.b.output")}}}, "RG0310"},
		"two steps of one id":       {[]build.Step{{ID: "a", Do: build.Sleep{For: build.Hours(1)}}, {ID: "a", Do: build.Sleep{For: build.Hours(1)}}}, "RG0104"},
		"no steps":                  {nil, "RG0027"},
		"a wait for no time at all": {[]build.Step{{ID: "a", Do: build.Sleep{}}}, "RG0023"},
		"nobody who is asked":       {[]build.Step{{ID: "a", Do: build.Approval{}}}, "RG0019"},
	} {
		d, problems := build.Definition{Name: "n", Steps: c.steps}.Build()
		if d != nil || len(problems) == 0 || problems[0].ID != c.want || problems[0].File != "n.json" {
			t.Errorf("%s: %v, want %s", name, problems, c.want)
		}
	}
	_, problems := build.Definition{Name: "n", Output: func() {}}.Build()
	if len(problems) != 1 || problems[0].ID != "RG0004" {
		t.Errorf("a value that is not JSON: %v", problems)
	}
}
