package bench

import (
	"fmt"
	"strings"

	"github.com/ringiflow/ringi/engine"
)

// w3Steps is how many activities W3 has.
const w3Steps = 3

// definition is what is measured: w3, or a longer or a wider one of that name.
func (c *W3Config) definition() string {
	if c.Branches == 0 && c.Steps == w3Steps {
		return w3
	}
	var b strings.Builder
	b.WriteString("ringi: v1\nname: w3\nsteps:\n")
	if c.Branches > 0 {
		b.WriteString("  - id: all\n    parallel:\n      branches:\n")
		for i := range c.Branches {
			fmt.Fprintf(&b, "        b%d:\n          %s", i, w3Activity(i))
		}
		return b.String()
	}
	for i := range c.Steps {
		b.WriteString("  " + w3Activity(i))
	}
	return b.String()
}

func w3Activity(i int) string {
	return fmt.Sprintf("- { id: s%d, activity: %s, with: { order: \"${ input.order }\" }, effect: idempotent }\n", i, w3Activities[i%len(w3Activities)])
}

// quotas let the definition be published, however long or wide it is.
func (c *W3Config) quotas() engine.Quotas {
	return engine.Quotas{Steps: max(c.Steps, c.Branches+1), Width: c.Branches}
}
