package api_test

import (
	"encoding/json"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ringiflow/ringi"
)

func TestTheExamplesOfTheWorkerProtocolAreRight(t *testing.T) {
	text, err := os.ReadFile("../docs/worker-protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	svc := &service{do: func(c ringi.Command) ringi.Result {
		return ringi.Result{Run: c.Run, Answer: ringi.Answer{Outcome: ringi.Accepted}}
	}}
	h := newServer(t, svc, nil)
	example := regexp.MustCompile(`(?s)curl -s \$RINGI(/v1/tasks/[a-z]+) [^']*'Content-Type: application/json' \\\n\s+-d '([^']*)'`)
	seen := map[string]bool{}
	for _, found := range example.FindAllStringSubmatch(string(text), -1) {
		seen[found[1]] = true
		if w := ask(h, http.MethodPost, found[1], found[2]); w.Code != http.StatusOK {
			t.Errorf("%s %s: status %d: %s", found[1], found[2], w.Code, w.Body)
		}
	}
	for _, r := range h.Routes() {
		if r.Tag == "tasks" && !seen[r.Path] {
			t.Errorf("no example of %s", r.Path)
		}
	}
	blocks := strings.Split(string(text), "```json\n")[1:]
	if len(blocks) < 4 {
		t.Errorf("%d answers", len(blocks))
	}
	for _, block := range blocks {
		if body, _, _ := strings.Cut(block, "```"); !json.Valid([]byte(body)) {
			t.Errorf("an answer is not JSON: %s", body)
		}
	}
}

func TestTheWorkerProtocolNamesEveryFieldOfATask(t *testing.T) {
	text, err := os.ReadFile("../docs/worker-protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	h := newServer(t, &service{poll: func(ringi.PollRequest) ([]ringi.Task, error) {
		return []ringi.Task{{CallRef: ref("s"), Input: json.RawMessage(`1`), Lease: time.Second}}, nil
	}}, nil)
	var answer struct{ Tasks []map[string]json.RawMessage }
	if err := json.Unmarshal(ask(h, http.MethodPost, "/v1/tasks/poll", `{"worker":"w"}`).Body.Bytes(), &answer); err != nil {
		t.Fatal(err)
	}
	for field := range answer.Tasks[0] {
		if !strings.Contains(string(text), "`"+field+"`") {
			t.Errorf("the field %s is not explained", field)
		}
	}
}
