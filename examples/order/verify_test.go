package order_test

import (
	"database/sql"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ringiflow/ringi/examples/order"
)

// spoilt is one thing done to good books, and what Verify must make of it.
type spoilt struct {
	name     string
	service  string
	sql      string // changes one row
	double   int
	lost     int
	expected int // orders that are still as expected, of 25
	says     string
}

const first = `rowid = (SELECT min(rowid) FROM calls WHERE effect = 1 AND op = `

func spoiltRows() []spoilt {
	return []spoilt{
		{"a reservation is gone", order.Stock, `DELETE FROM calls WHERE ` + first + `'reserve')`, 0, 1, 24, "reserve had an effect never, expected once"},
		{"a reservation twice", order.Stock, `INSERT INTO calls SELECT * FROM calls WHERE ` + first + `'reserve')`, 1, 0, 24, "reserve had its effect twice under the one key"},
		{"a release that had no effect", order.Stock, `UPDATE calls SET effect = 0 WHERE ` + first + `'release')`, 0, 1, 24, "release had an effect never"},
		{"a release of something else", order.Stock, `UPDATE calls SET key = 'other' WHERE ` + first + `'release')`, 0, 0, 24, "there was no reserve under its key"},
		{"a charge twice under another key", order.Payment, `INSERT INTO calls SELECT op, 'other', order_id, 1, at FROM calls WHERE ` + first + `'charge')`, 1, 0, 24, "charge had an effect twice, expected once"},
		{"a charge that had no effect", order.Payment, `UPDATE calls SET effect = 0 WHERE ` + first + `'charge')`, 0, 1, 24, "charge had an effect never"},
		{"a charge of another order", order.Payment, `UPDATE calls SET order_id = 'ORD-1004' WHERE ` + first + `'charge')`, 1, 1, 23, "order ORD-1004"},
		{"a charge of nobody's order", order.Payment, `UPDATE calls SET order_id = '' WHERE ` + first + `'charge')`, 1, 1, 24, "is none of ours"},
		{"a refund is gone", order.Payment, `DELETE FROM calls WHERE ` + first + `'refund')`, 0, 1, 24, "refund had an effect never"},
		{"a charge after its refund", order.Payment, `UPDATE calls SET rowid = 100000 WHERE key = (SELECT min(key) FROM calls WHERE op = 'refund') AND op = 'charge'`, 0, 0, 24, "charge had an effect after its refund"},
		{"a question with an effect", order.Payment, `UPDATE calls SET effect = 1 WHERE rowid = (SELECT min(rowid) FROM calls WHERE op = 'find' AND order_id <> '')`, 0, 0, 24, "find only reads"},
		{"more than one effect in one call", order.Payment, `UPDATE calls SET effect = 2 WHERE ` + first + `'charge')`, 1, 0, 24, "effect is 2"},
		{"a booking is gone", order.Shipping, `DELETE FROM calls WHERE ` + first + `'book')`, 0, 1, 24, "book had an effect never"},
		{"a parcel that nobody cancelled", order.Shipping, `DELETE FROM calls WHERE ` + first + `'cancel')`, 0, 1, 24, "cancel had an effect never, expected once"},
		{"a call that shipping cannot make", order.Shipping, `UPDATE calls SET op = 'charge' WHERE ` + first + `'book')`, 0, 1, 24, `shipping has no operation "charge"`},
		{"no time", order.Shipping, `UPDATE calls SET at = 'yesterday' WHERE ` + first + `'book')`, 0, 0, 24, `at is "yesterday"`},
		{"a mail twice", order.Mail, `INSERT INTO calls SELECT * FROM calls WHERE ` + first + `'send')`, 1, 0, 24, "send had its effect twice"},
		{"a mail is gone and its run knows nothing of it", order.Mail, `DELETE FROM calls WHERE ` + first + `'send')`, 0, 1, 24, "send had an effect never"},
		{"a mail to somebody whose order failed", order.Mail, `UPDATE calls SET order_id = 'ORD-1004' WHERE ` + first + `'send')`, 1, 1, 23, "send had an effect once, expected never"},
	}
}

// S3, W13, W31
func TestOneSpoiltRowIsFound(t *testing.T) {
	good := playOrders(t, 25)
	if report, err := order.Verify(t.Context(), good); err != nil || !report.Clean() {
		t.Fatalf("the good books are not good: %+v, %v", report, err)
	}
	for _, tc := range spoiltRows() {
		t.Run(tc.name, func(t *testing.T) {
			dir := copyDir(t, good)
			change(t, order.BookPath(dir, tc.service), tc.sql)
			report, err := order.Verify(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			if report.Clean() {
				t.Errorf("Verify finds nothing wrong")
			}
			if report.DoubleEffects != tc.double || report.Lost != tc.lost || report.AsExpected != tc.expected {
				t.Errorf("double %d, lost %d, as expected %d; want %d, %d, %d",
					report.DoubleEffects, report.Lost, report.AsExpected, tc.double, tc.lost, tc.expected)
			}
			if !strings.Contains(strings.Join(report.Mismatches, "\n"), tc.says) {
				t.Errorf("Verify says\n%s\nand not %q", strings.Join(report.Mismatches, "\n"), tc.says)
			}
		})
	}
	t.Run("runs", func(t *testing.T) { testSpoiltRuns(t, good) })
	t.Run("mail unknown", func(t *testing.T) { testMailThatNobodyKnowsOf(t, good) })
	t.Run("files", func(t *testing.T) { testMissingFiles(t, good) })
	t.Run("sums", func(t *testing.T) { testSumsBySQL(t, good) })
}

func testSpoiltRuns(t *testing.T, good string) {
	for _, tc := range []struct {
		name   string
		change func([]order.Run) []order.Run
		lost   int
		says   string
	}{
		{"gone", func(r []order.Run) []order.Run { return r[1:] }, 1, "no run"},
		{"not at its end", func(r []order.Run) []order.Run { r[0].Status = "incident"; return r }, 1, "is incident, expected completed"},
		{"another end", func(r []order.Run) []order.Run { r[0].Status = "cancelled"; return r }, 0, "is cancelled, expected completed"},
		{"twice", func(r []order.Run) []order.Run { return append(r, r[0]) }, 0, "2 runs"},
		{"of no order", func(r []order.Run) []order.Run { return append(r, order.Run{OrderID: "ORD-0", Run: "r0"}) }, 0, `order "ORD-0"`},
	} {
		dir := copyDir(t, good)
		if err := order.SaveRuns(dir, tc.change(readRuns(t, dir))); err != nil {
			t.Fatal(err)
		}
		report, err := order.Verify(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		if report.Clean() || report.Lost != tc.lost || !strings.Contains(strings.Join(report.Mismatches, "\n"), tc.says) {
			t.Errorf("%s: clean %v, lost %d, %q; want lost %d and %q", tc.name, report.Clean(), report.Lost, report.Mismatches, tc.lost, tc.says)
		}
	}
}

// W14: at_most_once with assume_applied lets a mail be missing, and never be sent twice.
func testMailThatNobodyKnowsOf(t *testing.T, good string) {
	dir := copyDir(t, good)
	runs := readRuns(t, dir)
	i := slices.IndexFunc(runs, func(r order.Run) bool { return r.Status == "completed" })
	runs[i].Unknown = []string{order.MailStep}
	if err := order.SaveRuns(dir, runs); err != nil {
		t.Fatal(err)
	}
	book := order.BookPath(dir, order.Mail)
	if report, err := order.Verify(t.Context(), dir); err != nil || !report.Clean() || report.MailsUnsent != 0 {
		t.Errorf("unknown, and sent: %+v, %v", report, err)
	}
	change(t, book, `DELETE FROM calls WHERE order_id = '`+runs[i].OrderID+`'`)
	if report, err := order.Verify(t.Context(), dir); err != nil || !report.Clean() || report.MailsUnsent != 1 {
		t.Errorf("unknown, and not sent: %+v, %v", report, err)
	}
	change(t, book, `INSERT INTO calls (op, key, order_id, effect) VALUES ('send', 'k1', '`+runs[i].OrderID+`', 1), ('send', 'k2', '`+runs[i].OrderID+`', 1)`)
	if report, err := order.Verify(t.Context(), dir); err != nil || report.Clean() || report.DoubleEffects != 1 {
		t.Errorf("unknown, and sent twice: %+v, %v", report, err)
	}
}

func testMissingFiles(t *testing.T, good string) {
	for _, name := range []string{"stock.db", "payment.db", "shipping.db", "mail.db", "orders.jsonl", "runs.json"} {
		dir := copyDir(t, good)
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		if _, err := order.Verify(t.Context(), dir); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: error %v", name, err)
		}
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			t.Errorf("Verify made %s", name)
		}
	}
}

// testSumsBySQL gets the sums as the package comment says, without Verify.
func testSumsBySQL(t *testing.T, good string) {
	report, err := order.Verify(t.Context(), good)
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]int{}
	for _, service := range order.ServiceNames() {
		query(t, order.BookPath(good, service), `SELECT op, SUM(effect) FROM calls GROUP BY op`, func(rows *sql.Rows) error {
			var op string
			var sum int
			if err := rows.Scan(&op, &sum); err != nil {
				return err
			}
			sums[op] = sum
			return nil
		})
		query(t, order.BookPath(good, service), `SELECT op, key, SUM(effect) FROM calls GROUP BY op, key HAVING SUM(effect) > 1`, func(*sql.Rows) error {
			t.Errorf("an effect twice in the book of %s", service)
			return nil
		})
	}
	got := order.Books{
		Charged: sums["charge"], Refunded: sums["refund"], Reserved: sums["reserve"],
		Released: sums["release"], Shipped: sums["book"], Mails: sums["send"],
	}
	if got != report.Books || got != report.Expected {
		t.Errorf("SQL says %+v, Verify %+v, the orders %+v", got, report.Books, report.Expected)
	}
}

// A demo that is cut off leaves write-ahead logs behind; what they hold counts.
func TestVerifyReadsWhatIsStillInTheWriteAheadLog(t *testing.T) {
	dir := t.TempDir()
	if err := order.SaveOrders(dir, 1); err != nil {
		t.Fatal(err)
	}
	lines, err := order.Lines(1)
	if err != nil {
		t.Fatal(err)
	}
	w := startWorld(t, dir, lines)
	if err := order.SaveRuns(dir, []order.Run{w.walk(t, lines[0])}); err != nil {
		t.Fatal(err)
	}
	cut := copyDir(t, dir) // with its services running
	if left, _ := filepath.Glob(filepath.Join(cut, "*-wal")); len(left) == 0 {
		t.Fatal("there is no write-ahead log to read")
	}
	if report, err := order.Verify(t.Context(), cut); err != nil || !report.Clean() {
		t.Errorf("%+v, %v", report, err)
	}
}

func readRuns(t *testing.T, dir string) []order.Run {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, order.RunsName))
	if err != nil {
		t.Fatal(err)
	}
	var runs []order.Run
	if err := json.Unmarshal(data, &runs); err != nil {
		t.Fatal(err)
	}
	return runs
}

func copyDir(t *testing.T, from string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return to
}

// change runs one statement on a book and fails unless it touches a row.
func change(t *testing.T, path, statement string) {
	t.Helper()
	db := openDB(t, path)
	defer db.Close()
	res, err := db.ExecContext(t.Context(), statement)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		t.Fatalf("%s touches %d rows, %v", statement, n, err)
	}
}
