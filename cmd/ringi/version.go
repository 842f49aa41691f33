package main

import (
	"github.com/spf13/cobra"

	"github.com/ringiflow/ringi/cmd/ringi/cli"
)

func versionCommand(p *cli.Program) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			b := cli.BuildOf()
			t := cli.Table{}
			t.Row("ringi "+b.Version, b.Commit, b.Go)
			return p.Print(b, t)
		},
	}
}
