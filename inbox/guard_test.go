package inbox_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/ringiflow/ringi/inbox"
)

// O-17, O-25, O-26: work that a server does is guarded as work in a transaction is.
func TestWorkDoneElsewhereIsGuarded(t *testing.T) {
	eachDatabase(t, func(t *testing.T, db *sql.DB) {
		c, _ := consumer(t, db, nil) // three attempts
		fails := func(err error) func(context.Context) error { return func(context.Context) error { return err } }
		calls := 0
		works := func(context.Context) error { calls++; return nil }

		for range 2 { // the server knows repeats
			got, err := c.Guard(t.Context(), inbox.Delivery{ID: "good"}, works)
			received(t, got, err, inbox.Handled, nil)
		}
		if calls != 2 {
			t.Errorf("called %d times", calls)
		}

		outage := errors.New("nobody answers")
		for range 10 {
			got, err := c.Guard(t.Context(), inbox.Delivery{ID: "waits"}, fails(inbox.Excuse(outage)))
			received(t, got, err, inbox.Failed, outage)
		}
		got, err := c.Guard(t.Context(), inbox.Delivery{ID: "waits"}, works)
		received(t, got, err, inbox.Handled, nil)

		for range 2 { // failures that did not last are forgotten
			for range 2 {
				got, err := c.Guard(t.Context(), inbox.Delivery{ID: "mends"}, fails(errWork))
				received(t, got, err, inbox.Failed, errWork)
			}
			got, err := c.Guard(t.Context(), inbox.Delivery{ID: "mends"}, works)
			received(t, got, err, inbox.Handled, nil)
		}

		d := inbox.Delivery{ID: "bad", Body: []byte("no JSON"), Headers: map[string]string{"type": "x"}}
		got, err = c.Guard(t.Context(), d, fails(inbox.Refuse(errWork)))
		received(t, got, err, inbox.Poisoned, errWork)
		got, err = c.Guard(t.Context(), d, works)
		received(t, got, err, inbox.Poisoned, nil)
		for _, want := range []inbox.Outcome{inbox.Failed, inbox.Failed, inbox.Poisoned} {
			got, err := c.Guard(t.Context(), inbox.Delivery{ID: "worse"}, fails(errWork))
			received(t, got, err, want, errWork)
		}
		list, err := c.Poison(t.Context(), "", 10)
		if err != nil || len(list) != 2 || list[0].ID != "bad" || string(list[0].Body) != "no JSON" || list[1].ID != "worse" {
			t.Errorf("set aside are %+v, %v", list, err)
		}
		if inbox.Refuse(nil) != nil || inbox.Excuse(nil) != nil {
			t.Error("no error became one")
		}
		if got, err := c.Guard(t.Context(), inbox.Delivery{}, works); got != inbox.Failed || err == nil {
			t.Errorf("a message without an id is %d, %v", got, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for range 10 {
			got, err = c.Guard(ctx, inbox.Delivery{ID: "stopped"}, func(context.Context) error { cancel(); return errWork })
			if got != inbox.Failed {
				t.Errorf("a shutdown counts: %d, %v", got, err)
			}
		}
	})
}
