package client

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/cmd/ringi/cli"
)

// Steered is what cancel, pause, resume, terminate and resolve print.
type Steered struct {
	Run     ringi.RunID         `json:"run"`
	Status  ringi.Status        `json:"status"`
	Outcome ringi.AnswerOutcome `json:"outcome"` // accepted; repeated: it was so already
	By      string              `json:"by,omitempty"`
}

func (p program) cancelCommand() *cobra.Command {
	return p.steerCommand("cancel RUN", "End a run after undoing what it did", true,
		func(reason string) ringi.Action { return ringi.Cancel{Reason: reason} })
}

func (p program) pauseCommand() *cobra.Command {
	return p.steerCommand("pause RUN", "Hold a run: nothing new is handed out or fired", false,
		func(reason string) ringi.Action { return ringi.Pause{Reason: reason} })
}

func (p program) resumeCommand() *cobra.Command {
	return p.steerCommand("resume RUN", "Let a paused run go on", false,
		func(reason string) ringi.Action { return ringi.Resume{Reason: reason} })
}

func (p program) terminateCommand() *cobra.Command {
	return p.steerCommand("terminate RUN", "End a run at once and undo nothing", true,
		func(reason string) ringi.Action { return ringi.Terminate{Reason: reason} })
}

// steerCommand is a command that takes a run and a reason.
func (p program) steerCommand(use, short string, destructive bool, action func(reason string) ringi.Action) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: use, Short: short, Args: cli.Exactly("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if destructive {
				if err := needReason(reason); err != nil {
					return err
				}
			}
			return p.steer(cmd.Context(), args[0], action(reason))
		},
	}
	reasonFlag(cmd, &reason)
	return cmd
}

func (p program) steer(ctx context.Context, id string, action ringi.Action) error {
	svc, err := p.Service()
	if err != nil {
		return err
	}
	run, err := findRun(ctx, svc, id)
	if err != nil {
		return err
	}
	res, err := do(ctx, svc, run, action)
	if err != nil {
		return err
	}
	if err := p.printSteered(run, res); err != nil {
		return err
	}
	if res.Status == ringi.Terminated {
		p.sayEffectsLeft(ctx, svc, run)
	}
	return nil
}

func (p program) printSteered(run ringi.RunID, res ringi.Result) error {
	var t cli.Table
	t.Row(string(run), string(res.Answer.Outcome), string(res.Status))
	return p.Print(Steered{run, res.Status, res.Answer.Outcome, res.Answer.By}, t)
}

// sayEffectsLeft names what a terminated run left standing in the world.
func (p program) sayEffectsLeft(ctx context.Context, svc ringi.Service, run ringi.RunID) {
	view, err := svc.Run(ctx, ringi.DefaultTenant, run)
	if err == nil && len(view.EffectsLeft) > 0 {
		p.Say("nothing was undone; these effects stand: %s", strings.Join(view.EffectsLeft, ", "))
	}
}

func reasonFlag(cmd *cobra.Command, reason *string) {
	cmd.Flags().StringVar(reason, "reason", "", "why; it goes into the audit trail")
}

// needReason refuses a command that ends or undoes something without a word why.
func needReason(reason string) error {
	if strings.TrimSpace(reason) == "" {
		return cli.Usage(`as in --reason "customer changed her mind"`, "this needs --reason: it goes into the audit trail")
	}
	return nil
}
