//go:build unix

package main

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/cmd/ringi/cli"
	"github.com/ringiflow/ringi/servertest"
)

// awaitDefinition waits for one event, and then for another that never comes, so that
// its runs stay to be read.
const awaitDefinition = `ringi: v1
name: await
input: { type: object, required: [order], properties: { order: { type: string } } }
steps:
  - { id: paid, wait: { event: paid, key: "${ input.order }" } }
  - { id: hold, wait: { event: never, key: k } }
`

// keptEvents is how many events the desk's server keeps.
func (w *desk) keptEvents() (kept int) {
	w.t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(w.dir, "ringi.db")+"?_pragma=busy_timeout(30000)") // the server may be writing right now
	if err != nil {
		w.t.Fatal(err)
	}
	if err := errors.Join(db.QueryRowContext(w.t.Context(), `select count(*) from sent_event`).Scan(&kept), db.Close()); err != nil {
		w.t.Fatal(err)
	}
	return kept
}

// O7, O9: the whole stream comes again, through a second feed of another group and
// after the server was killed, and no event of it is taken twice, nor given twice.
func TestAStreamOfEventsThatComesAgainIsTakenOnce(t *testing.T) {
	redis := broker(t, servertest.Redis)
	w := newDesk(t)
	from := "redis://" + redis.Address() + "?stream=outbox.event.Order"
	w.write("feeds.yaml", "feeds:\n- { name: paid, from: \""+from+"\" }\n")
	w.write("again.yaml", "feeds:\n- { name: again, from: \""+from+"\" }\n")
	server := w.server("--feeds", "feeds.yaml", "--outbox", "redis://"+redis.Address())
	w.publishHere(awaitDefinition, `ringi: v1
name: pay
input: { type: object, required: [order], properties: { order: { type: string } } }
steps: [ { id: say, emit: { type: paid, aggregate: { type: Order, id: "${ input.order }" }, data: { order: "${ input.order }" } } } ]
`)
	const orders = 10
	var waiting []ringi.RunID
	for n := range orders {
		waiting = append(waiting, w.begin("await", "-i", fmt.Sprintf("order=o%d", n)).Run)
		w.begin("pay", "-i", fmt.Sprintf("order=o%d", n))
	}
	received := func(run ringi.RunID) int {
		return strings.Count(w.run("history", string(run), "--json").out, `"kind":"EventReceived"`)
	}
	for _, run := range waiting {
		eventually(t, "its event", func() bool { return received(run) == 1 })
	}
	if err := server.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	server.exit()
	server = w.server("--outbox", "redis://"+redis.Address())
	again := w.process("feed", "--feeds", "again.yaml", "--inbox", "sqlite:again.inbox", "--metrics", "127.0.0.1:0")
	eventually(t, "all of them again", func() bool { return handled(t, again, "again") >= orders })
	if kept := w.keptEvents(); kept != orders {
		t.Errorf("%d events are kept of %d messages", kept, orders)
	}
	for n, run := range waiting {
		if got := received(run); got != 1 {
			t.Errorf("run %d was given %d events", n, got)
		}
	}
	for _, p := range []process{again, server} {
		if err := p.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if code := p.exit(); code != cli.ExitOK {
			t.Errorf("exits with %d: %s", code, p.err)
		}
	}
}
