package order_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ringiflow/ringi/examples/order"
)

// W13
func TestStockReservesOncePerKey(t *testing.T) {
	w := startWorld(t, t.TempDir(), nil)
	first, err := w.reserve(t, "k1")
	if err != nil {
		t.Fatal(err)
	}
	again, err := w.reserve(t, "k1")
	if err != nil || again != first {
		t.Errorf("second reserve answered %q, %v; want %q", again, err, first)
	}
	if other, err := w.reserve(t, "k2"); err != nil || other == first {
		t.Errorf("reserve with another key answered %q, %v", other, err)
	}
	w.wantRows(t, order.Stock, "reserve k1 o1 1", "reserve k1 o1 0", "reserve k2 o1 1")
}

func TestShippingBooksOncePerKeyAndLabelsWithoutEffect(t *testing.T) {
	w := startWorld(t, t.TempDir(), nil)
	first, err := w.book(t, "k1")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := w.book(t, "k1"); err != nil || again != first {
		t.Errorf("second book answered %q, %v; want %q", again, err, first)
	}
	if text, err := w.label(t, "k2"); err != nil || !strings.Contains(text, "o1") {
		t.Errorf("label is %q, %v", text, err)
	}
	w.wantRows(t, order.Shipping, "book k1 o1 1", "book k1 o1 0", "label k2 o1 0")
}

func TestPaymentChargesTwiceWithOneKeyAndTellsSo(t *testing.T) {
	w := startWorld(t, t.TempDir(), nil)
	if got := w.find(t, "k1"); got != order.AppliedNo {
		t.Errorf("find before the charge answered %q", got)
	}
	first, err := w.charge(t.Context(), "k1")
	if err != nil {
		t.Fatal(err)
	}
	second, err := w.charge(t.Context(), "k1")
	if err != nil || second == first {
		t.Errorf("second charge answered %q, %v; want a charge of its own beside %q", second, err, first)
	}
	if got, want := w.find(t, "k1"), "yes "+first; got != want {
		t.Errorf("find answered %q, want %q", got, want)
	}
	w.wantRows(t, order.Payment, "find k1  0", "charge k1 o1 1", "charge k1 o1 1", "find k1 o1 0")
}

func TestMailSendsAsOftenAsItIsTold(t *testing.T) {
	w := startWorld(t, t.TempDir(), nil)
	first, err := w.send(t, "k1")
	if err != nil {
		t.Fatal(err)
	}
	if second, err := w.send(t, "k1"); err != nil || second == first {
		t.Errorf("second mail is %q, %v; want one of its own beside %q", second, err, first)
	}
	w.wantRows(t, order.Mail, "send k1 o1 1", "send k1 o1 1")
}

// undoable is a forward call, its undo, and where they are written down.
type undoable struct {
	service, forward, undo, late string
	do                           func(key string) (string, error)
	revert                       func(key string) (bool, error)
}

func undoables(t *testing.T, w *world) []undoable {
	return []undoable{
		{
			order.Stock, "reserve", "release", "released_already final no",
			func(key string) (string, error) { return w.reserve(t, key) },
			func(key string) (bool, error) { return w.release(t, key) },
		},
		{
			order.Payment, "charge", "refund", "refunded_already final no",
			func(key string) (string, error) { return w.charge(t.Context(), key) },
			func(key string) (bool, error) { return w.refund(t, key) },
		},
		{
			order.Shipping, "book", "cancel", "cancelled_already final no",
			func(key string) (string, error) { return w.book(t, key) },
			func(key string) (bool, error) { return w.cancel(t, key) },
		},
	}
}

// S3
func TestUndoHappensOnceHoweverOftenItIsAsked(t *testing.T) {
	w := startWorld(t, t.TempDir(), nil)
	for _, u := range undoables(t, w) {
		if _, err := u.do("k1"); err != nil {
			t.Fatal(err)
		}
		for i, want := range []bool{true, false} {
			if undone, err := u.revert("k1"); err != nil || undone != want {
				t.Errorf("%s %d answered %v, %v; want %v", u.undo, i+1, undone, err, want)
			}
		}
		if _, err := u.do("k1"); failure(t, err) != u.late {
			t.Errorf("%s after %s: %v, want %s", u.forward, u.undo, err, u.late)
		}
		w.wantRows(t, u.service, u.forward+" k1 o1 1", u.undo+" k1 o1 1", u.undo+" k1 o1 0", u.forward+" k1 o1 0")
	}
}

// S-2, S-4
func TestUndoOfWhatNeverCameIsWellAndKeepsItFromComing(t *testing.T) {
	w := startWorld(t, t.TempDir(), nil)
	for _, u := range undoables(t, w) {
		if undone, err := u.revert("k1"); err != nil || undone {
			t.Errorf("%s answered %v, %v; want false and no error", u.undo, undone, err)
		}
		if _, err := u.do("k1"); failure(t, err) != u.late {
			t.Errorf("late %s: %v, want %s", u.forward, err, u.late)
		}
		w.wantRows(t, u.service, u.undo+" k1  0", u.forward+" k1 o1 0")
	}
	if got := w.find(t, "k1"); got != order.AppliedNo {
		t.Errorf("find of a charge that was refused for good answered %q", got)
	}
}

func TestServiceKnowsItsCallsAfterARestart(t *testing.T) {
	dir := t.TempDir()
	w := startWorld(t, dir, nil)
	first, err := w.reserve(t, "k1")
	if err != nil {
		t.Fatal(err)
	}
	w.stop()
	w = startWorld(t, dir, nil)
	if again, err := w.reserve(t, "k1"); err != nil || again != first {
		t.Errorf("reserve after the restart answered %q, %v; want %q", again, err, first)
	}
}

func TestServiceStopsWhileACallHangs(t *testing.T) {
	w := startWorld(t, t.TempDir(), lineWith(order.Fault{Kind: order.ChargeHangs}))
	answered := make(chan error, 1)
	go func() {
		_, err := w.charge(context.WithoutCancel(t.Context()), "k1")
		answered <- err
	}()
	deadline, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for w.find(t, "k1") == order.AppliedNo { // until the charge is made; it hangs after that
		if deadline.Err() != nil {
			t.Fatal("the charge was not made within two minutes")
		}
	}
	w.stop()
	if err := <-answered; failure(t, err) != "answer_lost retryable unknown" {
		t.Errorf("the charge that hung ended with %v", err)
	}
}

func TestServiceRefusesCallsThatAreNone(t *testing.T) {
	w := startWorld(t, t.TempDir(), nil)
	for _, tc := range []struct {
		name, url, body string
		want            int
	}{
		{"no JSON", w.Stock + "/reserve", `reserve!`, http.StatusBadRequest},
		{"no key", w.Stock + "/reserve", `{"order_id":"o1"}`, http.StatusBadRequest},
		{"no order to reserve for", w.Stock + "/reserve", `{"key":"k"}`, http.StatusBadRequest},
		{"no customer to charge", w.Payment + "/charge", `{"key":"k","order_id":"o1","amount":1}`, http.StatusBadRequest},
		{"no order to book", w.Shipping + "/book", `{"key":"k"}`, http.StatusBadRequest},
		{"no order to label", w.Shipping + "/label", `{"key":"k"}`, http.StatusBadRequest},
		{"nobody to mail", w.Mail + "/send", `{"key":"k","order_id":"o1"}`, http.StatusBadRequest},
		{"too large", w.Mail + "/send", `{"key":"` + strings.Repeat("k", 1<<20) + `"}`, http.StatusBadRequest},
		{"another service's business", w.Mail + "/charge", `{"key":"k"}`, http.StatusNotFound},
	} {
		resp, err := http.Post(tc.url, "application/json", strings.NewReader(tc.body))
		if err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != tc.want {
			t.Errorf("%s: status %d, want %d", tc.name, resp.StatusCode, tc.want)
		}
	}
	for _, service := range order.ServiceNames() {
		for _, row := range w.rows(t, service) {
			if strings.HasSuffix(row, " 1") {
				t.Errorf("a call that is none had an effect: %s", row)
			}
		}
	}
}

func TestRunServiceSaysWhatItCannotStartWith(t *testing.T) {
	dir := t.TempDir()
	for _, tc := range []struct {
		name string
		cfg  order.ServiceConfig
		want string
	}{
		{"unknown service", order.ServiceConfig{Name: "bakery", DB: filepath.Join(dir, "b.db")}, "bakery"},
		{"no file", order.ServiceConfig{Name: order.Stock}, "set DB"},
		{"a file that cannot be", order.ServiceConfig{Name: order.Stock, DB: filepath.Join(dir, "no", "such", "stock.db")}, "start service stock"},
		{"an address that cannot be", order.ServiceConfig{Name: order.Stock, DB: filepath.Join(dir, "s.db"), Listen: "127.0.0.1:many"}, "start service stock"},
	} {
		err := order.RunService(t.Context(), tc.cfg)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want one with %q", tc.name, err, tc.want)
		}
	}
}

func TestTheBooksAreForTheirOwnerOnly(t *testing.T) {
	dir := t.TempDir()
	w := startWorld(t, dir, nil)
	if _, err := w.reserve(t, "k1"); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.db*"))
	if err != nil || len(files) < len(order.ServiceNames()) {
		t.Fatalf("the books are %v, %v", files, err)
	}
	for _, file := range files {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", file, info.Mode(), err)
		}
	}
}
