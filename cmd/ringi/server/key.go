package server

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/access"
	"github.com/ringiflow/ringi/api"
	"github.com/ringiflow/ringi/cmd/ringi/cli"
)

func (p program) keysCommand() *cobra.Command {
	keys := &cobra.Command{Use: "keys", Short: "Make keys for people and machines", Args: cobra.NoArgs}
	keys.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	keys.AddCommand(p.newKeyCommand())
	return keys
}

func (p program) newKeyCommand() *cobra.Command {
	who := access.Principal{Tenant: ringi.DefaultTenant}
	var kind string
	cmd := &cobra.Command{
		Use: "new NAME", Short: "Draw a key and print it once, with its line for the file of keys", Args: cli.Exactly("NAME"),
		Long: `Draws a key and prints it, once, with the line that the server's file of keys
(--keys) needs for it. The file holds only the key's SHA-256. Nothing is stored.`,
		Example: "  ringi keys new alice --kind person --group finance --scope read --scope decide",
		RunE: func(_ *cobra.Command, args []string) error {
			who.ID, who.Kind = args[0], ringi.ActorKind(kind)
			if len(who.Scopes) == 0 {
				return cli.Usage(fmt.Sprintf("take some of %v", access.Scopes()), "--scope is missing: the key could do nothing")
			}
			key, line, err := access.NewKey(who)
			if err != nil {
				return cli.Usage("", "%v", err)
			}
			out := struct {
				Name string `json:"name"`
				Key  string `json:"key"`
				Line string `json:"line"`
			}{who.ID, key, line}
			var t cli.Table
			t.Row("key", key)
			t.Row("line", line)
			if err := p.Print(out, t); err != nil {
				return err
			}
			if who.Kind == ringi.Machine && slices.Contains(who.Scopes, api.ScopeDecide) {
				p.Say("machines never vote: the scope %s lets this key do nothing; --kind person is for people", api.ScopeDecide)
			}
			if !p.JSON() {
				p.Say("give the key to %s, who puts it into a file for --key-file; add the line to the file of ringi serve --keys", who.ID)
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&kind, "kind", string(ringi.Person), "person or machine; only people vote")
	f.StringSliceVar(&who.Groups, "group", nil, "a group that it belongs to, for approvals")
	f.StringSliceVar(&who.Scopes, "scope", nil, "what it may do: "+fmt.Sprint(access.Scopes()))
	return cmd
}
