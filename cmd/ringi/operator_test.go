package main

import (
	"strings"
	"testing"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/cmd/ringi/cli"
	"github.com/ringiflow/ringi/cmd/ringi/client"
)

// W24: cancel, pause, resume and terminate, each with who and why.
func TestOperatorsSteerARun(t *testing.T) {
	w := served(t, paidDefinition)
	run := string(w.begin("paid", "-i", "order=A").Run)
	var s client.Steered
	for _, c := range []struct {
		args    string
		status  ringi.Status
		outcome ringi.AnswerOutcome
	}{
		{"pause", ringi.Paused, ringi.Accepted},
		{"pause", ringi.Paused, ringi.Repeated},
		{"resume", ringi.Waiting, ringi.Accepted},
		{"resume", ringi.Waiting, ringi.Repeated},
		{"cancel --reason enough", ringi.Cancelled, ringi.Accepted},
	} {
		args := strings.Fields(c.args)
		w.ok(&s, append([]string{args[0], run}, args[1:]...)...)
		if s.Status != c.status || s.Outcome != c.outcome || string(s.Run) != run {
			t.Errorf("ringi %s answers %+v", c.args, s)
		}
	}
	w.exits(cli.ExitConflict, nil, "pause", run)
	w.exits(cli.ExitNotFound, nil, "pause", "01a22ccb-9bd7-76c4-83b7-b3a944c13ad1")
}

// S-11: to end without undo is a word of its own.
func TestTerminateUndoesNothing(t *testing.T) {
	w := served(t, paidDefinition)
	run := string(w.begin("paid", "-i", "order=A").Run)
	var s client.Steered
	w.ok(&s, "terminate", run, "--reason", "the shop is closed")
	if s.Status != ringi.Terminated {
		t.Errorf("%+v", s)
	}
	if h := w.run("history", run).out; !strings.Contains(h, "the shop is closed") {
		t.Errorf("the reason is not in the history: %s", h)
	}
}

// An incident names what is wrong and what may be done; an answer needs a reason.
func TestAnIncidentIsListedAndResolved(t *testing.T) {
	w := served(t, shareDefinition)
	run := w.begin("share", "-i", "of=1", "-i", "among=0")
	if s := w.show(run.Run); s.Status != ringi.InIncident {
		t.Fatalf("the run is %+v", s)
	}
	var list struct {
		Incidents []ringi.IncidentView `json:"incidents"`
		Next      string               `json:"next"`
	}
	w.ok(&list, "incidents")
	if len(list.Incidents) != 1 || list.Incidents[0].Run != run.Run || len(list.Incidents[0].Allowed) == 0 {
		t.Fatalf("incidents are %+v", list)
	}
	if table := w.run("incidents", "--run", string(run.Run)).out; !strings.Contains(table, "divide") {
		t.Errorf("the table is %s", table)
	}
	id := string(run.Run)
	w.exits(cli.ExitNotFound, nil, "resolve", id, "999", "--how", "retry", "--reason", "r")
	var s client.Steered
	w.ok(&s, "resolve", id, "--how", "undo_rest", "--reason", "nothing to share")
	if !s.Status.Final() {
		t.Errorf("the answer is %+v", s)
	}
	w.ok(&list, "incidents")
	if len(list.Incidents) != 0 {
		t.Errorf("it is still listed: %+v", list)
	}
	w.exits(cli.ExitNotFound, nil, "resolve", id, "--how", "undo_rest", "--reason", "again")
}
