package engine_test

import (
	"slices"
	"testing"

	"github.com/ringiflow/ringi"
)

func TestHistoryIsReadInPages(t *testing.T) { // TC-79
	bubble(t, func(t *testing.T, w *world) {
		run := w.begin("nap", "", "null")
		for range 20 {
			w.do(alice, run, ringi.Pause{})
			w.do(alice, run, ringi.Resume{})
		}
		all := w.kinds(run)
		var got []string
		after := int64(0)
		for pages := 0; ; pages++ {
			page, err := w.eng.History(t.Context(), ringi.HistoryQuery{Run: run, After: after, Limit: 7})
			if err != nil || len(page.Events) > 7 || pages > len(all) {
				t.Fatalf("page %d: %d events, %v", pages, len(page.Events), err)
			}
			for _, e := range page.Events {
				got = append(got, e.Kind)
			}
			if page.Next == 0 {
				break
			}
			after = page.Next
		}
		if !slices.Equal(got, all) {
			t.Errorf("pages together are %v, want %v", got, all)
		}
		if _, err := w.eng.History(t.Context(), ringi.HistoryQuery{Run: "00000000-0000-7000-8000-000000000000"}); ringi.ErrorCode(err) != ringi.CodeNotFound {
			t.Errorf("history of nobody: %v, want not_found", err)
		}
	})
}
