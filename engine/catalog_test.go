package engine_test

import (
	"testing"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

// A swap is a catalog whose database can be restored.
type swap struct{ store.Catalog }

// The database is restored to before a publication, and another node publishes
// something else there, which becomes the same version.
func TestAnotherDatabaseHasItsOwnDefinitions(t *testing.T) { // W1, W2, W5
	for name, noticed := range map[string]time.Duration{"noticed": 2 * time.Second, "not noticed yet": 0} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				catalog := &swap{w.mem}
				w.eng.Close()
				w.conf.Catalog = catalog
				w.restart()
				w.publish("name: n\nsteps:\n  - { id: lost, activity: work.a, effect: pure }\n")
				w.begin("n", "", "null")

				catalog.Catalog = store.NewMemory(store.MemoryConfig{})
				other := &world{t: t, mem: w.mem, tap: &tap{Store: w.mem, other: " restored"}, conf: w.conf}
				other.conf.Store = other.tap
				other.start()
				defer other.eng.Close()
				other.publish("name: n\nsteps:\n  - { id: kept, activity: work.a, effect: pure }\n")
				run := other.begin("n", "", "null")
				w.tap.set(func() { w.tap.other = " restored" })
				<-time.After(noticed)

				if r := w.do(operator, run, ringi.Cancel{Reason: "x"}); r.Err != nil {
					t.Errorf("a run of the other node: %v", r.Err)
				}
				<-time.After(2 * time.Second) // the latest version is believed for a second
				run = w.begin("n", "", "null")
				if v := w.view(run); v.Version != 1 || len(v.Steps) != 1 || v.Steps[0].ID != "kept" {
					t.Errorf("the run began with %+v, want what version 1 is now", v.Steps)
				}
				if r := other.do(operator, run, ringi.Cancel{Reason: "x"}); r.Err != nil {
					t.Errorf("on the other node: %v", r.Err)
				}
			})
		})
	}
}
