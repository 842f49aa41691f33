package ringi_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/workflow"
)

// record names what the files of -record begin with; see testdata/logs/README.md.
var record = flag.String("record", "", "record new logs into testdata/logs under names that begin with this, as in 0.2")

// A recording is a run as an earlier program decided and wrote it.
type recording struct {
	recordedHead
	turns []recordedTurn
	recordedEnd
}

// recordedHead is the first line of a file.
type recordedHead struct {
	Definition string `json:"definition"`
	// Superseded says why today's rules decide otherwise; the log is then only folded.
	Superseded string `json:"superseded,omitempty"`
}

// A recordedTurn is a line: a command, and what the rules made of it.
type recordedTurn struct {
	Action  string          `json:"action"`
	Command json.RawMessage `json:"command"`
	Row     json.RawMessage `json:"row,omitempty"` // of the log; none when nothing changed
	Answer  ringi.Answer    `json:"answer"`
	Repair  string          `json:"repair,omitempty"` // the key of the run that it starts
}

// recordedEnd is the last line.
type recordedEnd struct {
	State json.RawMessage `json:"state"`
	Rows  json.RawMessage `json:"rows"`
}

// Whatever an earlier program wrote is read, adds up to the same state with the
// same rows beside it, and is decided again as it was.
func TestRecordedLogsMeanWhatTheyMeant(t *testing.T) { // W4, TC-73, TC-74
	files, err := filepath.Glob("testdata/logs/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recorded logs: %v", err)
	}
	kinds := map[string]bool{"EvidenceCounted": true} // stands only behind MaxEvidence late results: too long a log to keep
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			for _, kind := range readRecording(t, file).replay(t) {
				kinds[kind] = true
			}
		})
	}
	source, err := os.ReadFile("codec.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`"(\w+)": +fact\[`).FindAllSubmatch(source, -1) {
		if kind := string(m[1]); !kinds[kind] {
			t.Errorf("no recorded log has an event %s; testdata/logs/README.md says how to record one", kind)
		}
	}
}

func readRecording(t *testing.T, file string) recording {
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(bytes.TrimSpace(raw), []byte("\n"))
	if len(lines) < 3 {
		t.Fatalf("%d lines, want at least three", len(lines))
	}
	var r recording
	read := func(line []byte, into any) {
		if err := json.Unmarshal(line, into); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
	read(lines[0], &r.recordedHead)
	read(lines[len(lines)-1], &r.recordedEnd)
	r.turns = make([]recordedTurn, len(lines)-2)
	for i, line := range lines[1 : len(lines)-1] {
		read(line, &r.turns[i])
	}
	return r
}

// replay folds the rows and decides the commands again; it returns the kinds of
// the events.
func (r recording) replay(t *testing.T) []string {
	def, problems := workflow.Parse("recorded.yaml", []byte(r.Definition))
	if def == nil {
		t.Fatalf("the definition is not accepted any more: %v", problems)
	}
	s := &ringi.State{Tenant: ringi.DefaultTenant, Run: "run"}
	var kinds []string
	for i, turn := range r.turns {
		if r.Superseded == "" {
			turn.decideAgain(t, def, s)
		}
		if len(turn.Row) == 0 {
			continue
		}
		events, err := ringi.DecodeEvents(s.Seq+1, turn.Row)
		if err != nil {
			t.Fatalf("turn %d: %v", i+1, err)
		}
		for _, e := range events {
			kinds = append(kinds, ringi.KindOf(e.Fact))
		}
		s = ringi.Fold(s, events...)
	}
	state, err := ringi.EncodeState(s)
	if err != nil {
		t.Fatal(err)
	}
	holds(t, "the state", r.State, state)
	holds(t, "the rows", r.Rows, []byte(mustJSON(ringi.Standing(s))))
	return kinds
}

func (turn recordedTurn) decideAgain(t *testing.T, def *workflow.Definition, s *ringi.State) {
	t.Helper()
	d, err := ringi.Decide(def, s, turn.command(t), workflow.CEL{})
	if err != nil {
		t.Fatalf("%s after event %d was accepted and is refused now: %v", turn.Action, s.Seq, err)
	}
	again := turned(t, turn.Action, turn.Command, d)
	if mustJSON(again) != mustJSON(turn) {
		t.Fatalf("%s after event %d was decided as\n%s\nand is decided now as\n%s", turn.Action, s.Seq, mustJSON(turn), mustJSON(again))
	}
}

// turned is what is recorded of a decision.
func turned(t interface{ Fatal(...any) }, action string, command json.RawMessage, d ringi.Decision) recordedTurn {
	out := recordedTurn{Action: action, Command: command, Answer: d.Answer}
	if d.Repair != nil {
		out.Repair = d.Repair.Key
	}
	if len(d.Events) > 0 {
		row, err := ringi.EncodeEventsIn(ringi.FirstFormat, d.Events)
		if err != nil {
			t.Fatal(err)
		}
		out.Row = row
	}
	return out
}

func (turn recordedTurn) command(t *testing.T) ringi.Command {
	t.Helper()
	var c struct {
		ringi.Command
		Do json.RawMessage
	}
	if err := json.Unmarshal(turn.Command, &c); err != nil {
		t.Fatal(err)
	}
	read, ok := recordedActions[turn.Action]
	if !ok {
		t.Fatalf("there is no action %q", turn.Action)
	}
	do, err := read(c.Do)
	if err != nil {
		t.Fatal(err)
	}
	c.Command.Do = do
	return c.Command
}

// recordedActions reads what anybody or anything asked of a run.
// constant: filled here and only read.
var recordedActions = map[string]func([]byte) (ringi.Action, error){
	"start":             action[ringi.Start],
	"begin_activity":    action[ringi.BeginActivity],
	"complete_activity": action[ringi.CompleteActivity],
	"fail_activity":     action[ringi.FailActivity],
	"fire_timer":        action[ringi.FireTimer],
	"expire_lease":      action[ringi.ExpireLease],
	"decide_approval":   action[ringi.DecideApproval],
	"withdraw_decision": action[ringi.WithdrawDecision],
	"deliver_event":     action[ringi.DeliverEvent],
	"cancel":            action[ringi.Cancel],
	"pause":             action[ringi.Pause],
	"resume":            action[ringi.Resume],
	"terminate":         action[ringi.Terminate],
	"resolve_incident":  action[ringi.ResolveIncident],
}

// action reads an action; a payload that was nil stands there as null.
func action[A ringi.Action](raw []byte) (ringi.Action, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, err
	}
	maps.DeleteFunc(fields, func(_ string, v json.RawMessage) bool { return string(v) == "null" })
	var a A
	err := json.Unmarshal([]byte(mustJSON(fields)), &a)
	return a, err
}

// holds compares what was recorded with what is now: what has come since may
// stand beside it.
func holds(t *testing.T, what string, recorded, now []byte) {
	t.Helper()
	var a, b any
	if err := json.Unmarshal(recorded, &a); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(now, &b); err != nil {
		t.Fatal(err)
	}
	if where := differs(a, b); where != "" {
		t.Errorf("%s differs at %s:\nrecorded %s\nnow      %s", what, where, recorded, now)
	}
}

// differs is the path to the first place where b lacks what a says.
func differs(a, b any) string {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(a)) {
			if where := differs(a[key], b[key]); !ok || where != "" {
				return "." + key + where
			}
		}
		return ""
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return "[]"
		}
		for i := range a {
			if where := differs(a[i], b[i]); where != "" {
				return fmt.Sprintf("[%d]%s", i, where)
			}
		}
		return ""
	}
	if a != b {
		return "="
	}
	return ""
}

// With -record the random walks of TestRandomCommandsKeepTheRules are recorded,
// each that shows something that those before it did not.
func TestRecordLogs(t *testing.T) {
	if *record == "" {
		return
	}
	defs, seen := definitions(t), map[string]bool{}
	for seed := range 10_000 {
		r := rapid.Custom(func(t *rapid.T) recording { return recordWalk(t, defs) }).Example(seed)
		if r.news(seen) == 0 {
			continue
		}
		name := fmt.Sprintf("testdata/logs/%s-%d.jsonl", *record, seed)
		if err := os.WriteFile(name, r.text(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func recordWalk(t *rapid.T, defs []*workflow.Definition) recording {
	w := newWalk(t, rapid.SampledFrom(defs).Draw(t, "definition"))
	w.stroll(30)
	w.settle()
	state, err := ringi.EncodeState(w.state)
	if err != nil {
		t.Fatal(err)
	}
	return recording{recordedHead{Definition: string(w.def.Source)}, w.turns, recordedEnd{state, []byte(mustJSON(ringi.Standing(w.state)))}}
}

// news counts, and notes, what the recording shows for the first time: an action
// with a kind of event that it led to.
func (r recording) news(seen map[string]bool) int {
	n := 0
	for _, turn := range r.turns {
		for _, kind := range append(recordedKind.FindAllString(string(turn.Row), -1), string(turn.Answer.Outcome)) {
			if key := turn.Action + " " + kind; !seen[key] {
				seen[key] = true
				n++
			}
		}
	}
	return n
}

// recordedKind finds the kinds of events in a row.
// constant: it is compiled once.
var recordedKind = regexp.MustCompile(`"kind":"\w+"`)

func (r recording) text() []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	lines := []any{r.recordedHead}
	for _, turn := range r.turns {
		lines = append(lines, turn)
	}
	for _, line := range append(lines, r.recordedEnd) {
		if err := enc.Encode(line); err != nil {
			panic(err)
		}
	}
	return b.Bytes()
}
