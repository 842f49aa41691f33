package main

import (
	"github.com/spf13/cobra"

	"github.com/ringiflow/ringi/cmd/ringi/author"
	"github.com/ringiflow/ringi/cmd/ringi/cli"
	"github.com/ringiflow/ringi/cmd/ringi/client"
	"github.com/ringiflow/ringi/cmd/ringi/delivery"
	"github.com/ringiflow/ringi/cmd/ringi/prove"
	"github.com/ringiflow/ringi/cmd/ringi/server"
	"github.com/ringiflow/ringi/cmd/ringi/trial"
	"github.com/ringiflow/ringi/cmd/ringi/work"
)

// rootCommand is the tree of all commands.
func rootCommand(p *cli.Program) *cobra.Command {
	root := &cobra.Command{
		Use:   "ringi",
		Short: "Runs business processes that must not be half done",
		Long: `ringi runs business processes that must not be half done. Begin with:

  ringi dev      a server on this machine with an example, people and a worker
  ringi demo     100 orders through a server that is killed again and again`,
	}
	group(root, "Servers", []*cobra.Command{server.Serve(p), delivery.Relay(p), delivery.Feed(p)}, trial.Commands(p))
	group(root, "Workers", work.Commands(p))
	group(root, "Definitions", author.Commands(p))
	group(root, "Runs", client.RunCommands(p))
	group(root, "People", client.PeopleCommands(p))
	group(root, "Operation", []*cobra.Command{delivery.Outbox(p), server.Keys(p), versionCommand(p)}, prove.Commands(p))
	root.AddCommand(&cobra.Command{Use: "exit-codes", Short: "What the exit codes mean", Long: cli.ExitCodesText})
	return root
}

// group adds commands under a heading of the help.
func group(root *cobra.Command, title string, lists ...[]*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: title, Title: title + ":"})
	for _, list := range lists {
		for _, c := range list {
			c.GroupID = title
			root.AddCommand(c)
		}
	}
}
