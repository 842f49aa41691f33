package sim

import (
	"slices"
	"strings"

	"github.com/ringiflow/ringi/sim/draw"
	"github.com/ringiflow/ringi/sim/fault"
)

// drawFaults picks what may strike under a seed: every other fault, as strong
// as drawn, so that a rare fault is not always hidden behind a loud one.
func drawFaults(d *draw.Dice, of []fault.Kind) map[fault.Kind]float64 {
	strength := map[fault.Kind]float64{}
	for _, f := range fault.Kinds() {
		drawn, much := d.Hit(0.55), draw.One(d, 0.5, 1, 1, 2)
		switch {
		case of == nil && drawn:
			strength[f] = much
		case slices.Contains(of, f):
			strength[f] = 1
		}
	}
	return strength
}

// strikes draws whether a fault strikes now. The caller says struck once it has
// an effect.
func (w *world) strikes(f fault.Kind, p float64) bool {
	if w.calm || w.strength[f] == 0 {
		return false
	}
	return w.faults.Hit(p*w.strength[f]) && w.allowed()
}

// struck counts a fault and tells it.
func (w *world) struck(f fault.Kind, format string, args ...any) {
	w.count.faults[string(f)]++
	w.trace("! ", string(f))
	if w.tracer.on {
		w.tell("FAULT "+strings.ReplaceAll(string(f), "_", " ")+", "+f.Means()+": "+format, args...)
	}
}

// allowed gives the next perturbation its number and says whether it may take
// place; shrinking leaves some out.
func (w *world) allowed() bool {
	w.ordinal++
	return !w.options.Skip.Has(w.ordinal)
}
