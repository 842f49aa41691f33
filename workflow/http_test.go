package workflow_test

import (
	"testing"

	"github.com/ringiflow/ringi/workflow"
)

// httpStep is a step of the verb http, with more keys inside it and beside it.
func httpStep(method, inside, beside string) string {
	return "steps:\n  - id: a\n    http:\n      method: " + method + "\n      url: https://a.example/x\n" + inside + beside
}

const undoHTTP = `    compensate: { http: { method: DELETE, url: "https://a.example/${ step.key }" } }` + "\n"

func TestHTTPStepsAreChecked(t *testing.T) { // W3 S6
	runChecks(t, []checkCase{
		{"a GET", httpStep("GET", "", ""), ""},
		{"a HEAD", httpStep("HEAD", "", ""), ""},
		{"a PUT without an undo", httpStep("PUT", "", ""), "5:5 RG0206"},
		{"a PUT with an undo", httpStep("PUT", "      body: { n: 1 }\n", undoHTTP), ""},
		{"a DELETE that cannot be undone", httpStep("DELETE", "", "    irreversible: true\n"), "8:5 RG0207"},
		{"a POST must declare its effect", httpStep("POST", "", undoHTTP), "5:5 RG0210"},
		{"a PATCH must declare its effect", httpStep("PATCH", "", undoHTTP), "5:5 RG0210"},
		{"a POST that only asks", httpStep("POST", "      body: { q: 1 }\n", "    effect: pure\n"), ""},
		{"a POST that can be asked about", httpStep("POST", "", "    effect: probeable\n    probe: { http: { method: GET, url: \"https://a.example/${ step.key }\" } }\n"+undoHTTP), ""},
		{"a probeable POST that nobody can ask about", httpStep("POST", "", "    effect: probeable\n"+undoHTTP), "8:13 RG0203"},
		{"a POST that must not repeat, and is repeated", httpStep("POST", "", "    effect: at_most_once\n    retry: { attempts: 2 }\n"+undoHTTP), "9:24 RG0202"},
		{"a method in small letters", httpStep("get", "", ""), "6:15 RG0024"},
		{"a method that the language lacks", httpStep("TRACE", "", ""), "6:15 RG0024"},
		{"no url", "steps:\n  - id: a\n    http: { method: GET }\n", "5:11 RG0018"},
		{"an unknown key", httpStep("GET", "      header: { A: b }\n", ""), "8:7 RG0001"},
		{"with beside http", httpStep("GET", "", "    with: { a: 1 }\n"), "8:5 RG0105"},
		{"a queue beside http", httpStep("GET", "", "    queue: q\n"), "8:5 RG0105"},
		{"a queue for the undo", httpStep("PUT", "", "    queue: q\n    compensate: { activity: u, with: { key: \"${ step.key }\" } }\n"), ""},
		{"a body of a GET", httpStep("GET", "      body: { a: 1 }\n", ""), "8:7 RG0105"},
		{"an undo of a GET", httpStep("GET", "", undoHTTP), "8:5 RG0105"},
		{"a probe by activity and http", httpStep("POST", "", "    effect: probeable\n    probe: { activity: p, http: { method: GET, url: \"https://a.example\" } }\n"+undoHTTP), "9:14 RG0029"},
		{"with beside an undo by http", httpStep("PUT", "", "    compensate: { with: { a: 1 }, http: { method: DELETE, url: \"https://a.example\" } }\n"), "8:19 RG0105"},
		{"a status that is none", httpStep("GET", "      expect: [200, 700]\n", ""), "8:21 RG0025"},
		{"a status twice", httpStep("GET", "      expect: [200, 200]\n", ""), "8:21 RG0105"},
		{"no status", httpStep("GET", "      expect: []\n", ""), "8:15 RG0027"},
		{"no headers", httpStep("GET", "      headers: {}\n", ""), "8:16 RG0027"},
		{"a header with a blank", httpStep("GET", "      headers: { \"A B\": c }\n", ""), "8:18 RG0118"},
		{"a header of the connection", httpStep("GET", "      headers: { Host: c }\n", ""), "8:18 RG0118"},
		{"a header with a line break", httpStep("GET", "      headers: { A: \"b\\r\\nC: d\" }\n", ""), "8:21 RG0118"},
		{"headers and query with expressions", "input: { type: object, required: [q], properties: { q: { type: string } } }\n" + httpStep("GET", "      headers: { A: \"${ step.key }\" }\n      query: { q: \"${ input.q }\", n: 5, list: [a, b] }\n", ""), ""},
		{"catching a status", httpStep("GET", "", "    catch: [ { on: [http_404, http_unreachable, timed_out], do: [] } ]\n"), ""},
		{"catching a status that is none", httpStep("GET", "", "    catch: [ { on: [http_4xx], do: [] } ]\n"), "8:21 RG0111"},
		{"catching a rejection", httpStep("GET", "", "    catch: [ { on: [rejected], do: [] } ]\n"), "8:21 RG0111"},
		{"a status that a worker fails with", "steps:\n  - id: a\n    activity: a\n    effect: pure\n    catch: [ { on: [http_404], do: [] } ]\n", ""},
		{"http in on_failure", "steps:\n  - { id: a, wait: { for: 1h } }\non_failure:\n  steps:\n    - { id: b, http: { method: PUT, url: \"https://a.example\" } }\n", ""},
		{"http that must not repeat in on_failure", "steps:\n  - { id: a, wait: { for: 1h } }\non_failure:\n  steps:\n    - { id: b, effect: at_most_once, http: { method: PUT, url: \"https://a.example\" } }\n", "7:38 RG0115"},
		{"an activity of the engine", "steps:\n  - { id: a, activity: ringi.http, effect: pure }\n", "4:24 RG0116"},
		{"an undo by an activity of the engine", "steps:\n  - { id: a, activity: b, effect: idempotent, compensate: { activity: ringi.http } }\n", "4:71 RG0116"},
		{"a default queue of the engine", "defaults: { queue: ringi.http }\nsteps:\n  - { id: a, activity: b, effect: pure }\n", "3:20 RG0116"},
		{"an output is typed", httpStep("GET", "", "    output: { type: object, required: [n], properties: { n: { type: number } } }\n  - id: b\n    when: steps.a.output.m > 1\n    wait: { for: 1h }\n"), "10:26 RG0302"},
	})
}

func TestURLsAreChecked(t *testing.T) { // W3
	for url, want := range map[string]string{
		"https://a.example":                   "",
		"HTTP://a.example:8080/x?y=z":         "",
		"https://a.example/${ input.x }":      "",
		"${ input.x }":                        "",
		"https://${ input.x }/y":              "",
		"https://[::1]:80/":                   "",
		"ftp://a.example/":                    "5:31 RG0117",
		"file:///etc/passwd":                  "5:31 RG0117",
		"//a.example/x":                       "5:31 RG0117",
		"https:///x":                          "5:31 RG0117",
		"https://":                            "5:31 RG0117",
		"https://user:password@a.example/":    "5:31 RG0117",
		"https://user@a.example/${ input.x }": "5:31 RG0117",
		"https://a.example/#there":            "5:31 RG0117",
		"https://a.example/x y":               "5:31 RG0117",
		`https://a.example\\@b.example/`:      "5:31 RG0117",
		"https://a.example/%zz":               "5:31 RG0117",
		"gopher://a.example:70/${ input.x }":  "5:31 RG0117",
		"javascript:${ input.x }":             "5:31 RG0117",
	} {
		src := "ringi: v1\nname: n\nsteps:\n  - id: a\n    http: { method: GET, url: \"" + url + "\" }\n"
		if got := checked(src); got != want {
			t.Errorf("%s: got %q, want %q", url, got, want)
		}
	}
}

// What a worker gets of an http step is frozen like the input of an activity.
func TestAnHTTPStepIsACallWithARequest(t *testing.T) { // W2
	d, problems := workflow.Parse("f.yaml", []byte(`ringi: v1
name: n
steps:
  - id: charge
    http:
      method: POST
      url: "https://pay.example.com/charges/${ url_escape(input.order) }"
      headers: { PayPal-Request-Id: "${ step.key }" }
      query: { dry: false, tags: [a, "${ input.order }"] }
      body: { amount: "${ input.amount }" }
      expect: [201]
    effect: probeable
    queue: money
    probe: { http: { method: GET, url: "https://pay.example.com/charges?key=${ step.key }" } }
    compensate: { activity: payment.refund, with: { key: "${ step.key }" } }
`))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	s := d.Step("charge")
	a := s.Activity
	if s.Verb != workflow.VerbHTTP || a.Name != workflow.HTTPActivity || a.Queue != workflow.HTTPQueue || a.Effect != workflow.Probeable {
		t.Errorf("got %s %s %s %s", s.Verb, a.Name, a.Queue, a.Effect)
	}
	if a.Probe.Name != workflow.HTTPActivity || a.Probe.Queue != workflow.HTTPQueue || a.Compensate.Queue != "money" {
		t.Errorf("got %+v and %+v", a.Probe, a.Compensate)
	}
	env := &workflow.Env{Input: []byte(`{"order":"a/b","amount":0.10}`), StepKey: "run/charge"}
	for _, c := range []struct {
		v    *workflow.Value
		want string
	}{
		{a.With, `{"body":{"amount":0.1},"expect":[201],"headers":{"PayPal-Request-Id":"run/charge"},"method":"POST","query":{"dry":false,"tags":["a","a/b"]},"url":"https://pay.example.com/charges/a%2Fb"}`},
		{a.Probe.With, `{"method":"GET","url":"https://pay.example.com/charges?key=run/charge"}`},
	} {
		got, err := c.v.Eval(env)
		if err != nil || string(got) != c.want {
			t.Errorf("got  %s %v\nwant %s", got, err, c.want)
		}
	}
}
