package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

// withFleet lets the engine of a world know of other nodes.
func withFleet(w *world) {
	w.t.Helper()
	w.eng.Close()
	w.conf.Fleet, w.conf.Version = w.mem, "1"
	w.restart()
}

// W31: a node that reads less than others write serves nothing, so that it takes
// no task and no timer that it cannot understand, and says what to do.
func TestANodeThatReadsTooLittleServesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		withFleet(w)
		nap, work := w.begin("nap", "", "null"), w.begin("one", "", "null")
		<-time.After(10 * time.Second)
		if err := w.eng.Ready(); err != nil {
			t.Fatalf("not ready: %v", err)
		}
		w.eng.Close() // it says good-bye, so that the others need not wait for it
		if err := w.mem.Raise(t.Context(), ringi.Format+1); err != nil {
			t.Fatal(err)
		}
		w.restart()
		<-time.After(time.Second)
		if err := w.eng.Ready(); err == nil || !strings.Contains(err.Error(), "upgrade this server") {
			t.Errorf("ready: %v, want a refusal that says what to do", err)
		}
		_, err := w.eng.Poll(t.Context(), ringi.PollRequest{Worker: "w", Queue: "default", Max: 1})
		if ringi.ErrorCode(err) != ringi.CodeUnavailable {
			t.Errorf("poll: %v, want unavailable", err)
		}
		<-time.After(2 * time.Hour)
		w.wantStatus(nap, ringi.Waiting) // its timer is for others
		if v := w.view(work); v.Status != ringi.Running && v.Status != ringi.Waiting {
			t.Errorf("the other run is %s", v.Status)
		}
	})
}

// W31: a format is not raised while a node was seen in the last minute that reads
// less, and is then.
func TestAFormatWaitsForTheOldestNode(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		old := store.Node{ID: "old", Version: "0", Format: ringi.Format - 1}
		if _, err := w.mem.Meet(t.Context(), old); err != nil {
			t.Fatal(err)
		}
		withFleet(w)
		format := func() int {
			met, err := w.mem.Meet(t.Context(), store.Node{ID: "looks on", Format: ringi.Format})
			if err != nil {
				t.Fatal(err)
			}
			return met.Format
		}
		if err := w.mem.Raise(t.Context(), ringi.Format); err != nil {
			t.Fatal(err)
		}
		if f := format(); f > ringi.FirstFormat {
			t.Errorf("raised to %d beside a node that reads less", f)
		}
		<-time.After(2 * time.Minute)
		if f := format(); f != ringi.Format {
			t.Errorf("after two minutes the format is %d, want %d", f, ringi.Format)
		}
	})
}

// A worker speaks to one node, and every node shows it: as capacity while it
// polls, and not when it only sends heartbeats.
func TestWorkersOfOtherNodesAreShown(t *testing.T) { // TC-19
	bubble(t, func(t *testing.T, w *world) {
		withFleet(w)
		workers := func() map[string]ringi.WorkerView {
			page, err := w.eng.List(t.Context(), ringi.WorkerQuery{})
			if err != nil {
				t.Fatal(err)
			}
			all := map[string]ringi.WorkerView{}
			for _, q := range page.Queues {
				for _, v := range q.Workers {
					all[v.Worker+" of "+q.Queue] = v
				}
			}
			return all
		}
		now := time.Now()
		other := store.Sighting{Tenant: ringi.DefaultTenant, Worker: "far", Queue: "default", Polled: now, Seen: now}
		if err := w.mem.Sight(t.Context(), other, store.Sighting{Tenant: ringi.DefaultTenant, Worker: "beats", Seen: now}); err != nil {
			t.Fatal(err)
		}
		w.begin("one", "", "null")
		w.one("near")
		all := workers()
		if len(all) != 3 || !all["far of default"].Capacity || !all["near of default"].Capacity || all["beats of "].Capacity {
			t.Errorf("workers %+v, want two that are capacity and one that is not", all)
		}
		<-time.After(15 * time.Second)
		told, err := w.mem.Sightings(t.Context(), ringi.DefaultTenant, now.Add(-time.Minute))
		if err != nil || len(told) != 3 || told[2].Worker != "near" || told[2].Queue != "default" {
			t.Errorf("the others are told %+v, %v", told, err)
		}
		other.Seen = time.Now().Add(35 * time.Second) // it beats on
		<-time.After(35 * time.Second)
		if err := w.mem.Sight(t.Context(), other); err != nil {
			t.Fatal(err)
		}
		if v := workers()["far of default"]; v.Worker != "far" || v.Capacity {
			t.Errorf("a worker that stopped polling is %+v, want it shown and no capacity", v)
		}
		<-time.After(70 * time.Second)
		if all := workers(); len(all) != 0 {
			t.Errorf("after a minute of silence there are %+v", all)
		}
	})
}
