package order_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/ringiflow/ringi/examples/order"
)

// patience is how long a charge may take before its caller gives up. It is
// ample for an answer, and spent only on the orders whose answer never comes.
const patience = 500 * time.Millisecond

// tries is more than any fault of the orders needs.
const tries = 10

// walk takes one order through its process by hand, one step after the other,
// keeping to what each step's contract says, and returns how it ended. It is
// what the orders are measured against without an engine.
func (w *world) walk(t *testing.T, line order.Line) order.Run {
	t.Helper()
	ctx, id := t.Context(), line.Order.OrderID
	var undos []func() error
	end := func(status string) order.Run {
		for _, undo := range slices.Backward(undos) {
			if err := again(undo); err != nil {
				t.Errorf("%s: undo failed: %v", id, err)
			}
		}
		return order.Run{OrderID: id, Run: "run-" + id, Status: status}
	}
	key := func(step string) string { return id + "/" + step }

	if err := again(func() error {
		_, err := w.Reserve(ctx, key("reserve"), order.ReserveIn{OrderID: id, Items: line.Order.Items})
		return err
	}); err != nil {
		return end("failed")
	}
	undos = append(undos, func() error {
		_, err := w.Release(ctx, key("release"), order.UndoIn{Key: key("reserve")})
		return err
	})
	if line.CancelAtApproval() {
		return end("cancelled")
	}
	if slices.ContainsFunc(line.People, func(v order.Vote) bool { return v.Vote == "reject" }) {
		return end("compensated")
	}
	if err := w.chargeOnce(ctx, key("charge"), line.Order); err != nil {
		return end("compensated")
	}
	undos = append(undos, func() error {
		_, err := w.Refund(ctx, key("refund"), order.UndoIn{Key: key("charge")})
		return err
	})
	if err := again(func() error {
		_, err := w.Book(ctx, key("book"), order.BookIn{OrderID: id})
		return err
	}); err != nil {
		return end("compensated")
	}
	undos = append(undos, func() error {
		_, err := w.Cancel(ctx, key("cancel"), order.UndoIn{Key: key("book")})
		return err
	})
	if err := again(func() error {
		_, err := w.Label(ctx, key("print"), order.LabelIn{OrderID: id})
		return err
	}); err != nil {
		return end("compensated")
	}
	undos = nil // the mail cannot be taken back
	_, err := w.Send(ctx, key("confirm"), order.MailIn{OrderID: id, To: line.Order.Customer})
	run := end("completed")
	if err != nil {
		run.Unknown = []string{order.MailStep}
	}
	return run
}

// again calls until there is success or a failure for good.
func again(call func() error) (err error) {
	for range tries {
		var f *order.Failure
		if err = call(); err == nil || (errors.As(err, &f) && !f.Retryable) {
			return err
		}
	}
	return err
}

// chargeOnce charges, and asks before it charges again.
func (w *world) chargeOnce(ctx context.Context, key string, o order.Order) error {
	return again(func() error {
		found, err := w.Find(ctx, key+"/probe", order.FindIn{Key: key})
		if err != nil || found.Applied == order.AppliedYes {
			return err
		}
		if found.Applied == order.AppliedUnknown {
			return &order.Failure{Code: "unknown", Message: "nobody to ask", Retryable: true}
		}
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		_, err = w.Charge(ctx, key, order.ChargeIn{OrderID: o.OrderID, Customer: o.Customer, Amount: o.Amount})
		return err
	})
}

// playOrders makes books, orders and runs of the first n orders in a new
// directory, as a demo that went well leaves them.
func playOrders(t *testing.T, n int) string {
	t.Helper()
	dir := t.TempDir()
	if err := order.SaveOrders(dir, n); err != nil {
		t.Fatal(err)
	}
	lines, err := order.Lines(n)
	if err != nil {
		t.Fatal(err)
	}
	w := startWorld(t, dir, lines)
	var runs []order.Run
	for _, line := range lines {
		runs = append(runs, w.walk(t, line))
	}
	w.stop()
	if err := order.SaveRuns(dir, runs); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*-wal")); len(left) > 0 {
		t.Errorf("services that ended leave %v behind", left)
	}
	return dir
}

// S2, W14: all the orders come out as their lines say when every step is done
// as its contract allows.
func TestAllOrdersComeOutAsTheyExpect(t *testing.T) {
	report, err := order.Verify(t.Context(), playOrders(t, 0))
	if err != nil {
		t.Fatal(err)
	}
	if !report.Clean() || report.Orders != 100 || report.AsExpected != 100 || report.Books != report.Expected {
		t.Errorf("%d of %d as expected, %d double, %d lost\nbooks    %+v\nexpected %+v\n%q",
			report.AsExpected, report.Orders, report.DoubleEffects, report.Lost, report.Books, report.Expected, report.Mismatches)
	}
	total := 0
	for _, kind := range report.Kinds {
		total += kind.Orders
	}
	if len(report.Kinds) != len(order.Kinds()) || total != 100 {
		t.Errorf("the table has %d kinds with %d orders", len(report.Kinds), total)
	}
}
