package delivery

import (
	"github.com/spf13/cobra"

	"github.com/ringiflow/ringi/cmd/ringi/cli"
)

// program is the program as the commands of this package see it.
type program struct{ *cli.Program }

// Relay is ringi relay.
func Relay(p *cli.Program) *cobra.Command { return program{p}.relayCommand() }

// Outbox is ringi outbox.
func Outbox(p *cli.Program) *cobra.Command { return program{p}.outboxCommand() }

// Feed is ringi feed.
func Feed(p *cli.Program) *cobra.Command { return program{p}.feedCommand() }
