package table

import (
	"slices"

	"github.com/ringiflow/ringi/outbox"
)

// A claim need not write the rows that it takes: it can write one row for itself, with
// their ids, in outbox_claim. Each message is then written once, by its mark, and not
// twice. What the claim's row says holds as if it stood in theirs: they are in hand
// until its lease ends; then whoever claims next writes it into them, with the attempt
// that it was, and deletes it; a mark that finds it gone changes nothing. The epoch of
// such a claim, which its marks name, is its number in outbox_claim below zero.

// Epoch is the epoch of messages claimed by the claim of a number.
func Epoch(claim int64) int64 { return -claim }

// ClaimOf is the number of the claim that a mark names; false if the mark is of a row
// that was written when it was claimed.
func ClaimOf(m *outbox.Mark) (claim int64, ok bool) { return -m.Epoch, m.Epoch < 0 }

// ByClaim lists the ids that marks name of each such claim, each once.
func ByClaim(marks []outbox.Mark) map[int64][]string {
	by := map[int64][]string{}
	for i := range marks {
		if claim, ok := ClaimOf(&marks[i]); ok {
			by[claim] = append(by[claim], marks[i].ID)
		}
	}
	for claim, ids := range by {
		slices.Sort(ids)
		by[claim] = slices.Compact(ids)
	}
	return by
}

// Without returns those of a claim's messages that are still in hand when some are
// marked, and which of the marked ones it had.
func Without(had, marked []string) (left []string, stands map[string]bool) {
	stands = make(map[string]bool, len(marked))
	for _, id := range had {
		if _, found := slices.BinarySearch(marked, id); found {
			stands[id] = true
		} else {
			left = append(left, id)
		}
	}
	return left, stands
}

// Standing returns the marks that stand: those of rows, and of each claim those whose
// ids it had; of a claim that is not in the map none.
func Standing(marks []outbox.Mark, of map[int64]map[string]bool) []outbox.Mark {
	var list []outbox.Mark
	for i := range marks {
		claim, ok := ClaimOf(&marks[i])
		if !ok || of[claim][marks[i].ID] {
			list = append(list, marks[i])
		}
	}
	return list
}

// Hands are the messages that living claims have without a word in their rows: until
// when, in microseconds, by id.
type Hands map[string]int64

// Show gives a row in hand the state and the lease that its claim wrote elsewhere.
func (h Hands) Show(r *Row) {
	if lease, ok := h[r.ID]; ok {
		r.State, r.Lease = outbox.Claimed, lease
	}
}

// Free returns the rows that are not in hand.
func (h Hands) Free(rows []Row) []Row {
	return slices.DeleteFunc(rows, func(r Row) bool { _, ok := h[r.ID]; return ok })
}
