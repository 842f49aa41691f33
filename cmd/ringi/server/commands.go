package server

import (
	"github.com/spf13/cobra"

	"github.com/ringiflow/ringi/cmd/ringi/cli"
)

// program is the program as the commands of this package see it.
type program struct{ *cli.Program }

// Serve is ringi serve.
func Serve(p *cli.Program) *cobra.Command { return program{p}.serveCommand() }

// Keys is ringi keys, which makes the keys that a server knows people and
// machines by.
func Keys(p *cli.Program) *cobra.Command { return program{p}.keysCommand() }
