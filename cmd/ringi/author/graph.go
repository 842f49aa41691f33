package author

import (
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/ringiflow/ringi/cmd/ringi/cli"
	"github.com/ringiflow/ringi/workflow"
	"github.com/ringiflow/ringi/workflow/graph"
)

// How a definition is drawn.
const (
	drawText    = "text"
	drawSVG     = "svg"
	drawMermaid = "mermaid"
)

func (p program) graphCommand() *cobra.Command {
	var format, out string
	cmd := &cobra.Command{
		Use: "graph FILE", Short: "Draw a definition: its steps, branches, approvals and undoing", Args: cli.Exactly("FILE"),
		Long: `Draws a definition for people: its steps in their order, what each calls and what
its effect can bear, branches and their conditions, who is asked, what is done
when a step fails, how each step is undone, and from where on there is no way
back. text is for a terminal, as wide as COLUMNS says; svg for a page or a
document; mermaid for text that a site renders. The same definition gives the
same drawing. - is standard input.`,
		Example: `  ringi graph order.yaml
  ringi graph order.yaml --format svg --out order.svg`,
		RunE: func(_ *cobra.Command, args []string) error { return p.graph(args[0], format, out) },
	}
	cmd.Flags().StringVar(&format, "format", drawText, "text, svg or mermaid")
	cmd.Flags().StringVar(&out, "out", "", "write to this file instead of standard output")
	return cmd
}

func (p program) graph(name, format, out string) error {
	f, err := p.readSource(name)
	if err != nil {
		return err
	}
	if f.holdsScenarios() {
		return noDefinition(name)
	}
	def, problems := workflow.Parse(f.name, f.text)
	if def == nil {
		found := Checked{}
		found.add(problems)
		if err := writeProblems(p.Stderr, []sourceFile{f}, found, false); err != nil {
			return err
		}
		return found.err()
	}
	chart := graph.Of(def)
	var drawn []byte
	switch format {
	case drawText:
		drawn = []byte(chart.Text(p.columns()))
	case drawSVG:
		drawn = chart.SVG()
	case drawMermaid:
		drawn = []byte(chart.Mermaid())
	default:
		return cli.Usage("take one of text, svg and mermaid", "there is no format %q", format)
	}
	if p.JSON() {
		return p.PrintJSON(struct {
			Format string `json:"format"`
			Graph  string `json:"graph"`
		}{format, string(drawn)})
	}
	if out != "" {
		return os.WriteFile(p.Path(out), drawn, 0o644) //nolint:gosec // a drawing is for everybody
	}
	_, err = p.Stdout.Write(drawn)
	return err
}

// columns is how wide a terminal is; 0 where nobody says, so that nothing is cut.
func (p program) columns() int {
	n, err := strconv.Atoi(p.Env("COLUMNS"))
	if err != nil || n < 40 {
		return 0
	}
	return n
}
