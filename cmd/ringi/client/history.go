package client

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/cmd/ringi/cli"
)

func (p program) historyCommand() *cobra.Command {
	var watch bool
	var after int64
	cmd := &cobra.Command{
		Use: "history RUN", Short: "Show the events of a run", Args: cli.Exactly("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			svc, err := p.Service()
			if err != nil {
				return err
			}
			run, err := findRun(cmd.Context(), svc, args[0])
			if err != nil {
				return err
			}
			q := ringi.HistoryQuery{Tenant: ringi.DefaultTenant, Run: run, After: after}
			if watch {
				return p.follow(cmd.Context(), svc, q)
			}
			return p.history(cmd.Context(), svc, q)
		},
	}
	cmd.Flags().BoolVar(&watch, "watch", false, "print events as they come until the run has ended, one per line")
	cmd.Flags().Int64Var(&after, "after", 0, "only events above this sequence")
	return cmd
}

// history prints all events as one object or table.
func (p program) history(ctx context.Context, svc ringi.Service, q ringi.HistoryQuery) error {
	out := struct {
		Run    ringi.RunID          `json:"run"`
		Events []ringi.HistoryEvent `json:"events"`
	}{q.Run, []ringi.HistoryEvent{}}
	t := cli.Table{Head: []string{"SEQ", "AT", "EVENT", "DATA"}}
	_, err := eachEvent(ctx, svc, q, func(e ringi.HistoryEvent) error {
		out.Events = append(out.Events, e)
		t.Row(eventCells(e)...)
		return nil
	})
	if err != nil {
		return err
	}
	return p.Print(out, t)
}

// follow prints events as they come.
func (p program) follow(ctx context.Context, svc ringi.Service, q ringi.HistoryQuery) error {
	show := func(e ringi.HistoryEvent) error {
		if p.JSON() {
			return p.PrintJSON(e)
		}
		var t cli.Table
		t.Row(eventCells(e)...)
		return t.Write(p.Stdout, false)
	}
	pause := watchFirst
	for {
		view, err := svc.Run(ctx, q.Tenant, q.Run) // before the events, so that none is missed at the end
		if err != nil {
			return err
		}
		last, err := eachEvent(ctx, svc, q, show)
		if err != nil || view.Status.Final() {
			return err
		}
		if last != q.After {
			q.After, pause = last, watchFirst
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
		pause = min(2*pause, watchMost)
	}
}

// eachEvent reads pages to the end of the log and returns the last sequence.
func eachEvent(ctx context.Context, svc ringi.Service, q ringi.HistoryQuery, show func(ringi.HistoryEvent) error) (int64, error) {
	for {
		page, err := svc.History(ctx, q)
		if err != nil {
			return q.After, err
		}
		for _, e := range page.Events {
			if err := show(e); err != nil {
				return q.After, err
			}
			q.After = e.Seq
		}
		if page.Next == 0 {
			return q.After, nil
		}
		q.After = page.Next
	}
}

func eventCells(e ringi.HistoryEvent) []string {
	return []string{strconv.FormatInt(e.Seq, 10), e.At.UTC().Format("2006-01-02T15:04:05.000Z"), e.Kind, cli.Short(string(e.Data), 160)}
}
