package demo

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ringiflow/ringi/examples/order"
)

// A teller tells what happens while it happens, a line at a time, each with
// the seconds since the demo began. It is safe for concurrent use.
type teller struct {
	now   func() time.Time
	began time.Time

	mu  sync.Mutex
	out io.Writer
}

func newTeller(out io.Writer, now func() time.Time) *teller {
	return &teller{out: out, now: now, began: now()}
}

// tell adds a line.
func (s *teller) tell(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, "%6.1f s  %s\n", s.seconds(), fmt.Sprintf(format, args...))
}

// plain adds lines without a time.
func (s *teller) plain(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, format+"\n", args...)
}

// seconds is how long the demo has been going on.
func (s *teller) seconds() float64 { return s.now().Sub(s.began).Seconds() }

// mismatchesTold is how many of the things that are wrong are told one by one.
const mismatchesTold = 20

// Verdict says in a few lines, for people, what the books say.
func Verdict(report order.Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d orders ended as their line says; %s happened twice; %s got lost",
		report.AsExpected, report.Orders, amount(report.DoubleEffects, "effect"), amount(report.Lost, "order"))
	if n := report.MailsUnsent; n > 0 {
		fmt.Fprintf(&b, "\n%s not sent: the worker died between its permission and the sending, and the process says\nthat a second mail is worse than none (each such run names the step as unknown)",
			amount(n, "mail"))
	}
	for i, m := range report.Mismatches {
		if i == mismatchesTold {
			fmt.Fprintf(&b, "\n  and %d more", len(report.Mismatches)-i)
			break
		}
		fmt.Fprintf(&b, "\n  %s", m)
	}
	return b.String()
}

// Kills counts the kills of servers, workers and the database.
func (r Result) Kills() int {
	n := r.ServerKills + r.WorkerKills
	if r.DatabaseKills != nil {
		n += *r.DatabaseKills
	}
	return n
}

// Summary says in two lines, for people, what was done to the processes and what
// that led to.
func (r Result) Summary() string {
	who := fmt.Sprintf("killed the server %d times and the worker %d times", r.ServerKills, r.WorkerKills)
	if len(r.Nodes) > 0 {
		who = fmt.Sprintf("killed nodes %d times and workers %d times", r.ServerKills, r.WorkerKills)
	}
	if r.DatabaseKills != nil {
		who += fmt.Sprintf(", crashed the database %d times", *r.DatabaseKills)
	}
	return fmt.Sprintf("%s, with %s under lease in all;\n%s delivered again, %s came too late; people decided about %s",
		who, amount(r.TasksInFlightAtKills, "task"), amount(r.Redelivered, "task"), amount(r.LateResults, "result"), amount(r.Approvals, "order"))
}

// amount says how many there are of a noun: no mail, one mail, 2 mails.
func amount(n int, noun string) string {
	switch n {
	case 0:
		return "no " + noun
	case 1:
		return "one " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
