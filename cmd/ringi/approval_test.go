package main

import (
	"strings"
	"testing"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/cmd/ringi/cli"
)

const askDefinition = `ringi: v1
name: ask
input: { type: object, required: [amount], properties: { amount: { type: number } } }
steps:
  - id: approve
    approval:
      title: "Spend ${ input.amount }"
      subject: { amount: "${ input.amount }" }
      consequence: "Spends it."
      ask: [ { name: Finance, from: ["group:finance"], quorum: 2 } ]
`

// principal is somebody with a key in a desk's file of keys.
type principal struct {
	name, kind, group string
	scopes            []string
}

// people gives a desk a file of keys, and each of them a file with the key.
func (w *desk) people(all ...principal) {
	w.t.Helper()
	var lines []string
	for _, who := range all {
		args := []string{"keys", "new", who.name, "--kind", who.kind}
		if who.group != "" {
			args = append(args, "--group", who.group)
		}
		for _, s := range who.scopes {
			args = append(args, "--scope", s)
		}
		var made struct{ Name, Key, Line string }
		w.ok(&made, args...)
		w.write(who.name, made.Key+"\n")
		lines = append(lines, made.Line)
	}
	w.write("keys", strings.Join(lines, "\n")+"\n")
}

// finance is a desk with a server and a run that asks finance.
func finance(t *testing.T) (w *desk, run ringi.RunID) {
	t.Helper()
	w = newDesk(t)
	w.people(
		principal{"alice", "person", "finance", []string{"read", "decide", "start"}},
		principal{"bob", "person", "finance", []string{"read", "decide"}},
		principal{"carol", "person", "managers", []string{"read", "decide"}},
		principal{"robot", "machine", "finance", []string{"read", "decide"}},
		principal{"shop", "machine", "", []string{"read", "start", "start_for", "publish"}},
	)
	w.start("serve", "--keys", "keys")
	w.env["RINGI_KEY_FILE"] = "shop"
	if got := w.runWith(askDefinition, "publish", "-"); got.code != cli.ExitOK {
		t.Fatalf("publish: %+v", got)
	}
	return w, w.begin("ask", "-i", "amount=1200").Run
}

// voted is what approve and reject print.
type voted struct {
	Run     ringi.RunID         `json:"run"`
	Step    string              `json:"step"`
	Outcome ringi.AnswerOutcome `json:"outcome"`
	Status  ringi.Status        `json:"status"`
}

func (w *desk) approvals(args ...string) []ringi.ApprovalView {
	w.t.Helper()
	var list struct {
		Approvals []ringi.ApprovalView `json:"approvals"`
		Next      string               `json:"next"`
	}
	w.ok(&list, append([]string{"approvals"}, args...)...)
	return list.Approvals
}

// W21: two people, each with a key of their own, and nobody else.
func TestAQuorumOfPeopleDecides(t *testing.T) {
	w, run := finance(t)
	id := string(run)
	open := w.approvals()
	if len(open) != 1 || open[0].Run != run || open[0].Step != "approve" || open[0].Requester != "shop" {
		t.Fatalf("open are %+v", open)
	}
	digest := open[0].Digest
	var v voted
	w.exits(cli.ExitNotAllowed, nil, "approve", id, "approve", "--digest", digest, "--key-file", "robot") // machines never decide
	w.exits(cli.ExitNotAllowed, nil, "approve", id, "approve", "--digest", digest, "--key-file", "carol") // another group
	w.exits(cli.ExitNotAllowed, nil, "approve", id, "approve", "--digest", digest)                        // shop may not decide at all
	w.exits(cli.ExitConflict, nil, "approve", id, "approve", "--digest", strings.Repeat("0", 64), "--key-file", "alice")
	w.ok(&v, "approve", id, "approve", "--digest", digest, "--key-file", "alice", "--comment", "fine")
	if v.Outcome != ringi.Accepted || v.Status != ringi.Waiting {
		t.Errorf("the first vote is %+v", v)
	}
	w.ok(&v, "approve", id, "approve", "--digest", digest, "--key-file", "alice")
	if v.Outcome != ringi.Repeated {
		t.Errorf("the same vote again is %+v", v)
	}
	if mine := w.approvals("--mine", "--key-file", "bob"); len(mine) != 1 {
		t.Errorf("bob may vote on %+v", mine)
	}
	if mine := w.approvals("--mine", "--key-file", "carol"); len(mine) != 0 {
		t.Errorf("carol may vote on %+v", mine)
	}
	if table := w.run("approvals").out; !strings.Contains(table, "Finance 1 of 2") || !strings.Contains(table, "Spend 1200") {
		t.Errorf("the table is %s", table)
	}
	w.ok(&v, "approve", id, "approve", "--digest", digest, "--key-file", "bob")
	if v.Status != ringi.Completed {
		t.Errorf("the second vote is %+v", v)
	}
	w.exits(cli.ExitConflict, nil, "approve", id, "approve", "--digest", digest, "--key-file", "bob") // decided
}

// W20, TC-59: a second click hears who decided, whatever it names.
func TestAVoteAfterTheDecisionSaysWhoDecided(t *testing.T) {
	w, run := finance(t)
	for _, who := range []string{"alice", "bob"} {
		w.ok(nil, "approve", string(run), "--yes", "--key-file", who)
	}
	for _, args := range [][]string{
		{"approve", string(run), "approve", "--yes"},
		{"approve", string(run), "--yes"},
		{"reject", string(run), "--yes"},
		{"approve", string(run), "--digest", strings.Repeat("0", 64)},
		{"approve", string(run), "approve", "--digest", strings.Repeat("0", 64)},
	} {
		got := w.run(append(args, "--key-file", "carol")...)
		if got.code != cli.ExitConflict || !strings.Contains(got.err, "alice, bob") {
			t.Errorf("ringi %s: %+v", strings.Join(args, " "), got)
		}
	}
	if got := w.run("approve", string(run), "nosuch", "--yes", "--key-file", "carol"); got.code != cli.ExitNotFound {
		t.Errorf("a step that asks nothing: %+v", got)
	}
}

// H-31: the digest of a vote is that of what was shown.
func TestAVoteIsForWhatWasShown(t *testing.T) {
	w, run := finance(t)
	w.env["RINGI_KEY_FILE"] = "alice"
	got := w.run("approve", string(run), "--yes")
	digest := w.approvals()[0].Digest
	for _, want := range []string{"Spend 1200", "subject      {\"amount\":1200}", "Spends it.", "digest       " + digest, "Finance 0 of 2"} {
		if !strings.Contains(got.err, want) {
			t.Errorf("shows %q, without %q", got.err, want)
		}
	}
	if got.code != cli.ExitOK || !strings.Contains(got.out, "vote accepted") {
		t.Errorf("%+v", got)
	}
	if got := w.run("reject", string(run), "approve"); got.code != cli.ExitUsage || !strings.Contains(got.err, "--digest") {
		t.Errorf("without a person at the terminal: %+v", got)
	}
}

func TestAPersonAtATerminalIsAsked(t *testing.T) {
	w, run := finance(t)
	w.env["RINGI_KEY_FILE"] = "alice"
	vote := func(answer string) int {
		p := w.program("reject", string(run), "approve")
		p.Stdin, p.Terminal.In = strings.NewReader(answer), true
		return p.Run(t.Context(), rootCommand)
	}
	for _, answer := range []string{"", "no\n", "maybe\n"} {
		if code := vote(answer); code != cli.ExitFailed {
			t.Errorf("after %q it exits with %d", answer, code)
		}
	}
	if votes := w.approvals()[0].Votes; len(votes) != 0 {
		t.Fatalf("votes without a yes: %+v", votes)
	}
	if code := vote("yes\n"); code != cli.ExitOK {
		t.Errorf("after yes it exits with %d", code)
	}
	if s := w.show(run); s.Status != ringi.Failed || s.Steps[0].Outcome != "rejected" {
		t.Errorf("the run is %+v", s)
	}
}

// H-25: a machine may start for a person, who then counts as the requester.
func TestTheRequesterNeverDecides(t *testing.T) {
	w, _ := finance(t)
	run := w.begin("ask", "-i", "amount=5", "--on-behalf-of", "bob")
	digest := w.approvals("--run", string(run.Run))[0].Digest
	w.exits(cli.ExitNotAllowed, nil, "approve", string(run.Run), "approve", "--digest", digest, "--key-file", "bob")
	w.exits(cli.ExitNotAllowed, nil, "start", "ask", "-i", "amount=5", "--on-behalf-of", "bob", "--key-file", "alice") // no start_for
}

func TestAKeyThatCanNeverVoteIsMadeWithAWarning(t *testing.T) {
	w := newDesk(t)
	if got := w.run("keys", "new", "robot", "--kind", "machine", "--scope", "decide"); got.code != cli.ExitOK || !strings.Contains(got.err, "machines never vote") {
		t.Errorf("%+v", got)
	}
	if got := w.run("keys", "new", "alice", "--scope", "decide"); strings.Contains(got.err, "never vote") {
		t.Errorf("%+v", got)
	}
}

// A key that is taken away, or added, counts without a restart.
func TestAChangedFileOfKeysCountsWithoutARestart(t *testing.T) {
	w, _ := finance(t)
	w.people(principal{"dave", "person", "", []string{"read"}})
	eventually(t, "dave's key", func() bool { return w.run("runs", "--key-file", "dave").code == cli.ExitOK })
	if got := w.run("runs", "--key-file", "alice"); got.code != cli.ExitNotAllowed {
		t.Errorf("the key that was taken away: %+v", got)
	}
}
