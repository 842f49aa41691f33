package client

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/cmd/ringi/cli"
)

func (p program) sendCommand() *cobra.Command {
	var event ringi.SendEvent
	var data string
	cmd := &cobra.Command{
		Use: "send NAME", Short: "Send an event to the runs that wait for it", Args: cli.Exactly("NAME"),
		Long: "Stores an event for the waits of its name and key. A wait that opens later finds it while it is kept.",
		RunE: func(cmd *cobra.Command, args []string) error {
			event.Name = args[0]
			var err error
			if event.Data, err = p.Document("data", data); err != nil {
				return err
			}
			if event.Keep < 0 {
				return cli.Usage("", "--keep is %v, which keeps nothing", event.Keep)
			}
			return p.send(cmd.Context(), event)
		},
	}
	f := cmd.Flags()
	f.StringVar(&event.Key, "key", "", "which waits of that name")
	f.StringVar(&data, "data", "", "the data: @FILE, - for standard input, or JSON")
	f.StringVar(&event.ID, "id", "", "repeats of an id are dropped; without one it is drawn")
	f.DurationVar(&event.Keep, "keep", 0*time.Second, "how long a wait may still open and find it; 0 is 24h")
	return cmd
}

func (p program) send(ctx context.Context, event ringi.SendEvent) error {
	svc, err := p.Service()
	if err != nil {
		return err
	}
	res, err := do(ctx, svc, "", event)
	if err != nil {
		return err
	}
	out := struct {
		ID      string              `json:"id"`
		Outcome ringi.AnswerOutcome `json:"outcome"`
	}{res.ID, res.Answer.Outcome}
	var t cli.Table
	t.Row(out.ID, string(out.Outcome))
	return p.Print(out, t)
}
