package order_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ringiflow/ringi/examples/order"
)

// each fault is told as a story: calls in their order under the key k, and what
// each answers; then the rows that stand in the book.
type faultStory struct {
	faults  []order.Fault
	calls   string // op=answer, separated by "; "
	service string
	rows    string // separated by "; "
}

const (
	lost = "answer_lost retryable unknown"
	down = "unavailable retryable no"
)

func faultStories() map[order.Kind]faultStory {
	one := func(kind order.Kind, times int) []order.Fault { return []order.Fault{{Kind: kind, Times: times}} }
	return map[order.Kind]faultStory{
		order.OutOfStock: {
			one(order.OutOfStock, 0), "reserve=out_of_stock final no; reserve=out_of_stock final no; release=false",
			order.Stock, "reserve k o1 0; reserve k o1 0; release k o1 0",
		},
		order.ReserveAnswerLost: {
			one(order.ReserveAnswerLost, 2), "reserve=" + lost + "; reserve=" + lost + "; reserve=reservation-1; release=true",
			order.Stock, "reserve k o1 1; reserve k o1 0; reserve k o1 0; release k o1 1",
		},
		order.ReleaseFlaky: {
			one(order.ReleaseFlaky, 2), "reserve=reservation-1; release=" + down + "; release=" + down + "; release=true",
			order.Stock, "reserve k o1 1; release k o1 0; release k o1 0; release k o1 1",
		},
		order.CardDeclined: {
			one(order.CardDeclined, 0), "charge=card_declined final no; find=no; charge=card_declined final no",
			order.Payment, "charge k o1 0; find k o1 0; charge k o1 0",
		},
		order.PaymentDown: {
			one(order.PaymentDown, 3), "charge=" + down + "; find=unknown; charge=" + down + "; find=no; charge=charge-5",
			order.Payment, "charge k o1 0; find k o1 0; charge k o1 0; find k o1 0; charge k o1 1",
		},
		order.ChargeAnswerLostAfter: {
			one(order.ChargeAnswerLostAfter, 0), "charge=" + lost + "; find=yes charge-1",
			order.Payment, "charge k o1 1; find k o1 0",
		},
		order.ChargeAnswerLostBefore: {
			one(order.ChargeAnswerLostBefore, 0), "charge=" + lost + "; find=no; charge=charge-3",
			order.Payment, "charge k o1 0; find k o1 0; charge k o1 1",
		},
		order.ChargeHangs: {
			one(order.ChargeHangs, 0), "charge=" + lost + "; find=yes charge-1; refund=true",
			order.Payment, "charge k o1 1; find k o1 0; refund k o1 1",
		},
		order.FindDown: {
			append(one(order.FindDown, 2), order.Fault{Kind: order.ChargeAnswerLostAfter}),
			"charge=" + lost + "; find=unknown; find=unknown; find=yes charge-1",
			order.Payment, "charge k o1 1; find k o1 0; find k o1 0; find k o1 0",
		},
		order.RefundAnswerLost: {
			one(order.RefundAnswerLost, 0), "charge=charge-1; refund=" + lost + "; refund=false",
			order.Payment, "charge k o1 1; refund k o1 1; refund k o1 0",
		},
		order.BookRefused: {
			one(order.BookRefused, 0), "label=ORDER o1; book=book_refused final no; cancel=false",
			order.Shipping, "label k o1 0; book k o1 0; cancel k o1 0",
		},
		order.BookFlaky: {
			one(order.BookFlaky, 2), "book=" + down + "; book=" + down + "; book=parcel-3",
			order.Shipping, "book k o1 0; book k o1 0; book k o1 1",
		},
		order.BookAnswerLost: {
			one(order.BookAnswerLost, 0), "book=" + lost + "; book=parcel-1",
			order.Shipping, "book k o1 1; book k o1 0",
		},
		order.LabelRefused: {
			one(order.LabelRefused, 0), "label=" + down + "; book=parcel-2; label=label_refused final no; cancel=true",
			order.Shipping, "label k o1 0; book k o1 1; label k o1 0; cancel k o1 1",
		},
		order.MailAnswerLost: {
			one(order.MailAnswerLost, 0), "send=" + lost,
			order.Mail, "send k o1 1",
		},
	}
}

// W14, S-1
func TestEveryFaultShowsAsItIsNamed(t *testing.T) {
	stories := faultStories()
	for _, kind := range order.Kinds() {
		story, ok := stories[kind]
		switch kind {
		case order.Plain, order.Approved, order.Rejected, order.CancelAtApproval:
			continue // what people do
		}
		if !ok {
			t.Errorf("fault %s has no story here", kind)
			continue
		}
		t.Run(string(kind), func(t *testing.T) {
			w := startWorld(t, t.TempDir(), lineWith(story.faults...))
			for i, step := range strings.Split(story.calls, "; ") {
				op, want, _ := strings.Cut(step, "=")
				if got := w.play(t, op); got != want {
					t.Errorf("call %d, %s, answered %q, want %q", i+1, op, got, want)
				}
			}
			w.wantRows(t, story.service, strings.Split(story.rows, "; ")...)
		})
	}
}

// play makes one call of order o1 under the key k and returns its answer or its
// failure.
func (w *world) play(t *testing.T, op string) string {
	t.Helper()
	var answer any
	var err error
	switch op {
	case "reserve":
		answer, err = w.reserve(t, "k")
	case "release":
		answer, err = w.release(t, "k")
	case "charge":
		// Long enough for any answer, and short enough to wait for one that never comes.
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		answer, err = w.charge(ctx, "k")
	case "find":
		answer = w.find(t, "k")
	case "refund":
		answer, err = w.refund(t, "k")
	case "book":
		answer, err = w.book(t, "k")
	case "cancel":
		answer, err = w.cancel(t, "k")
	case "label":
		answer, err = w.label(t, "k")
	case "send":
		answer, err = w.send(t, "k")
	default:
		t.Fatalf("no call is named %q", op)
	}
	if err != nil {
		return failure(t, err)
	}
	return fmt.Sprint(answer)
}

func TestFaultsBefallOnlyTheirOwnOrder(t *testing.T) {
	w := startWorld(t, t.TempDir(), lineWith(order.Fault{Kind: order.OutOfStock}))
	if _, err := w.Reserve(t.Context(), "k2", order.ReserveIn{OrderID: "o2"}); err != nil {
		t.Errorf("the order beside it: %v", err)
	}
}
