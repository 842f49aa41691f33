package ringi_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/ringiflow/ringi"
)

// args turns the arguments of a script line into a map; a bare word is "yes".
func args(d *datadriven.TestData) map[string]string {
	out := map[string]string{}
	for _, a := range d.CmdArgs {
		out[a.Key] = "yes"
		if len(a.Vals) > 0 {
			out[a.Key] = strings.Join(a.Vals, ",")
		}
	}
	return out
}

// command builds the command of a script line. Whatever a line leaves out is
// what an honest sender would know: the open attempt and its latest token.
func (s *script) command(name string, a map[string]string, body string) ringi.Command {
	cmd := ringi.Command{Tenant: ringi.DefaultTenant, Run: "run", At: s.now, Actor: actor(a), Lost: s.lost}
	switch name {
	case "start":
		cmd.Do = ringi.Start{Definition: s.def.Name, Version: 1, Key: a["key"], Input: raw(body), EventID: a["event"], OnBehalfOf: a["for"]}
	case "begin":
		cmd.Do = ringi.BeginActivity{CallRef: s.ref(a), Worker: worker(a)}
	case "complete":
		cmd.Do = ringi.CompleteActivity{CallRef: s.ref(a), Worker: worker(a), Output: raw(body)}
	case "fail":
		cmd.Do = ringi.FailActivity{CallRef: s.ref(a), Worker: worker(a), Failure: ringi.Failure{
			Code: a["code"], Message: a["message"], Retryable: a["retryable"] != "", Applied: ringi.Applied(a["applied"]),
			RetryAfterMS: int64(number(a, "retry-after-ms", 0)),
		}}
	case "expire":
		cmd.Do = ringi.ExpireLease{CallRef: s.ref(a), Why: ringi.Expiry(a["why"])}
	case "fire":
		cmd.Do = ringi.FireTimer{Timer: strings.ReplaceAll(a["timer"], "@", "step:"), Generation: number(a, "generation", 1)}
	case "decide":
		cmd.Do = ringi.DecideApproval{Step: a["step"], Approve: a["approve"] != "", Digest: s.digest(a), Comment: a["comment"]}
	case "withdraw":
		cmd.Do = ringi.WithdrawDecision{Step: a["step"], Reason: a["reason"]}
	case "event":
		sent := s.now
		if a["sent"] != "" {
			sent = epoch.Add(duration(a["sent"]))
		}
		cmd.Do = ringi.DeliverEvent{Step: a["step"], Event: ringi.SentEvent{ID: a["id"], Name: a["name"], Key: a["key"], Data: raw(body), SentAt: sent}}
	case "cancel":
		cmd.Do = ringi.Cancel{Reason: a["reason"]}
	case "pause":
		cmd.Do = ringi.Pause{Reason: a["reason"]}
	case "resume":
		cmd.Do = ringi.Resume{Reason: a["reason"]}
	case "terminate":
		cmd.Do = ringi.Terminate{Reason: a["reason"]}
	case "resolve":
		do := ringi.ResolveIncident{Incident: int64(number(a, "incident", s.firstIncident())), How: ringi.Resolution(a["how"]), Reason: a["reason"], Activity: a["activity"], Output: raw(body)}
		if do.How == ringi.ResolveRunOther {
			do.Input, do.Output = do.Output, nil
		}
		cmd.Do = do
	default:
		s.t.Fatalf("unknown script command %q", name)
	}
	if slices.Contains([]string{"begin", "complete", "fail"}, name) && a["by"] == "" {
		cmd.Actor.Kind = ringi.System // who may also speak of http steps
	}
	return cmd
}

func raw(body string) json.RawMessage {
	if body == "" {
		return nil
	}
	return json.RawMessage(body)
}

func actor(a map[string]string) ringi.Actor {
	who := ringi.Actor{ID: a["by"], Kind: ringi.Person}
	if who.ID == "" {
		who = ringi.Actor{ID: "shop", Kind: ringi.Machine}
	}
	if a["machine"] != "" {
		who.Kind = ringi.Machine
	}
	if a["groups"] != "" {
		who.Groups = strings.Split(a["groups"], ",")
	}
	return who
}

func worker(a map[string]string) string {
	if a["worker"] != "" {
		return a["worker"]
	}
	return "w1"
}

func number(a map[string]string, name string, otherwise int) int {
	if a[name] == "" {
		return otherwise
	}
	n, err := strconv.Atoi(a[name])
	if err != nil {
		panic(err)
	}
	return n
}

func (s *script) firstIncident() int {
	if len(s.state.Incidents) == 0 {
		return 0
	}
	return int(s.state.Incidents[0].ID)
}

func direction(a map[string]string) ringi.Direction { return ringi.Direction(a["dir"]) }

// open finds the call that a line speaks of.
func (s *script) open(a map[string]string) *ringi.Call {
	for _, u := range s.state.Undos {
		if direction(a) == ringi.Undo && u.Step == a["step"] {
			return u.Call
		}
	}
	for _, st := range s.state.Steps {
		if st.ID != a["step"] {
			continue
		}
		if direction(a) == ringi.Probe {
			return st.Probe
		}
		if direction(a) == ringi.Forward {
			return st.Call
		}
	}
	return nil
}

func (s *script) callKey(a map[string]string) string {
	attempt := 0
	if c := s.open(a); c != nil {
		attempt = c.Attempt
	}
	return fmt.Sprintf("%s/%s/%d", a["step"], a["dir"], attempt)
}

// token is the latest token of the call: handed out once unless the script
// says more.
func (s *script) token(a map[string]string) int64 {
	c := s.open(a)
	if c == nil {
		return 0
	}
	return c.Seq<<16 | int64(max(1, s.hands[s.callKey(a)]))
}

func (s *script) ref(a map[string]string) ringi.CallRef {
	ref := ringi.CallRef{Step: a["step"], Direction: direction(a), Token: s.token(a)}
	if c := s.open(a); c != nil {
		ref.Attempt = c.Attempt
	}
	ref.Attempt = number(a, "attempt", ref.Attempt)
	if seq, n, ok := strings.Cut(a["token"], "."); ok {
		ref.Token = int64(number(map[string]string{"x": seq}, "x", 0))<<16 | int64(number(map[string]string{"x": n}, "x", 0))
	}
	return ref
}

func (s *script) digest(a map[string]string) string {
	if a["digest"] != "" {
		return a["digest"]
	}
	for _, st := range s.state.Steps {
		if st.ID == a["step"] && st.Approval != nil {
			return st.Approval.Digest
		}
	}
	return "none"
}

// lose says what stood in the store when the write before this lost.
func (s *script) lose(a map[string]string) {
	s.lost = &ringi.Lost{}
	if a["holder"] != "" {
		s.lost.Holder = &ringi.Holder{Run: ringi.RunID(a["holder"]), InputDigest: a["digest"], Version: 1}
		if a["digest"] == "same" {
			s.lost.Holder.InputDigest = s.state.InputDigest
		}
		return
	}
	seq, n, _ := strings.Cut(a["token"], ".")
	token := int64(number(map[string]string{"x": seq}, "x", 0))<<16 | int64(number(map[string]string{"x": n}, "x", 0))
	s.lost.Tasks = map[int]ringi.Seen{number(a, "lane", 0): {Token: token, Leased: a["leased"] != ""}}
}

// everyAction is one of each command as somebody without luck would send it.
func everyAction(step string) []ringi.Action {
	ref := ringi.CallRef{Step: step, Attempt: 1, Token: 2<<16 | 1}
	return []ringi.Action{
		ringi.BeginActivity{CallRef: ref, Worker: "w9"},
		ringi.CompleteActivity{CallRef: ref, Worker: "w9"},
		ringi.FailActivity{CallRef: ref, Worker: "w9", Failure: ringi.Failure{Code: "x"}},
		ringi.ExpireLease{CallRef: ref, Why: ringi.ExpiryLease},
		ringi.FireTimer{Timer: "step:" + step, Generation: 1},
		ringi.DecideApproval{Step: step, Approve: true, Digest: "none"},
		ringi.WithdrawDecision{Step: step},
		ringi.DeliverEvent{Step: step, Event: ringi.SentEvent{ID: "e1", Name: "n"}},
		ringi.Cancel{Reason: "why not"},
		ringi.Pause{Reason: "why not"},
		ringi.Resume{Reason: "why not"},
		ringi.ResolveIncident{Incident: 1, How: ringi.ResolveRetry, Reason: "why not"},
		ringi.Terminate{Reason: "why not"},
		ringi.Start{Definition: "other"},
	}
}

// everyCommand asks the run as it stands what it would make of each command,
// and changes nothing.
func (s *script) everyCommand() string {
	var b strings.Builder
	step := "none"
	if n := len(s.state.Steps); n > 0 {
		step = s.state.Steps[n-1].ID
	}
	for _, action := range everyAction(step) {
		cmd := ringi.Command{Tenant: ringi.DefaultTenant, Run: "run", At: s.now, Actor: ringi.Actor{ID: "olga", Kind: ringi.Person}, Do: action}
		d, err := s.decide(cmd)
		line := refusal(err)
		if err == nil {
			kinds := []string{}
			for _, e := range d.Events {
				kinds = append(kinds, ringi.KindOf(e.Fact))
			}
			line = fmt.Sprintf("%s: %s", d.Answer.Outcome, strings.Join(kinds, " "))
			if after := ringi.Fold(s.state, d.Events...).Status(); after != s.state.Status() {
				line += fmt.Sprintf(" → %s", after)
			}
		}
		fmt.Fprintf(&b, "%s: %s\n", ringi.ActionName(action), line)
	}
	return b.String()
}

func duration(s string) time.Duration {
	d, err := time.ParseDuration(s)
	if err != nil {
		panic(err)
	}
	return d
}
