package trial

import (
	"bytes"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/ringiflow/ringi/examples/order"
)

// demoServiceCommand is one of the four services as a process of its own.
func (p program) demoServiceCommand() *cobra.Command {
	var db, orders string
	cmd := &cobra.Command{
		Use:    "service NAME",
		Short:  "One of the services that the demo calls; the demo starts it",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p.Drain()
			data, err := os.ReadFile(p.Path(orders))
			if err != nil {
				return fmt.Errorf("read the orders whose faults are acted out: %w", err)
			}
			lines, err := order.ParseLines(bytes.NewReader(data))
			if err != nil {
				return err
			}
			return order.RunService(cmd.Context(), order.ServiceConfig{
				Name: args[0], DB: p.Path(db), Lines: lines,
				Ready: func(url string) { fmt.Fprintln(p.Stdout, url) },
			})
		},
	}
	cmd.Flags().StringVar(&db, "db", "", "file for its book of calls")
	cmd.Flags().StringVar(&orders, "orders", "", "file of orders with their faults")
	return cmd
}
