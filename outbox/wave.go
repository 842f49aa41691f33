package outbox

import "errors"

// Waves parts a batch for a sink that awaits answers: no part has two ordered
// messages of one key, those of a key stand in their order from part to part, and
// no part has more than most messages. Each part is sent when the one before has its
// answers, so that a broker which refuses one message of a key and takes the next
// breaks no order. The numbers are places in msgs.
func Waves(msgs []Message, most int) [][]int {
	var parts [][]int
	next := map[Key]int{}
	free := 0 // before it every part is full
	for i := range msgs {
		n := free
		if msgs[i].Seq > 0 {
			n = max(n, next[msgs[i].Key()])
		}
		for n < len(parts) && len(parts[n]) >= most {
			n++
		}
		if n == len(parts) {
			parts = append(parts, nil)
		}
		parts[n] = append(parts[n], i)
		if msgs[i].Seq > 0 {
			next[msgs[i].Key()] = n + 1
		}
		for free < len(parts) && len(parts[free]) >= most {
			free++
		}
	}
	return parts
}

// HoldBehind answers with ErrHeld for every ordered message that stands behind one of a
// wave which got an error.
func HoldBehind(msgs []Message, answers []error, wave []int) {
	failed := map[Key]int{} // where the failure stands
	for _, i := range wave {
		if m := &msgs[i]; m.Seq > 0 && answers[i] != nil && !errors.Is(answers[i], ErrHeld) {
			failed[m.Key()] = i
		}
	}
	if len(failed) == 0 {
		return
	}
	for i := range msgs {
		if at, ok := failed[msgs[i].Key()]; ok && msgs[i].Seq > 0 && i > at {
			answers[i] = ErrHeld
		}
	}
}
