package sense_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/engine/sense"
	"github.com/ringiflow/ringi/store"
)

const (
	second = time.Second
	moment = 250 * time.Millisecond
)

func at(s float64) time.Time { return time.Unix(1_000, 0).Add(time.Duration(s * float64(second))) }

func task(n int) sense.ReadyTask {
	return sense.ReadyTask{TaskRef: store.TaskRef{Key: store.Key{Tenant: 1, Run: ringi.RunID(fmt.Sprint("run-", n))}}, Seq: 2}
}

func found(tasks ...sense.ReadyTask) (list []store.Claimed) {
	for _, t := range tasks {
		list = append(list, store.Claimed{Key: t.Key, Row: ringi.TaskRow{Lane: t.Lane, Seq: t.Seq}})
	}
	return list
}

// look is a look that begins and ends at once.
func look(r *sense.Ready, when float64, least time.Duration, all bool, tasks ...sense.ReadyTask) {
	l := r.Begin(at(when), least)
	r.Saw(l, found(tasks...), all, at(when+1))
	r.End()
}

// W24: tasks are born leased only while nothing older can stand ready, so all that
// is known of what does is kept.
func TestNothingIsKnownBeforeTheFirstLook(t *testing.T) {
	var r sense.Ready
	if !r.Unseen() || r.Empty() || !r.MayHold(at(0)) || r.Bound(9) != 9 {
		t.Error("a queue that nobody looked at may hold anything")
	}
	look(&r, 0, 0, true)
	if r.Unseen() || !r.Empty() || r.MayHold(at(0.9)) || r.Bound(9) != 1 {
		t.Error("a queue in which nothing was found may hold something")
	}
	if !r.MayHold(at(1)) || !r.Next().Equal(at(1)) {
		t.Error("what other nodes made would never be found")
	}
}

func TestWhatIsMadeReadyIsKnownUntilItIsFound(t *testing.T) {
	var r sense.Ready
	look(&r, 0, 0, true)
	r.Expect(task(1))
	r.Made(task(1))
	r.Made(task(2))
	if r.Known() != 2 || r.Bound(9) != 3 || r.Empty() {
		t.Errorf("%d known, at most %d", r.Known(), r.Bound(9))
	}
	l := r.Begin(at(0.1), 0)
	r.Expect(task(3)) // its commit lands before the look, and is heard of after it
	r.Expect(task(4))
	r.Saw(l, found(task(1), task(2), task(3)), true, at(1))
	r.End()
	r.Made(task(3))
	r.Made(task(4))
	if r.Known() != 1 {
		t.Errorf("%d known, want the one that was made after the look", r.Known())
	}
	r.Expect(task(5))
	r.Forget(task(5).Key)
	look(&r, 0.2, 0, false, task(5))
	if r.Sure(at(0.3)) {
		t.Error("a task of whose making nothing was heard is another node's, and there may be more")
	}
}

func TestTheOldestKnownAreTakenAndReturned(t *testing.T) {
	var r sense.Ready
	look(&r, 0, 0, true)
	for i := range 5 {
		r.Made(task(i))
	}
	taken := r.Take(3)
	if len(taken.Tasks) != 3 || taken.Tasks[0] != task(0).TaskRef || taken.Tasks[2] != task(2).TaskRef || r.Known() != 2 {
		t.Errorf("took %v, and %d are left", taken.Tasks, r.Known())
	}
	r.Return(taken)
	if again := r.Take(9); len(again.Tasks) != 5 || again.Tasks[0] != task(0).TaskRef {
		t.Errorf("took %v, want all in their order", again.Tasks)
	}
}

// Where there are other nodes a look leaves out what became ready a moment ago.
func TestALookThatLeavesTheYoungForgetsNoneOfThem(t *testing.T) {
	var r sense.Ready
	look(&r, 0, 0, true)
	r.Made(task(1))
	look(&r, 1, moment, true)
	if r.Known() != 1 || !r.Sure(at(1.1)) || r.MayHoldOthers(at(1.9)) || !r.MayHoldOthers(at(2)) {
		t.Errorf("%d known, sure %v", r.Known(), r.Sure(at(1.1)))
	}
	for i := range 2000 {
		r.Made(task(10 + i))
	}
	if r.Sure(at(1.2)) {
		t.Error("more was made than is remembered, and nothing else is thought to be there")
	}
	look(&r, 1.2, moment, true)
	if next := r.Next(); !next.Equal(at(1.2).Add(moment)) {
		t.Errorf("the next look is at %v, want one when what was not remembered is old enough", next)
	}
}

func TestTimesThatAreKnownEndTheRest(t *testing.T) {
	var r sense.Ready
	look(&r, 0, 0, true)
	if !r.Later(at(0.5)) || r.Later(at(0.7)) || !r.Later(at(0.4)) {
		t.Error("the first of the times counts")
	}
	r.PutOff(at(0.6))
	r.PutOff(at(0.3))
	if !r.Next().Equal(at(0.3)) || !r.Sure(at(0.2)) || r.Sure(at(0.3)) {
		t.Errorf("the next is %v", r.Next())
	}
	look(&r, 0.45, 0, true)
	if !r.Next().Equal(at(0.6)) {
		t.Errorf("after a look the next is %v, want the one that was put off for longest", r.Next())
	}
}
