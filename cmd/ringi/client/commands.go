package client

import (
	"github.com/spf13/cobra"

	"github.com/ringiflow/ringi/cmd/ringi/cli"
)

// program is the program as the commands of this package see it.
type program struct{ *cli.Program }

// RunCommands are those that start, show and steer runs.
func RunCommands(p *cli.Program) []*cobra.Command {
	c := program{p}
	return []*cobra.Command{c.startCommand(), c.sendCommand(), c.runsCommand(), c.showCommand(), c.historyCommand(), c.cancelCommand(), c.pauseCommand(), c.resumeCommand(), c.terminateCommand()}
}

// PeopleCommands are those by which people decide: on approvals and on incidents.
func PeopleCommands(p *cli.Program) []*cobra.Command {
	c := program{p}
	return []*cobra.Command{c.approvalsCommand(), c.approveCommand(), c.rejectCommand(), c.incidentsCommand(), c.resolveCommand()}
}
