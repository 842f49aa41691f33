package order

import (
	"context"
	"fmt"
	"slices"
)

// A Report is what the books say about a demo.
type Report struct {
	Orders        int `json:"orders"`
	AsExpected    int `json:"asExpected"`    // orders whose status and books are what their line says
	DoubleEffects int `json:"doubleEffects"` // effects that happened more often than their order or key allows
	Lost          int `json:"lost"`          // orders without a run that ended, or with an effect missing
	MailsUnsent   int `json:"mailsUnsent"`   // mails that nobody sent, each named by its run as unknown; allowed

	Books    Books `json:"books"`    // the effects that happened, all orders together
	Expected Books `json:"expected"` // the effects that the lines ask for, all orders together

	Kinds      []KindSum `json:"kinds"`      // in the order of Kinds, those that occur
	Mismatches []string  `json:"mismatches"` // one line for each thing that is not as it must be
}

// A KindSum is one row of the table at the end of the demo.
type KindSum struct {
	Kind       Kind   `json:"kind"`
	Title      string `json:"title"`
	Orders     int    `json:"orders"`
	AsExpected int    `json:"asExpected"`
	Status     string `json:"status"` // the status that the lines of this kind expect
	Books      Books  `json:"books"`  // the effects that happened
}

// Clean tells whether everything is as it must be.
func (r Report) Clean() bool {
	return r.AsExpected == r.Orders && r.DoubleEffects == 0 && r.Lost == 0 && len(r.Mismatches) == 0
}

// Verify compares the books, the runs and the orders that lie in dir. It reads
// stock.db, payment.db, shipping.db, mail.db, orders.jsonl and runs.json and
// nothing else, and changes none of them. What does not balance is in the
// report; an error means that a file is missing or cannot be read.
func Verify(ctx context.Context, dir string) (Report, error) {
	e, err := gather(ctx, dir)
	if err != nil {
		return Report{}, err
	}
	j := &judge{evidence: e, report: Report{Kinds: []KindSum{}, Mismatches: []string{}}, double: map[string]bool{}, kinds: map[Kind]*KindSum{}}
	for _, line := range e.lines {
		j.order(line)
	}
	j.rest()
	return j.done(), nil
}

// judge compares what the lines expect with the evidence, order by order.
type judge struct {
	*evidence
	report Report
	double map[string]bool // "order/op" of each effect that happened too often
	kinds  map[Kind]*KindSum
}

// wants is one operation of an order and how often it must have had an effect.
type wants struct {
	op   string
	want int
	got  int
}

func (j *judge) order(line Line) {
	id, before := line.Order.OrderID, len(j.report.Mismatches)
	lost := !j.run(line)
	found := j.found(id)
	for _, w := range []wants{
		{opReserve, line.Expect.Books.Reserved, found.Reserved},
		{opRelease, line.Expect.Books.Released, found.Released},
		{opCharge, line.Expect.Books.Charged, found.Charged},
		{opRefund, line.Expect.Books.Refunded, found.Refunded},
		{opBook, line.Expect.Books.Shipped, found.Shipped},
		{opCancel, cancelsOf(line.Expect), j.effects[id][opCancel]},
		{opSend, line.Expect.Books.Mails, found.Mails},
	} {
		if w.got > w.want {
			j.double[id+"/"+w.op] = true
		}
		if w.got < w.want && w.op == opSend && j.mailUnknown(id) {
			j.report.MailsUnsent += w.want - w.got
			continue
		}
		lost = lost || w.got < w.want
		if w.got != w.want {
			j.mismatch("order %s (%s): %s had an effect %s, expected %s", id, line.Kind().Title(), w.op, times(w.got), times(w.want))
		}
	}
	for _, t := range j.twice {
		if t.orderID == id {
			j.double[id+"/"+t.op] = true
			j.mismatch("order %s (%s): %s had its effect %s under the one key %s", id, line.Kind().Title(), t.op, times(t.times), t.key)
		}
	}
	j.odd(id)
	good := len(j.report.Mismatches) == before
	j.report.Orders++
	if lost {
		j.report.Lost++
	}
	if good {
		j.report.AsExpected++
	}
	add(&j.report.Expected, line.Expect.Books)
	j.sum(line, found, good)
}

// run judges the run of an order and reports whether there is one that ended.
func (j *judge) run(line Line) bool {
	id, runs := line.Order.OrderID, j.runs[line.Order.OrderID]
	switch {
	case len(runs) == 0:
		j.mismatch("order %s (%s): no run", id, line.Kind().Title())
		return false
	case len(runs) > 1:
		j.mismatch("order %s (%s): %d runs, and an order has one", id, line.Kind().Title(), len(runs))
	case runs[0].Status != line.Expect.Status:
		j.mismatch("order %s (%s): run %s is %s, expected %s", id, line.Kind().Title(), runs[0].Run, runs[0].Status, line.Expect.Status)
	}
	return slices.ContainsFunc(runs, func(r Run) bool { return final(r.Status) })
}

// rest judges what belongs to no order.
func (j *judge) rest() {
	known := map[string]bool{}
	for _, line := range j.lines {
		known[line.Order.OrderID] = true
	}
	for _, id := range sortedKeys(j.effects) {
		if known[id] {
			continue
		}
		for _, op := range sortedKeys(j.effects[id]) {
			j.double[id+"/"+op] = true
			j.mismatch("order %q is none of ours, and %s had an effect for it %s", id, op, times(j.effects[id][op]))
		}
	}
	for _, id := range sortedKeys(j.runs) {
		if !known[id] {
			j.mismatch("run %s is of order %q, which is none of ours", j.runs[id][0].Run, id)
		}
	}
	for _, o := range j.strange {
		if !known[o.orderID] {
			j.mismatch("no order: %s", o.text)
		}
	}
}

// odd notes the strange rows of one order.
func (j *judge) odd(id string) {
	for _, o := range j.strange {
		if o.orderID == id {
			j.mismatch("order %s: %s", id, o.text)
		}
	}
}

func (j *judge) done() Report {
	j.report.DoubleEffects = len(j.double)
	for id := range j.effects {
		add(&j.report.Books, j.found(id))
	}
	for _, kind := range Kinds() {
		if sum := j.kinds[kind]; sum != nil {
			j.report.Kinds = append(j.report.Kinds, *sum)
		}
	}
	return j.report
}

func (j *judge) sum(line Line, found Books, good bool) {
	kind := line.Kind()
	sum := j.kinds[kind]
	if sum == nil {
		sum = &KindSum{Kind: kind, Title: kind.Title(), Status: line.Expect.Status}
		j.kinds[kind] = sum
	}
	sum.Orders++
	if good {
		sum.AsExpected++
	}
	add(&sum.Books, found)
}

func (j *judge) found(id string) Books {
	ops := j.effects[id]
	return Books{
		Charged: ops[opCharge], Refunded: ops[opRefund],
		Reserved: ops[opReserve], Released: ops[opRelease],
		Shipped: ops[opBook], Mails: ops[opSend],
	}
}

// mailUnknown tells whether the order's run says that nobody knows whether its
// mail was sent.
func (j *judge) mailUnknown(id string) bool {
	return slices.ContainsFunc(j.runs[id], func(r Run) bool { return slices.Contains(r.Unknown, MailStep) })
}

func (j *judge) mismatch(format string, args ...any) {
	j.report.Mismatches = append(j.report.Mismatches, fmt.Sprintf(format, args...))
}

// cancelsOf returns how many bookings must have been cancelled: all of an order
// that did not complete, none of one that did.
func cancelsOf(e Expect) int {
	if e.Status == "completed" {
		return 0
	}
	return e.Books.Shipped
}

// final tells whether a run with the status has ended.
func final(status string) bool {
	switch status {
	case "completed", "failed", "compensated", "cancelled", "terminated":
		return true
	}
	return false
}

func add(to *Books, b Books) {
	to.Charged += b.Charged
	to.Refunded += b.Refunded
	to.Reserved += b.Reserved
	to.Released += b.Released
	to.Shipped += b.Shipped
	to.Mails += b.Mails
}

func times(n int) string {
	switch n {
	case 0:
		return "never"
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
