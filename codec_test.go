package ringi_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ringiflow/ringi"
)

// Whatever can be read from a log folds without a panic, in any order, and is
// written again as it was.
func FuzzEventsFoldInAnyOrder(f *testing.F) { // W5 TC-80
	for _, body := range bodies(f) {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		events, err := ringi.DecodeEvents(1, raw)
		if err != nil {
			return
		}
		s := ringi.Fold(&ringi.State{}, events...)
		ringi.Standing(s)
		s.View()
		if _, err := ringi.EncodeState(s); err != nil {
			t.Fatal(err)
		}
		again, err := ringi.EncodeEvents(events)
		if err != nil {
			t.Fatal(err)
		}
		back, err := ringi.DecodeEvents(1, again)
		if err != nil || len(back) != len(events) {
			t.Fatalf("%d events became %d: %v", len(events), len(back), err)
		}
	})
}

// bodies are log rows made of the events that the scripts show, one line of
// a script per event, back to front too.
func bodies(f *testing.F) []string {
	f.Helper()
	files, err := filepath.Glob("testdata/scripts/*.txt")
	if err != nil {
		f.Fatal(err)
	}
	var out []string
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		var events []string
		for _, m := range regexp.MustCompile(`(?m)^\d+ ([A-Z]\w+) (\{.*\})$`).FindAllStringSubmatch(string(raw), -1) {
			data := regexp.MustCompile(`"token":(\d+)\.(\d+)`).ReplaceAllString(m[2], `"token":$1`)
			events = append(events, `{"at":1,"kind":"`+m[1]+`","data":`+data+`}`)
		}
		out = append(out, `{"format":1,"events":[`+strings.Join(events, ",")+`]}`)
		for i, j := 0, len(events)-1; i < j; i, j = i+1, j-1 {
			events[i], events[j] = events[j], events[i]
		}
		out = append(out, `{"format":1,"events":[`+strings.Join(events, ",")+`]}`)
	}
	return out
}

func TestNewerFormatsAreLeftAlone(t *testing.T) {
	for name, body := range map[string]string{
		"a newer format":  `{"format":2,"events":[]}`,
		"no format":       `{"events":[]}`,
		"an unknown kind": `{"format":1,"events":[{"at":1,"kind":"Invented","data":{}}]}`,
		"broken bytes":    `{"format":1,"events":[`,
	} {
		if _, err := ringi.DecodeEvents(7, []byte(body)); err == nil || !strings.Contains(err.Error(), "7") {
			t.Errorf("%s: error %v does not name the log row", name, err)
		}
	}
}
