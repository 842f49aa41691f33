package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/api"
)

// ways are the places in which a route takes a text of its own, with % for it.
var ways = map[string][]string{
	"POST /v1/runs":                         {`{"definition":"%"}`, `{"definition":"d","key":"%"}`, `{"definition":"d","onBehalfOf":"%"}`, `{"definition":"d","eventId":"%"}`},
	"POST /v1/events":                       {`{"name":"%"}`, `{"name":"n","key":"%"}`, `{"name":"n","id":"%"}`},
	"POST /v1/runs/r/pause":                 {`{"reason":"%"}`},
	"POST /v1/runs/r/approvals/s/decide":    {`{"approve":true,"digest":"%"}`, `{"approve":true,"digest":"d","comment":"%"}`},
	"POST /v1/runs/r/incidents/1/resolve":   {`{"how":"run_other","reason":"%"}`, `{"how":"run_other","reason":"r","activity":"%"}`},
	"POST /v1/tasks/poll":                   {`{"worker":"%"}`, `{"worker":"w","queue":"%"}`, `{"worker":"w","activities":["a","%"]}`},
	"POST /v1/tasks/heartbeat":              {`{"worker":"w","items":[{"run":"r","step":"%","attempt":1,"token":1}]}`},
	"POST /v1/tasks/complete":               {`{"worker":"%","items":[{"run":"r","step":"s","attempt":1,"token":1}]}`},
	"POST /v1/runs/r/approvals/s/withdraw":  {`{"reason":"%"}`},
	"POST /v1/runs/r/cancel":                {`{"reason":"%"}`},
	"POST /v1/runs/r/incidents/1/resolve ":  {`{"how":"retry","reason":"r","output":["%"]}`},
	"POST /v1/runs ":                        {`{"definition":"d","input":{"a":["%"]}}`, `{"definition":"d","input":{"%":1}}`},
	"POST /v1/events ":                      {`{"name":"n","data":"%"}`},
	"POST /v1/tasks/begin":                  {`{"worker":"%","items":[{"run":"r","step":"s","attempt":1,"token":1}]}`},
	"POST /v1/runs/r/incidents/1/resolve  ": {`{"how":"run_other","reason":"r","activity":"a","input":{"x":"%"}}`},
}

// refused is the answer of a request that must not reach the service.
func refused(t *testing.T, h http.Handler, svc *service, method, path, body, says string) {
	t.Helper()
	before := svc.asked()
	w := ask(h, method, path, body)
	var r api.Refusal
	if err := json.Unmarshal(w.Body.Bytes(), &r); err != nil || w.Code != http.StatusBadRequest || r.Code != ringi.CodeInvalid {
		t.Errorf("%s %s %q: status %d: %s", method, path, body, w.Code, w.Body)
	}
	if !strings.Contains(r.Detail, says) || r.Hint == "" {
		t.Errorf("%s %s %q: refused as %q with the hint %q, want %q", method, path, body, r.Detail, r.Hint, says)
	}
	if svc.asked() != before {
		t.Errorf("%s %s %q reached the service", method, path, body)
	}
}

func TestTextThatCannotBeKeptIsRefusedWhereverItStands(t *testing.T) { // TC-79
	svc := &service{}
	h := newServer(t, svc, nil)
	for _, dirt := range []struct{ text, says string }{
		{"order-\xe9", "UTF-8"},
		{"\xed\xa0\x80", "UTF-8"}, // half a pair, written in bytes
		{`\ud800`, "surrogate"},
		{`\udc00`, "surrogate"},
		{`\ud800\u0041`, "surrogate"},
		{`\ud83dx`, "surrogate"},
		{`a\u0000b`, "NUL"},
	} {
		for route, bodies := range ways {
			method, path, _ := strings.Cut(strings.TrimSpace(route), " ")
			for _, body := range bodies {
				refused(t, h, svc, method, path, strings.Replace(body, "%", dirt.text, 1), dirt.says)
			}
		}
	}
	for _, good := range []string{`\ud83d\ude00`, "😀", `\ufffd`, "\uFFFD", `\\ud800`, "é"} {
		if w := ask(h, http.MethodPost, "/v1/runs", `{"definition":"d","key":"`+good+`"}`); w.Code != http.StatusOK {
			t.Errorf("%s: status %d: %s", good, w.Code, w.Body)
		}
	}
}

func TestParametersThatNoTextCanBeAreRefused(t *testing.T) {
	svc := &service{}
	h := newServer(t, svc, nil)
	for _, path := range []string{
		"/v1/runs?key=order-%e9", "/v1/runs?key=a%00", "/v1/runs?%ff=1", "/v1/approvals?run=%ed%a0%80",
		"/v1/runs/r%e9", "/v1/definitions/a%00b",
	} {
		refused(t, h, svc, http.MethodGet, path, "", "UTF-8")
	}
	refused(t, h, svc, http.MethodPost, "/v1/runs/r%e9/pause", "{}", "UTF-8")
	refused(t, h, svc, http.MethodPost, "/v1/runs/r/approvals/%ff/withdraw", "{}", "UTF-8")
}

func TestAFieldStandsOnceAndInItsOwnLetters(t *testing.T) {
	svc := &service{}
	h := newServer(t, svc, nil)
	for _, c := range []struct{ path, body, says string }{
		{"/v1/runs", `{"definition":"a","definition":"b"}`, "body.definition stands twice"},
		{"/v1/runs", `{"definition":"a","k\u0065y":"b","key":"c"}`, "body.key stands twice"},
		{"/v1/runs", `{"Definition":"a"}`, "body.Definition unexpected property: write definition"},
		{"/v1/runs", `{"definition":"a","KEY":"b"}`, "write key"},
		{"/v1/runs", `{"definition":"a","key":"b","Key":"c"}`, "write key"},
		{"/v1/tasks/poll", `{"worker":"w","worker":"v"}`, "body.worker stands twice"},
		{"/v1/tasks/heartbeat", `{"worker":"w","items":[{"run":"r","step":"s","attempt":1,"token":1,"token":2}]}`, "body.items[0].token stands twice"},
		{"/v1/tasks/heartbeat", `{"worker":"w","items":[{"run":"r","step":"s","attempt":1,"Token":1}]}`, "write token"},
		{"/v1/tasks/complete", `{"worker":"w","items":[],"items":[{"run":"r","step":"s","attempt":1,"token":1}]}`, "body.items stands twice"},
	} {
		refused(t, h, svc, http.MethodPost, c.path, c.body, c.says)
	}
	if w := ask(h, http.MethodPost, "/v1/runs", `{"definition":"a","input":{"a":1,"A":2}}`); w.Code != http.StatusOK {
		t.Errorf("a payload has names of its own: status %d: %s", w.Code, w.Body)
	}
}

// completed is what became of the items of a batch.
func completed(t *testing.T, h http.Handler, path, items string) []api.AnsweredItem {
	t.Helper()
	w := ask(h, http.MethodPost, path, `{"worker":"w","want":1,"items":[`+items+`]}`)
	var out api.Answered
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%s: status %d: %s", items, w.Code, w.Body)
	}
	return out.Items
}

func TestAWrongItemIsRefusedByItself(t *testing.T) {
	svc := &service{do: func(c ringi.Command) ringi.Result {
		return ringi.Result{Run: c.Run, Answer: ringi.Answer{Outcome: ringi.Accepted}}
	}}
	h := newServer(t, svc, nil)
	good := func(n int, more string) string {
		return fmt.Sprintf(`{"run":"r","step":"s%d","attempt":1,"token":1%s}`, n, more)
	}
	for route, wrong := range map[string][][2]string{
		"/v1/tasks/complete": {
			{`,"outptu":1`, "outptu"},
			{`,"output":"a` + "\xe9" + `"`, "UTF-8"},
			{`,"step":"again"`, "twice"},
			{`,"direction":"\ud800"`, "surrogate"},
		},
		"/v1/tasks/fail": {
			{``, "code"},
			{`,"code":"` + strings.Repeat("x", 257) + `"`, "code"},
			{`,"code":"c","applied":"yes"`, "applied"},
			{`,"code":"a\u0000"`, "NUL"},
		},
	} {
		fine := `,"output":1`
		if route == "/v1/tasks/fail" {
			fine = `,"code":"c"`
		}
		for _, w := range wrong {
			got := completed(t, h, route, good(1, fine)+" , "+good(2, w[0])+","+good(3, fine))
			if len(got) != 3 || got[0].Outcome != ringi.Accepted || got[2].Outcome != ringi.Accepted {
				t.Fatalf("%s %s: %+v", route, w[0], got)
			}
			if e := got[1].Error; e == nil || e.Code != ringi.CodeInvalid || e.Retryable || !strings.Contains(e.Message, "items[1]") || !strings.Contains(e.Message, w[1]) {
				t.Errorf("%s %s: refused as %+v, want %q", route, w[0], e, w[1])
			}
			batch := svc.batches[len(svc.batches)-1]
			if len(batch) != 2 || svc.last(t).Run != "r" {
				t.Errorf("%s %s: %d commands reached the service", route, w[0], len(batch))
			}
		}
	}
	if got := completed(t, h, "/v1/tasks/complete", `7,{},null`); got[0].Error == nil || got[1].Error == nil || got[2].Error == nil {
		t.Errorf("items that are none: %+v", got)
	}
	if w := ask(h, http.MethodPost, "/v1/tasks/begin", `{"worker":"w","items":[{"run":"r","step":"s","attempt":1,"token":"1"},{"run":"r","step":"s","attempt":1,"token":1}]}`); w.Code != http.StatusOK ||
		!strings.Contains(w.Body.String(), "items[0].token") || !strings.Contains(w.Body.String(), "accepted") {
		t.Errorf("begin: status %d: %s", w.Code, w.Body)
	}
}

func TestWantGoesWithTheLastItemThatIsRight(t *testing.T) {
	svc := &service{}
	h := newServer(t, svc, nil)
	completed(t, h, "/v1/tasks/complete", `{"run":"r","step":"s","attempt":1,"token":1},{"run":"r","step":"t","attempt":1,"token":1},{"run":"r"}`)
	batch := svc.batches[0]
	first, _ := batch[0].Do.(ringi.CompleteActivity)
	last, _ := batch[1].Do.(ringi.CompleteActivity)
	if len(batch) != 2 || first.Want != nil || last.Want == nil || last.Step != "t" {
		t.Errorf("sent %+v", batch)
	}
}

func TestWhatACallAnsweredReachesTheRulesWhateverItIs(t *testing.T) { // applied, then incident bad_output
	svc := &service{}
	h := newServer(t, svc, nil)
	for _, output := range []string{`1e400`, `"\ud800"`, `"a\u0000"`, `{"a":1,"a":2}`, strings.Repeat("[", 200) + strings.Repeat("]", 200)} {
		got := completed(t, h, "/v1/tasks/complete", `{"run":"r","step":"s","attempt":1,"token":1,"output":`+output+`}`)
		if got[0].Error != nil {
			t.Errorf("%.60s is refused: %+v", output, got[0].Error)
			continue
		}
		if do, _ := svc.last(t).Do.(ringi.CompleteActivity); string(do.Output) != output {
			t.Errorf("%.60s arrives as %.60s", output, do.Output)
		}
	}
}

func TestAFailureIsHeardWhateverItsMessageHolds(t *testing.T) {
	svc := &service{}
	h := newServer(t, svc, nil)
	for _, message := range []string{`half \ud800`, "byte \xe9", `nul \u0000`, strings.Repeat("long ", 5000)} {
		got := completed(t, h, "/v1/tasks/fail", `{"run":"r","step":"s","attempt":1,"token":1,"code":"c","message":"`+message+`"}`)
		if got[0].Error != nil {
			t.Errorf("%.40q is refused: %+v", message, got[0].Error)
		}
	}
}

func TestWhatIsNoJSONIsRefusedWithItsPlace(t *testing.T) {
	svc := &service{}
	h := newServer(t, svc, nil)
	for body, says := range map[string]string{
		`{"worker":"w","items":[{"run":"r","output":Infinity}]}`: "byte 43",
		`{"worker":"w"} x`:             "more behind",
		`  `:                           "ends too early",
		`{"worker":"w",}`:              "byte 14",
		`{"worker":"` + "\n" + `"}`:    "control character",
		`{"worker":"\x"}`:              "escape",
		strings.Repeat("[", 1<<17):     "deep",
		`{"worker":01}`:                "byte",
		"\xef\xbb\xbf" + `{"a":1}`:     "byte 0",
		`{"worker":"w","items":[{}]}}`: "more behind",
	} {
		refused(t, h, svc, http.MethodPost, "/v1/tasks/complete", body, says)
	}
}

func TestTheClientSendsNoTextThatEncodingWouldChange(t *testing.T) {
	svc := &service{do: func(c ringi.Command) ringi.Result {
		return ringi.Result{Run: c.Run, Answer: ringi.Answer{Outcome: ringi.Accepted}}
	}}
	c := connect(t, newServer(t, svc, nil), "a:admin")
	const bad = "order-\xe9"
	call := ringi.CallRef{Step: bad, Attempt: 1, Token: 1}
	for _, do := range []ringi.Action{
		ringi.Start{Definition: "d", Key: bad},
		ringi.Start{Definition: bad},
		ringi.Start{Definition: "d", OnBehalfOf: bad},
		ringi.Start{Definition: "d", EventID: "a\x00"},
		ringi.SendEvent{Name: "n", Key: bad},
		ringi.Cancel{Reason: bad},
		ringi.Pause{Reason: bad},
		ringi.Resume{Reason: bad},
		ringi.Terminate{Reason: bad},
		ringi.DecideApproval{Step: "s", Digest: "d", Comment: bad},
		ringi.DecideApproval{Step: bad, Digest: "d"},
		ringi.WithdrawDecision{Step: "s", Reason: bad},
		ringi.ResolveIncident{Incident: 1, How: ringi.ResolveRunOther, Reason: "r", Activity: bad},
		ringi.BeginActivity{CallRef: call, Worker: "w"},
		ringi.CompleteActivity{CallRef: call, Worker: "w"},
		ringi.FailActivity{CallRef: call, Worker: "w", Failure: ringi.Failure{Code: "c"}},
	} {
		before := svc.asked()
		res := c.Do(t.Context(), ringi.Command{Run: "r", Do: do})[0]
		if ringi.ErrorCode(res.Err) != ringi.CodeInvalid || svc.asked() != before {
			t.Errorf("%T: %v, and the service was asked %d times", do, res.Err, svc.asked()-before)
		}
	}
	if _, err := c.Poll(t.Context(), ringi.PollRequest{Worker: "w", Queue: bad}); ringi.ErrorCode(err) != ringi.CodeInvalid {
		t.Errorf("poll: %v", err)
	}
	if _, err := c.Heartbeat(t.Context(), ringi.Beat{CallRef: call, Worker: "w"}); ringi.ErrorCode(err) != ringi.CodeInvalid {
		t.Errorf("heartbeat: %v", err)
	}
	call.Step = "s"
	for _, output := range []string{`{`, `Infinity`, "\"\xe9\""} {
		results := c.Do(t.Context(),
			ringi.Command{Run: "r", Do: ringi.CompleteActivity{CallRef: call, Worker: "w", Output: json.RawMessage(`1`)}},
			ringi.Command{Run: "r", Do: ringi.CompleteActivity{CallRef: call, Worker: "w", Output: json.RawMessage(output)}},
		)
		if results[0].Err != nil || ringi.ErrorCode(results[1].Err) != ringi.CodeInvalid {
			t.Errorf("of two, the second with the output %q: %v, %v", output, results[0].Err, results[1].Err)
		}
	}
	results := c.Do(t.Context(),
		ringi.Command{Run: "r", Do: ringi.FailActivity{CallRef: call, Worker: "w", Failure: ringi.Failure{Code: "c"}}},
		ringi.Command{Run: "r", Do: ringi.FailActivity{CallRef: call, Worker: "w", Failure: ringi.Failure{Code: bad}}},
		ringi.Command{Run: "r", Do: ringi.FailActivity{CallRef: call, Worker: "w", Failure: ringi.Failure{Code: "c", Message: bad}}},
	)
	if results[0].Err != nil || ringi.ErrorCode(results[1].Err) != ringi.CodeInvalid || results[2].Err != nil {
		t.Errorf("of three, the second wrong: %v, %v, %v", results[0].Err, results[1].Err, results[2].Err)
	}
}
