package ringi_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/workflow"
)

// The scripts in testdata show the rules: a command, dashes, and what became
// of it. `go test -run TestScripts . -rewrite` writes what happens now; the
// diff is the review. docs of the commands: testdata/README.txt.
func TestScripts(t *testing.T) { // W5 W12 W14 W15 W17 W20 W21 W24 S1 S2 S4 S7 S8
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		s := newScript(t)
		datadriven.RunTest(t, path, s.run)
	})
}

// A script plays one run under a clock of its own.
type script struct {
	t     *testing.T
	def   *workflow.Definition
	state *ringi.State
	now   time.Time
	hands map[string]int // hand-outs by step, direction and attempt
	lost  *ringi.Lost
	met   map[pair]bool
}

// pair is a command that met a status.
type pair struct {
	command string
	status  ringi.Status
}

func newScript(t *testing.T) *script {
	return &script{t: t, state: &ringi.State{Tenant: ringi.DefaultTenant, Run: "run"}, now: epoch, hands: map[string]int{}, met: map[pair]bool{}}
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	s.t = t
	switch d.Cmd {
	case "define":
		return s.define(d.Input)
	case "advance":
		wait, err := time.ParseDuration(d.CmdArgs[0].Key)
		if err != nil {
			t.Fatal(err)
		}
		s.now = s.now.Add(wait)
		return s.now.Sub(epoch).String() + " after the beginning\n"
	case "rows":
		return s.rows()
	case "show":
		return s.show()
	case "hand-out":
		s.hands[s.callKey(args(d))]++
		return fmt.Sprintf("token %d\n", s.token(args(d)))
	case "lost":
		s.lose(args(d))
		return "the next command is decided again with this\n"
	case "every-command":
		return s.everyCommand()
	}
	cmd := s.command(d.Cmd, args(d), d.Input)
	decision, err := s.decide(cmd)
	if err != nil {
		return "refused: " + refusal(err) + "\n"
	}
	s.lost = nil
	return s.take(decision)
}

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) // constant: where every script's clock begins

func (s *script) define(source string) string {
	def, problems := workflow.Parse("script.yaml", []byte(source))
	var b strings.Builder
	for _, p := range problems {
		fmt.Fprintf(&b, "%s %d:%d %s\n", p.Severity, p.Line, p.Column, p.ID)
	}
	if def == nil {
		s.t.Fatalf("the definition has errors: %v", problems)
	}
	*s = *newScript(s.t)
	s.def = def
	return b.String() + "ok\n"
}

// decide asks twice, since the same question must have the same answer.
func (s *script) decide(cmd ringi.Command) (ringi.Decision, error) {
	s.met[pair{ringi.ActionName(cmd.Do), s.state.Status()}] = true
	before := mustJSON(s.state)
	first, err := ringi.Decide(s.def, s.state, cmd, workflow.CEL{})
	second, again := ringi.Decide(s.def, s.state, cmd, workflow.CEL{})
	if mustJSON(first) != mustJSON(second) || refusal(err) != refusal(again) {
		s.t.Errorf("two decisions differ:\n%s\n%s", mustJSON(first), mustJSON(second))
	}
	if mustJSON(s.state) != before {
		s.t.Error("Decide changed the state that it was given")
	}
	if folded := ringi.Fold(s.state, first.Events...); err == nil && mustJSON(first.After) != mustJSON(folded) {
		s.t.Errorf("the state after a decision is\n%s\nand its events fold to\n%s", mustJSON(first.After), mustJSON(folded))
	}
	return first, err
}

// take folds a decision through its stored bytes, as a store would give it back.
func (s *script) take(d ringi.Decision) string {
	var b strings.Builder
	if len(d.Events) > 0 {
		raw, err := ringi.EncodeEvents(d.Events)
		if err != nil {
			s.t.Fatal(err)
		}
		events, err := ringi.DecodeEvents(d.Events[0].Seq, raw)
		if err != nil {
			s.t.Fatal(err)
		}
		s.state = ringi.Fold(s.state, events...)
		for _, e := range events {
			fmt.Fprintf(&b, "%d %s %s\n", e.Seq, ringi.KindOf(e.Fact), short(mustJSON(e.Fact)))
		}
	}
	for _, n := range d.Needs {
		fmt.Fprintf(&b, "needs lane %d %s\n", n.Lane, needWord(n))
	}
	if d.Repair != nil {
		fmt.Fprintf(&b, "repair run: undo %s of %s, key %s\n", d.Repair.Repair.Step, d.Repair.Repair.Of, d.Repair.Key)
	}
	if d.Answer.Outcome != ringi.Accepted || d.Answer.By != "" {
		fmt.Fprintf(&b, "answer: %s %s\n", d.Answer.Outcome, d.Answer.By)
	}
	fmt.Fprintf(&b, "is %s%s\n", s.state.Status(), waiting(s.state))
	return b.String()
}

func waiting(s *ringi.State) string {
	if v := s.View(); v.WaitingFor != "" {
		return " for " + v.WaitingFor
	}
	return ""
}

func needWord(n ringi.Need) string {
	token := fmt.Sprintf("token %s", tokenWord(n.Token))
	switch n.How {
	case ringi.NeedUntouched:
		return "never handed out"
	case ringi.NeedFree:
		return token + ", held by nobody"
	case ringi.NeedExpired:
		return token + ", lease unchanged"
	}
	return token
}

func tokenWord(token int64) string { return fmt.Sprintf("%d.%d", token>>16, token&0xffff) }

func (s *script) rows() string {
	r := ringi.Standing(s.state)
	var b strings.Builder
	fmt.Fprintf(&b, "run %s %s\n", r.Run.Status, r.Run.WaitsFor)
	for _, k := range r.Tasks {
		fmt.Fprintf(&b, "task lane %d: %s %s attempt %d from event %d, ready after %s%s\n", k.Lane, k.Activity, callName(k.Step, k.Direction), k.Attempt, k.Seq,
			k.ReadyAt.Sub(epoch), flags(k))
	}
	for _, k := range r.Timers {
		fmt.Fprintf(&b, "timer %s.%d at %s\n", k.ID, k.Generation, k.FireAt.Sub(epoch))
	}
	for _, k := range r.Waits {
		fmt.Fprintf(&b, "wait %s for %s %q\n", k.Step, k.Event, k.Key)
	}
	for _, k := range r.Approvals {
		fmt.Fprintf(&b, "approval %s: %s, %d votes, until %s\n", k.Step, k.Approval.Title, len(k.Approval.Votes), k.Approval.ExpiresAt.Sub(epoch))
	}
	for _, k := range r.Incidents {
		fmt.Fprintf(&b, "incident %d %s at %s: %s; may %v\n", k.ID, k.Kind, callName(k.Step, k.Direction), k.Message, k.Allowed)
	}
	return b.String()
}

func flags(k ringi.TaskRow) string {
	out := ""
	if k.Begin {
		out += ", begin first"
	}
	if k.Begun != 0 {
		out += ", begun"
	}
	if k.Held {
		out += ", held"
	}
	if k.Awaited {
		out += ", awaited"
	}
	return out
}

func callName(step string, d ringi.Direction) string {
	if d != ringi.Forward {
		return step + "/" + string(d)
	}
	return step
}

func (s *script) show() string {
	v := s.state.View()
	var b strings.Builder
	fmt.Fprintf(&b, "%s, output %s, effects left %v\n", v.Status, v.Output, v.EffectsLeft)
	if v.Cause != nil {
		fmt.Fprintf(&b, "cause %s at %s: %s\n", v.Cause.Code, v.Cause.Step, v.Cause.Message)
	}
	for _, st := range v.Steps {
		fmt.Fprintf(&b, "  %s %s attempts %d %s\n", st.ID, st.Outcome, st.Attempts, st.Undo)
	}
	return b.String()
}

// short leaves out of a fact what a reader of scripts does not need.
func short(s string) string {
	s = regexp.MustCompile(`[0-9a-f]{64}`).ReplaceAllStringFunc(s, func(x string) string { return x[:6] + "…" })
	s = regexp.MustCompile(`,"(attemptMs|heartbeatMs)":\d+`).ReplaceAllString(s, "")
	s = regexp.MustCompile(`"token":(\d+)`).ReplaceAllStringFunc(s, func(x string) string {
		n, err := strconv.ParseInt(x[len(`"token":`):], 10, 64)
		if err != nil {
			return x
		}
		return `"token":` + tokenWord(n)
	})
	return s
}

func refusal(err error) string {
	if err == nil {
		return ""
	}
	return string(ringi.ErrorCode(err)) + ": " + short(err.Error())
}

func mustJSON(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

func TestEveryCommandMeetsEveryStatus(t *testing.T) { // W12 W23
	met := map[pair]bool{}
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		s := newScript(t)
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		datadriven.RunTestFromString(t, string(raw), func(t *testing.T, d *datadriven.TestData) string {
			out := s.run(t, d)
			for p := range s.met {
				met[p] = true
			}
			return out
		})
	})
	for _, status := range ringi.Statuses() {
		for _, action := range everyAction("approve") {
			if p := (pair{ringi.ActionName(action), status}); !met[p] {
				t.Errorf("no script shows %s in status %s: add it to testdata/scripts", p.command, p.status)
			}
		}
	}
}
