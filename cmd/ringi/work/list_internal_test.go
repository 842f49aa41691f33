package work

import (
	"strings"
	"testing"

	"github.com/ringiflow/ringi"
)

func TestANoteSaysWhatIsWrongWithAQueue(t *testing.T) { // TC-19
	idle, able := ringi.WorkerView{Worker: "idle"}, ringi.WorkerView{Worker: "able", Capacity: true}
	for _, c := range []struct {
		name     string
		queue    ringi.QueueView
		capacity int
		note     string // what it contains; "" is no note
	}{
		{"nothing to do and nobody there", ringi.QueueView{}, 0, ""},
		{"tasks are with workers that are gone", ringi.QueueView{Leased: 1}, 0, ""},
		{"tasks and nobody", ringi.QueueView{Ready: 1}, 0, "no worker polls it"},
		{"tasks and a worker that only beats", ringi.QueueView{Ready: 1, Workers: []ringi.WorkerView{idle}}, 0, "do not ask for any"},
		{"a worker that only beats", ringi.QueueView{Workers: []ringi.WorkerView{idle}}, 0, "do not ask for tasks"},
		{"tasks and a worker", ringi.QueueView{Ready: 9, Workers: []ringi.WorkerView{idle, able}}, 1, ""},
		{"hand-overs that nobody confirms", ringi.QueueView{Ready: 1, Lapsed: 2, Workers: []ringi.WorkerView{able}}, 1, "2 tasks handed out again and again"},
	} {
		got := stateOf(c.queue)
		if got.Capacity != c.capacity || (got.Note == "") != (c.note == "") || !strings.Contains(got.Note, c.note) {
			t.Errorf("%s: capacity %d, note %q, want %d, %q", c.name, got.Capacity, got.Note, c.capacity, c.note)
		}
	}
}
