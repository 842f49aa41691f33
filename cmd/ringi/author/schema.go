package author

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/ringiflow/ringi/workflow/schema"
)

func (p program) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use: "schema", Short: "Print the JSON Schema of definitions, for editors", Args: cobra.NoArgs,
		Long: `Prints the JSON Schema of definitions (draft 2020-12). Editors complete keys with
it, explain them, and mark mistakes while one types; ringi check finds the rest.
It is made of the grammar that the checker itself reads.

For editors that use the YAML language server, with the schema in a file beside
the definition, the first line of the definition is:

  # yaml-language-server: $schema=ringi.schema.json`,
		Example: "  ringi schema > ringi.schema.json",
		RunE: func(*cobra.Command, []string) error {
			if p.JSON() { // one object on one line
				return p.PrintJSON(json.RawMessage(schema.JSON()))
			}
			_, err := p.Stdout.Write(schema.JSON())
			return err
		},
	}
}
