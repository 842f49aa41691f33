package order_test

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ringiflow/ringi/examples/order"
)

// world is the four services on loopback, and the activities that call them.
type world struct {
	*order.Activities
	dir  string
	stop func() // ends the services and closes their books; may be called twice
}

// startWorld starts the four services in dir and stops them with the test.
func startWorld(t *testing.T, dir string, lines []order.Line) *world {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	urls, ended := map[string]string{}, make(chan error, len(order.ServiceNames()))
	for _, name := range order.ServiceNames() {
		ready, failed := make(chan string, 1), make(chan error, 1)
		go func() {
			err := order.RunService(ctx, order.ServiceConfig{
				Name: name, DB: order.BookPath(dir, name), Lines: lines,
				Ready: func(url string) { ready <- url },
			})
			failed <- err
			ended <- err
		}()
		select {
		case urls[name] = <-ready:
		case err := <-failed:
			t.Fatalf("service %s did not start: %v", name, err)
		}
	}
	w := &world{dir: dir, Activities: &order.Activities{
		Stock: urls[order.Stock], Payment: urls[order.Payment], Shipping: urls[order.Shipping], Mail: urls[order.Mail],
	}}
	stopped := false
	w.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		for range order.ServiceNames() {
			if err := <-ended; err != nil {
				t.Errorf("a service ended with %v", err)
			}
		}
	}
	t.Cleanup(w.stop)
	return w
}

// rows returns the calls of a service as "op key order effect", in their order.
func (w *world) rows(t *testing.T, service string) []string {
	t.Helper()
	var got []string
	query(t, order.BookPath(w.dir, service), `SELECT op || ' ' || key || ' ' || order_id || ' ' || effect FROM calls ORDER BY rowid`, func(rows *sql.Rows) error {
		var row string
		if err := rows.Scan(&row); err != nil {
			return err
		}
		got = append(got, row)
		return nil
	})
	return got
}

// wantRows fails unless the service's calls are exactly these.
func (w *world) wantRows(t *testing.T, service string, want ...string) {
	t.Helper()
	if got := w.rows(t, service); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("calls of %s:\n%s\nwant:\n%s", service, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func openDB(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: "_pragma=busy_timeout(5000)&_pragma=ignore_check_constraints(1)"}).String())
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func query(t *testing.T, path, text string, take func(*sql.Rows) error) {
	t.Helper()
	db := openDB(t, path)
	defer db.Close()
	rows, err := db.QueryContext(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := take(rows); err != nil {
			t.Fatal(err)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}

// lineWith returns an order o1 with these faults.
func lineWith(faults ...order.Fault) []order.Line {
	return []order.Line{{
		Order:  order.Order{OrderID: "o1", Customer: "aoi@example.com", Amount: "1200", Items: []order.Item{{SKU: "TEA", Qty: 1}}},
		Faults: faults,
	}}
}

// failure returns the failure that err is, as "code retryable applied", and ""
// if there is no error.
func failure(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	var f *order.Failure
	if !errors.As(err, &f) {
		t.Fatalf("error %v is no *Failure", err)
	}
	if f.Message == "" {
		t.Errorf("failure %s has no message", f.Code)
	}
	again := "final"
	if f.Retryable {
		again = "retryable"
	}
	return f.Code + " " + again + " " + f.Applied
}

// The calls of order o1, each under the key k of its step.

func (w *world) reserve(t *testing.T, key string) (string, error) {
	out, err := w.Reserve(t.Context(), key, order.ReserveIn{OrderID: "o1", Items: []order.Item{{SKU: "TEA", Qty: 1}}})
	return out.ReservationID, err
}

func (w *world) charge(ctx context.Context, key string) (string, error) {
	out, err := w.Charge(ctx, key, order.ChargeIn{OrderID: "o1", Customer: "aoi@example.com", Amount: "1200"})
	return out.ChargeID, err
}

func (w *world) book(t *testing.T, key string) (string, error) {
	out, err := w.Book(t.Context(), key, order.BookIn{OrderID: "o1"})
	return out.ParcelID, err
}

func (w *world) label(t *testing.T, key string) (string, error) {
	out, err := w.Label(t.Context(), key, order.LabelIn{OrderID: "o1"})
	return out.Label, err
}

func (w *world) send(t *testing.T, key string) (string, error) {
	out, err := w.Send(t.Context(), key, order.MailIn{OrderID: "o1", To: "aoi@example.com"})
	return out.MailID, err
}

func (w *world) release(t *testing.T, key string) (bool, error) {
	out, err := w.Release(t.Context(), "undo of "+key, order.UndoIn{Key: key})
	return out.Released, err
}

func (w *world) refund(t *testing.T, key string) (bool, error) {
	out, err := w.Refund(t.Context(), "undo of "+key, order.UndoIn{Key: key})
	return out.Refunded, err
}

func (w *world) cancel(t *testing.T, key string) (bool, error) {
	out, err := w.Cancel(t.Context(), "undo of "+key, order.UndoIn{Key: key})
	return out.Cancelled, err
}

// find returns what the probe answers, as "applied charge_id".
func (w *world) find(t *testing.T, key string) string {
	t.Helper()
	out, err := w.Find(t.Context(), "probe of "+key, order.FindIn{Key: key})
	if err != nil {
		t.Fatal(err)
	}
	if out.Output == nil {
		return out.Applied
	}
	return out.Applied + " " + out.Output.ChargeID
}
