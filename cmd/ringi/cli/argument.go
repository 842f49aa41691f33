package cli

import "github.com/spf13/cobra"

// Exactly takes as many arguments as there are names.
func Exactly(names ...string) cobra.PositionalArgs { return Between(len(names), names...) }

// Between takes the arguments of these names, of which the first so many are needed.
func Between(needed int, names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < needed:
			return Usage("as in: "+cmd.UseLine(), "%s is missing", names[len(args)])
		case len(args) > len(names):
			return Usage("as in: "+cmd.UseLine(), "%q is one argument too many", args[len(names)])
		}
		return nil
	}
}

// AtLeastOne takes one or more arguments of this name.
func AtLeastOne(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return Usage("as in: "+cmd.UseLine(), "%s is missing", name)
		}
		return nil
	}
}
