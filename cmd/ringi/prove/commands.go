package prove

import (
	"github.com/spf13/cobra"

	"github.com/ringiflow/ringi/cmd/ringi/cli"
)

// program is the program as the commands of this package see it.
type program struct{ *cli.Program }

// Commands are those that prove and measure: replay, sim and bench.
func Commands(p *cli.Program) []*cobra.Command {
	c := program{p}
	return []*cobra.Command{c.replayCommand(), c.simCommand(), c.benchCommand()}
}
