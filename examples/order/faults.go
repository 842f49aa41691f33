package order

import "sync"

// A Kind names the story of an order: a fault that befalls it, or what people
// do with it.
type Kind string

// The kinds of orders without a fault.
const (
	Plain    Kind = "plain"    // nothing happens to it
	Approved Kind = "approved" // two people approve it
	Rejected Kind = "rejected" // one of them rejects it
)

// The faults. Those that speak of a call befall the first Times calls of that
// operation for their order; those that refuse, refuse every time.
const (
	OutOfStock        Kind = "out_of_stock"        // reserve is refused for good
	ReserveAnswerLost Kind = "reserve_answer_lost" // reserved, then the connection is cut
	ReleaseFlaky      Kind = "release_flaky"       // release answers 503

	CardDeclined           Kind = "card_declined"             // charge is refused for good
	PaymentDown            Kind = "payment_down"              // charge, find and refund together answer 503
	ChargeAnswerLostAfter  Kind = "charge_answer_lost_after"  // charged, then the connection is cut
	ChargeAnswerLostBefore Kind = "charge_answer_lost_before" // the connection is cut, nothing charged
	ChargeHangs            Kind = "charge_hangs"              // charged, then no answer until the caller goes away
	FindDown               Kind = "find_down"                 // find answers 503
	RefundAnswerLost       Kind = "refund_answer_lost"        // refunded, then the connection is cut

	BookRefused    Kind = "book_refused"     // book is refused for good, after the charge
	BookFlaky      Kind = "book_flaky"       // book answers 503
	BookAnswerLost Kind = "book_answer_lost" // booked, then the connection is cut
	LabelRefused   Kind = "label_refused"    // label is refused for good, once the parcel is booked

	MailAnswerLost Kind = "mail_answer_lost" // sent, then the connection is cut

	CancelAtApproval Kind = "cancel_at_approval" // the run is cancelled while it waits for approval
)

// Kinds returns every kind of order there is, in the order in which an order
// meets them on its way.
func Kinds() []Kind {
	return []Kind{
		Plain, Approved, Rejected, CancelAtApproval,
		OutOfStock, ReserveAnswerLost, ReleaseFlaky,
		CardDeclined, PaymentDown, ChargeAnswerLostAfter, ChargeAnswerLostBefore, ChargeHangs, FindDown, RefundAnswerLost,
		BookRefused, BookFlaky, BookAnswerLost, LabelRefused,
		MailAnswerLost,
	}
}

// A Fault befalls one order.
type Fault struct {
	Kind  Kind `json:"kind"`
	Times int  `json:"times,omitempty"` // how many calls it befalls; 0 in the file means 1
}

// A way is how a fault shows to the caller.
type way int

const (
	answerAsIs way = iota // no fault
	refuse                // a definite no, without effect
	notNow                // 503, without effect
	cutBefore             // no effect and no answer
	cutAfter              // the effect, then no answer
	hangAfter             // the effect, then silence until the caller goes away
	fromOthers            // not the services' business
)

// always stands for a fault that does not wear off.
const always = -1

// faultKind is what a service has to know of a kind of fault.
type faultKind struct {
	way way
	ops []string // the operations that it befalls
}

// fault returns what there is to know about the kind, or nil if it is no fault.
func (k Kind) fault() *faultKind {
	switch k {
	case OutOfStock:
		return &faultKind{refuse, []string{opReserve}}
	case ReserveAnswerLost:
		return &faultKind{cutAfter, []string{opReserve}}
	case ReleaseFlaky:
		return &faultKind{notNow, []string{opRelease}}
	case CardDeclined:
		return &faultKind{refuse, []string{opCharge}}
	case PaymentDown:
		return &faultKind{notNow, []string{opCharge, opFind, opRefund}}
	case ChargeAnswerLostAfter:
		return &faultKind{cutAfter, []string{opCharge}}
	case ChargeAnswerLostBefore:
		return &faultKind{cutBefore, []string{opCharge}}
	case ChargeHangs:
		return &faultKind{hangAfter, []string{opCharge}}
	case FindDown:
		return &faultKind{notNow, []string{opFind}}
	case RefundAnswerLost:
		return &faultKind{cutAfter, []string{opRefund}}
	case BookRefused:
		return &faultKind{refuse, []string{opBook}}
	case BookFlaky:
		return &faultKind{notNow, []string{opBook}}
	case BookAnswerLost:
		return &faultKind{cutAfter, []string{opBook}}
	case LabelRefused:
		return &faultKind{refuse, []string{opLabel}}
	case MailAnswerLost:
		return &faultKind{cutAfter, []string{opSend}}
	case CancelAtApproval:
		return &faultKind{fromOthers, nil}
	}
	return nil
}

// Title says in a few words what happens to an order of the kind, for tables
// that people read.
func (k Kind) Title() string {
	switch k {
	case Plain:
		return "nothing goes wrong"
	case Approved:
		return "two people approve"
	case Rejected:
		return "rejected by an approver"
	case OutOfStock:
		return "out of stock"
	case ReserveAnswerLost:
		return "answer lost after the reservation"
	case ReleaseFlaky:
		return "release fails a few times"
	case CardDeclined:
		return "card declined"
	case PaymentDown:
		return "payment down for a while"
	case ChargeAnswerLostAfter:
		return "answer lost after the charge"
	case ChargeAnswerLostBefore:
		return "connection lost before the charge"
	case ChargeHangs:
		return "charged, then no answer"
	case FindDown:
		return "charged, answer lost, nobody to ask for a while"
	case RefundAnswerLost:
		return "answer lost after the refund"
	case BookRefused:
		return "delivery refused after the charge"
	case BookFlaky:
		return "booking fails a few times"
	case BookAnswerLost:
		return "answer lost after the booking"
	case LabelRefused:
		return "label refused after the booking"
	case MailAnswerLost:
		return "answer lost after the mail"
	case CancelAtApproval:
		return "cancelled half way"
	}
	return string(k)
}

// faults acts the faults of all orders out, as far as the services are
// concerned. Its counters live in memory: the demo does not kill its services.
type faults struct {
	mu    sync.Mutex
	order map[string][]*pending // by order id
}

// pending is a fault with the calls that it will still befall.
type pending struct {
	kind Kind
	what *faultKind
	left int // always, or the number of calls
}

func newFaults(lines []Line) *faults {
	f := &faults{order: map[string][]*pending{}}
	for _, line := range lines {
		for _, fault := range line.Faults {
			p := &pending{kind: fault.Kind, what: fault.Kind.fault(), left: max(fault.Times, 1)}
			if p.what == nil {
				continue
			}
			if p.what.way == refuse {
				p.left = always
			}
			f.order[line.Order.OrderID] = append(f.order[line.Order.OrderID], p)
		}
	}
	return f
}

// next returns the fault that befalls this call and uses it up, in the order
// in which the line names them.
func (f *faults) next(op, orderID string) (Kind, way) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.order[orderID] {
		if p.left == 0 || !p.befalls(op) {
			continue
		}
		if p.left > 0 {
			p.left--
		}
		return p.kind, p.what.way
	}
	return "", answerAsIs
}

func (p *pending) befalls(op string) bool {
	for _, name := range p.what.ops {
		if name == op {
			return true
		}
	}
	return false
}
