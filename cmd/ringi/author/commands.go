package author

import (
	"github.com/spf13/cobra"

	"github.com/ringiflow/ringi/cmd/ringi/cli"
)

// program is the program as the commands of this package see it.
type program struct{ *cli.Program }

// Commands are those for definitions.
func Commands(p *cli.Program) []*cobra.Command {
	c := program{p}
	return []*cobra.Command{c.initCommand(), c.checkCommand(), c.formatCommand(), c.testCommand(), c.explainCommand(), c.graphCommand(), c.schemaCommand(), c.publishCommand()}
}
