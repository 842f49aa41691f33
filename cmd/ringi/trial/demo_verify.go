package trial

import (
	"github.com/spf13/cobra"

	"github.com/ringiflow/ringi/cmd/ringi/cli"
	"github.com/ringiflow/ringi/examples/demo"
	"github.com/ringiflow/ringi/examples/order"
)

// demoVerifyCommand is ringi demo verify.
func (p program) demoVerifyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "verify DIR",
		Short: "Check the books that a demo left with --keep",
		Long: `Checks the books that "ringi demo --keep DIR" left. It reads stock.db, payment.db,
shipping.db, mail.db, orders.jsonl and runs.json in DIR and nothing else, and
changes none of them. Exit code 1 says that something is not as it must be.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			report, err := order.Verify(cmd.Context(), p.Path(args[0]))
			if err != nil {
				return err
			}
			if err := p.Print(report, demoTable(report)); err != nil {
				return err
			}
			if !p.JSON() {
				p.Say("\n%s", demo.Verdict(report))
			}
			if !report.Clean() {
				return &cli.Ending{Code: cli.ExitFailed} // what is wrong stands above
			}
			return nil
		},
	}
}
