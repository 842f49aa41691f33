package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ringiflow/ringi/examples/order"
)

// A demoStory tells what happens while it happens, a line at a time, each with
// the seconds since the demo began. It is safe for concurrent use.
type demoStory struct {
	now   func() time.Time
	began time.Time

	mu  sync.Mutex
	out io.Writer
}

func newDemoStory(out io.Writer, now func() time.Time) *demoStory {
	return &demoStory{out: out, now: now, began: now()}
}

// tell adds a line.
func (s *demoStory) tell(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, "%6.1f s  %s\n", s.seconds(), fmt.Sprintf(format, args...))
}

// plain adds lines without a time.
func (s *demoStory) plain(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, format+"\n", args...)
}

// seconds is how long the demo has been going on.
func (s *demoStory) seconds() float64 { return s.now().Sub(s.began).Seconds() }

// demoTable is the table at the end: a row for each kind of order, and the sums.
func demoTable(report order.Report) table {
	t := table{head: []string{"WHAT HAPPENS TO THE ORDERS", "ORDERS", "AS EXPECTED", "END", "RESERVED", "CHARGED", "SHIPPED", "MAILS", "REFUNDED", "RELEASED"}}
	for _, k := range report.Kinds {
		t.row(demoRow(k.Title, k.Orders, k.AsExpected, k.Status, k.Books)...)
	}
	t.row(demoRow("all of them", report.Orders, report.AsExpected, "", report.Books)...)
	t.row(demoRow("what their lines ask for", report.Orders, report.Orders, "", report.Expected)...)
	return t
}

func demoRow(title string, orders, good int, status string, b order.Books) []string {
	row := []string{title, strconv.Itoa(orders), strconv.Itoa(good), status}
	for _, n := range []int{b.Reserved, b.Charged, b.Shipped, b.Mails, b.Refunded, b.Released} {
		row = append(row, strconv.Itoa(n))
	}
	return row
}

// demoMismatches is how many of the things that are wrong are told one by one.
const demoMismatches = 20

// demoVerdict says in a few lines what the books say.
func demoVerdict(report order.Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d orders ended as their line says; %s happened twice; %s got lost",
		report.AsExpected, report.Orders, demoCount(report.DoubleEffects, "effect"), demoCount(report.Lost, "order"))
	if n := report.MailsUnsent; n > 0 {
		fmt.Fprintf(&b, "\n%s not sent: the worker died between its permission and the sending, and the process says\nthat a second mail is worse than none (each such run names the step as unknown)",
			demoCount(n, "mail"))
	}
	for i, m := range report.Mismatches {
		if i == demoMismatches {
			fmt.Fprintf(&b, "\n  and %d more", len(report.Mismatches)-i)
			break
		}
		fmt.Fprintf(&b, "\n  %s", m)
	}
	return b.String()
}

// demoCount says how many there are of a noun: no mail, one mail, 2 mails.
func demoCount(n int, noun string) string {
	switch n {
	case 0:
		return "no " + noun
	case 1:
		return "one " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
