package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// strictHelp makes help and completion refuse what they do not know, where cobra
// would print something else and exit with 0. The outputs of root are set by then:
// its completion remembers them.
func strictHelp(root *cobra.Command) {
	root.SetHelpCommand(&cobra.Command{
		Use: "help [COMMAND]", Short: "Help about a command",
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return Usage("ringi help lists them", "there is no help about %q", strings.Join(args, " "))
			}
			cmd.InitDefaultHelpFlag() // as --help would, so that both print the same
			return cmd.Help()
		},
	})
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() != "completion" {
			continue
		}
		var shells []string
		for _, shell := range cmd.Commands() {
			shells = append(shells, shell.Name())
		}
		cmd.Args = nil
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return Usage("take one of "+strings.Join(shells, ", "), "there is no completion for %q", args[0])
			}
			return cmd.Help()
		}
	}
}
