package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/cmd/ringi/cli"
)

// number reads one number from the fleet's database.
func (f *fleet) number(query string) string {
	f.t.Helper()
	conn, err := pgconn.Connect(f.t.Context(), f.pg.URL("postgres"))
	if err != nil {
		f.t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	res := conn.ExecParams(f.t.Context(), query, nil, nil, nil, nil).Read()
	if res.Err != nil || len(res.Rows) != 1 {
		f.t.Fatalf("%s: %d rows, %v", query, len(res.Rows), res.Err)
	}
	return string(res.Rows[0][0])
}

// newRows counts the log rows that only the next release reads.
func (f *fleet) newRows() string {
	f.t.Helper()
	return f.number(fmt.Sprintf(`select count(*) from log where convert_from(body, 'UTF8') like '{"format":%d,%%'`, ringi.Format+1))
}

// W31, TC-38: three servers are replaced by those of the next release one after
// the other, under load. Each reads what the others write; the new format comes
// only when all read it; and an old server that joins then says so and keeps its
// hands off. The second program is this one built with the tag nextformat, whose
// format is one more; its migration is done by hand.
func TestARollingUpgradeOfThreeServers(t *testing.T) {
	t.Parallel() // it waits most of its time
	next := buildProgram(t, "-buildvcs=false", "-tags", "nextformat")
	f := newFleet(t, 3)
	f.publish(chainDefinition, paidDefinition, patientDefinition())
	waits := f.begin("paid", "-i", "order=A").Run // begun by the old, ended by the new
	if err := f.pg.Exec(t.Context(), "postgres", `alter table run add column of_the_next_release text; update meta set value = '99' where key = 'schema'`); err != nil {
		t.Fatal(err)
	}
	runs := 1
	for i, old := range f.nodes[:3:3] {
		old.start("patient")
		held := old.take("w")
		newer := f.joinAs(next)
		old.signal(syscall.SIGTERM)
		if code := old.exit(); code != cli.ExitOK {
			t.Fatalf("the old server exits with %d: %s", code, old.process.err)
		}
		if r := newer.complete(held, "w", "another server"); r.Err != nil || r.Answer.Outcome != ringi.Accepted {
			t.Errorf("what the old server handed out is completed with %+v", r)
		}
		newer.ended(held.Run, `{"by":"another server"}`)
		working := f.nodes[i+1:] // old ones and new ones
		var stops []func()
		for k, n := range working {
			stops = append(stops, n.work(fmt.Sprintf("w%d.%d", i, k), nothing("chain.a"), nothing("chain.b")))
		}
		for k := range 12 {
			working[(k+1)%len(working)].ended(working[k%len(working)].start("chain"), "")
		}
		for _, stop := range stops {
			stop()
		}
		runs += 13
		if n := f.newRows(); i < 2 && n != "0" {
			t.Errorf("%s rows of the new format beside an old server", n)
		}
	}
	eventually(t, "the format to be raised", func() bool {
		return f.number(`select value from meta where key = 'format'`) == fmt.Sprint(ringi.Format+1)
	})
	last := f.nodes[len(f.nodes)-1]
	eventually(t, "the new format to be written", func() bool {
		last.start("patient")
		runs++
		return f.newRows() != "0"
	})
	f.upgraded(next, waits, runs)
}

// upgraded checks what old and new programs do once the format was raised.
func (f *fleet) upgraded(next string, waits ringi.RunID, runs int) {
	f.t.Helper()
	newer := f.nodes[len(f.nodes)-1]
	old := f.join(f.pg.URL("postgres"))
	old.readyz(http.StatusServiceUnavailable)
	eventually(f.t, "the old server to say why", func() bool { return strings.Contains(old.err.String(), "upgrade this server") })
	if _, err := old.svc.Poll(f.t.Context(), ringi.PollRequest{Worker: "old", Queue: "slow", Max: 1}); ringi.ErrorCode(err) != ringi.CodeUnavailable {
		f.t.Errorf("a poll of the old server: %v, want unavailable", err)
	}
	newer.take("new") // nothing was put off by the old server
	if got := f.run("replay", "--all"); got.code != cli.ExitFailed || !strings.Contains(got.err, "run ringi replay of the version") {
		f.t.Errorf("replay by the old program: %+v, want that a newer one is needed", got)
	}
	f.env["RINGI_SERVER"] = newer.url
	if got := f.run("send", "order.paid", "--key", "A", "--id", "e"); got.code != cli.ExitOK {
		f.t.Errorf("send: %+v", got)
	}
	newer.ended(waits, "")
	p := f.processOf(next, "replay", "--all", "--json", "--database", f.pg.URL("postgres"))
	if code := p.exit(); code != cli.ExitOK || !strings.Contains(p.out.String(), fmt.Sprintf(`"runs":%d,`, runs)) {
		f.t.Errorf("replay exits with %d: %s%s, want %d runs", code, p.out, p.err, runs)
	}
}
