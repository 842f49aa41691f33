package sense

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/ringiflow/ringi/store"
)

// mostReady bounds what is remembered of a queue that no worker serves.
const mostReady = 1024

// A ReadyTask is an attempt that waits for a worker.
type ReadyTask struct {
	store.TaskRef
	Seq int64
}

// A Ready is what a node knows of the tasks that stand ready for one kind of
// polls: those that it made so itself, when others will be, and whether there may
// be more. It only saves claims; the store is the proof. Its zero value knows
// nothing, so that the first claim looks. Not for concurrent use.
type Ready struct {
	sure    bool                 // nothing stands ready but what is in fresh, as far as is known
	fresh   map[ReadyTask]uint64 // what was made ready here and may still stand so, by gen
	coming  map[ReadyTask]bool   // what commits under way make ready; true: claimed already
	looks   int                  // under way
	gone    map[ReadyTask]bool   // taken out of fresh by one look; another may have got it
	gen     uint64               // grows whenever something was made ready
	blind   uint64               // the last gen that fresh had no room for
	checkAt time.Time            // when it is looked at for whatever is known
	soon    time.Time            // when the next retry or give-back becomes ready; zero: none is known
	turns   []time.Time          // when tasks that were put off become ready, in order
}

// Sure reports whether nothing else than Known tasks stands ready, and none whose
// time was known.
func (r *Ready) Sure(now time.Time) bool {
	overdue := !r.soon.IsZero() && !r.soon.After(now) || len(r.turns) > 0 && !r.turns[0].After(now)
	return r.sure && !overdue
}

// Unseen reports whether no look has ended yet.
func (r *Ready) Unseen() bool { return r.checkAt.IsZero() }

// Known is how many tasks were made ready here and may still stand so.
func (r *Ready) Known() int { return len(r.fresh) }

// Bound is the most tasks that a look may find, as far as is known, or n. There may
// always be one more.
func (r *Ready) Bound(n int) int {
	if r.sure {
		n = min(n, len(r.fresh)+1)
	}
	return n
}

// Empty reports whether nothing stands ready.
func (r *Ready) Empty() bool { return r.sure && len(r.fresh) == 0 }

// MayHold reports whether a look may find something.
func (r *Ready) MayHold(now time.Time) bool { return !r.Empty() || !now.Before(r.Next()) }

// MayHoldOthers reports whether a look may find something that is not Known.
func (r *Ready) MayHoldOthers(now time.Time) bool { return !r.sure || !now.Before(r.Next()) }

// Next is when it is looked at at the latest.
func (r *Ready) Next() time.Time {
	next := r.checkAt
	if !r.soon.IsZero() && r.soon.Before(next) {
		next = r.soon
	}
	if len(r.turns) > 0 && r.turns[0].Before(next) {
		next = r.turns[0]
	}
	return next
}

// Expect notes that a commit which is about to be sent makes a task ready: a look
// can see it before this node hears that it was committed.
func (r *Ready) Expect(t ReadyTask) {
	if r.coming == nil {
		r.coming = map[ReadyTask]bool{}
	}
	r.coming[t] = false
}

// Forget takes back what was expected of a run whose write does not hold.
func (r *Ready) Forget(key store.Key) {
	maps.DeleteFunc(r.coming, func(t ReadyTask, _ bool) bool { return t.Key == key })
}

// Made notes that a task was made ready.
func (r *Ready) Made(t ReadyTask) {
	claimed := r.coming[t]
	delete(r.coming, t)
	if claimed {
		return
	}
	r.gen++
	if len(r.fresh) >= mostReady {
		r.blind, r.sure = r.gen, false
		return
	}
	if r.fresh == nil {
		r.fresh = map[ReadyTask]uint64{}
	}
	r.fresh[t] = r.gen
}

// Later notes when a task becomes ready, and reports whether no other does before.
func (r *Ready) Later(at time.Time) (first bool) {
	if !r.soon.IsZero() && !at.Before(r.soon) {
		return false
	}
	r.soon = at
	return true
}

// PutOff notes when a task that was handed back becomes ready. All those times are
// kept, not only the next: each look takes those that are due, and the next ones
// would wait for the latest time to look.
func (r *Ready) PutOff(at time.Time) {
	i, _ := slices.BinarySearchFunc(r.turns, at, time.Time.Compare)
	r.turns = slices.Insert(r.turns, i, at)
	if len(r.turns) > mostReady {
		r.turns = r.turns[:mostReady]
	}
}

// Taken are Known tasks that were taken out, to be claimed by name.
type Taken struct {
	Tasks []store.TaskRef
	tasks []ReadyTask
	gens  []uint64
}

// Take takes the oldest Known tasks out, at most n.
func (r *Ready) Take(n int) Taken {
	list := slices.SortedFunc(maps.Keys(r.fresh), func(a, b ReadyTask) int { return cmp.Compare(r.fresh[a], r.fresh[b]) })
	t := Taken{tasks: list[:min(n, len(list))]}
	for _, task := range t.tasks {
		t.Tasks = append(t.Tasks, task.TaskRef)
		t.gens = append(t.gens, r.fresh[task])
		delete(r.fresh, task)
	}
	return t
}

// Return puts back what was taken out and not claimed after all.
func (r *Ready) Return(t Taken) {
	for i, task := range t.tasks {
		r.fresh[task] = t.gens[i]
	}
}

// A Look is a claim of the oldest tasks, whoever made them ready. Each that begins
// ends once.
type Look struct {
	At    time.Time
	Least time.Duration // how long a task must have stood ready
	gen   uint64
}

// Begin says that a look begins.
func (r *Ready) Begin(at time.Time, least time.Duration) Look {
	r.looks++
	return Look{At: at, Least: least, gen: r.gen}
}

// End says that a look ended, whatever it found.
func (r *Ready) End() {
	if r.looks--; r.looks == 0 {
		r.gone = nil
	}
}

// Saw takes in what a look found, all saying that there was no more. Nobody needs
// to look before next unless something is heard of.
//
// When it found all, whatever was ready before it is gone, and only what was made
// ready meanwhile may still stand. The rejected alternative, to forget nothing
// until nothing is made ready during a look, never comes to an end under load: then
// every task is claimed, which costs a commit, and none is born leased.
func (r *Ready) Saw(l Look, found []store.Claimed, all bool, next time.Time) {
	r.checkAt = next
	if !r.soon.After(l.At) {
		r.soon = time.Time{}
	}
	for _, c := range found {
		t := ReadyTask{store.TaskRef{Key: c.Key, Lane: c.Row.Lane}, c.Row.Seq}
		_, coming := r.coming[t]
		if coming {
			r.coming[t] = true
		}
		if _, fresh := r.fresh[t]; !fresh && !coming && !r.gone[t] && !all {
			r.sure = false // another node made it ready, or an earlier process, and perhaps more
		}
		delete(r.fresh, t)
	}
	if !all {
		return
	}
	due, _ := slices.BinarySearchFunc(r.turns, l.At.Add(1), time.Time.Compare)
	r.turns = slices.Delete(r.turns, 0, due)
	if l.Least > 0 {
		r.sawOld(l)
		return
	}
	maps.DeleteFunc(r.fresh, func(t ReadyTask, at uint64) bool {
		if at <= l.gen && r.looks > 1 {
			if r.gone == nil {
				r.gone = map[ReadyTask]bool{}
			}
			r.gone[t] = true
		}
		return at <= l.gen
	})
	r.sure = r.blind <= l.gen
}

// sawOld ends a look that found all that had stood ready for long enough. Those that
// were made ready here are still known, and those for which there was no room are
// found once they are as old.
func (r *Ready) sawOld(l Look) {
	r.sure = true
	if r.blind > 0 {
		r.blind = 0
		r.Later(l.At.Add(l.Least))
	}
}
