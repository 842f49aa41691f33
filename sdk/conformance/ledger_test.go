package conformance_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
)

// A ledger is the outside service of the activities: it knows which effects they
// had and how often, and holds up those whose gate is shut.
type ledger struct {
	url string

	mu    sync.Mutex
	began []effect
	ended []effect
	open  map[string]bool
}

// An effect is what an activity told.
type effect struct {
	Gate    string `json:"gate"`
	Key     string `json:"key"`
	Attempt int    `json:"attempt"`
	By      string `json:"by"`     // the language
	Reason  string `json:"reason"` // for which it was told to end
}

func newLedger(t *testing.T) *ledger {
	t.Helper()
	l := &ledger{open: map[string]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /began", l.note(&l.began))
	mux.HandleFunc("POST /ended", l.note(&l.ended))
	mux.HandleFunc("GET /gate/{name}", func(w http.ResponseWriter, r *http.Request) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if !l.open[r.PathValue("name")] {
			w.WriteHeader(http.StatusNoContent)
		}
	})
	mux.HandleFunc("GET /effect/{key}", func(w http.ResponseWriter, r *http.Request) {
		count := 0
		for _, e := range l.effects("") {
			if e.Key == r.PathValue("key") {
				count++
			}
		}
		_ = json.NewEncoder(w).Encode(map[string]int{"count": count}) // a worker that is gone needs no answer
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	l.url = server.URL
	return l
}

func (l *ledger) note(list *[]effect) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var e effect
		if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		*list = append(*list, e)
	}
}

// release opens a gate.
func (l *ledger) release(gate string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[gate] = true
}

// effects are those that were begun at a gate; "" is every gate.
func (l *ledger) effects(gate string) []effect { return l.of(&l.began, gate) }

// endings are the functions at a gate that were told to end.
func (l *ledger) endings(gate string) []effect { return l.of(&l.ended, gate) }

func (l *ledger) of(list *[]effect, gate string) []effect {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(*list), func(e effect) bool { return gate != "" && e.Gate != gate })
}
