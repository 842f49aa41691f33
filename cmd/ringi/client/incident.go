package client

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/cmd/ringi/cli"
)

func (p program) incidentsCommand() *cobra.Command {
	var run string
	q := ringi.IncidentQuery{Tenant: ringi.DefaultTenant}
	cmd := &cobra.Command{
		Use: "incidents", Short: "List open incidents, oldest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			svc, err := p.Service()
			if err != nil {
				return err
			}
			if run != "" {
				if q.Run, err = findRun(cmd.Context(), svc, run); err != nil {
					return err
				}
			}
			return p.listIncidents(cmd.Context(), svc, q)
		},
	}
	f := cmd.Flags()
	f.StringVar(&run, "run", "", "only of this run")
	f.IntVar(&q.Limit, "limit", listLimit, "at most so many")
	f.StringVar(&q.After, "after", "", "go on after this cursor: next of the page before")
	return cmd
}

func (p program) listIncidents(ctx context.Context, svc ringi.Service, q ringi.IncidentQuery) error {
	out := struct {
		Incidents []ringi.IncidentView `json:"incidents"`
		Next      string               `json:"next,omitempty"`
	}{Incidents: []ringi.IncidentView{}}
	err := pages(q.Limit, func(limit int) (int, bool, error) {
		q.Limit = limit
		page, err := svc.List(ctx, q)
		out.Incidents, out.Next, q.After = append(out.Incidents, page.Incidents...), page.Next, page.Next
		return len(page.Incidents), page.Next != "", err
	})
	if err != nil {
		return err
	}
	t := cli.Table{Head: []string{"RUN", "INCIDENT", "KIND", "STEP", "SINCE", "ALLOWED", "MESSAGE"}}
	for _, i := range out.Incidents {
		t.Row(string(i.Run), strconv.FormatInt(i.ID, 10), string(i.Kind), i.Step, cli.Moment(i.Since), words(i.Allowed), cli.Short(i.Message, 100))
	}
	if err := p.Print(out, t); err != nil {
		return err
	}
	p.sayMore(out.Next)
	return nil
}

// resolutions are the ways to close an incident that a person may ask for.
func resolutions() []ringi.Resolution {
	return []ringi.Resolution{
		ringi.ResolveRetry, ringi.ResolveDone, ringi.ResolveNotDone,
		ringi.ResolveSkipUndo, ringi.ResolveRunOther, ringi.ResolveUndoRest,
	}
}

func (p program) resolveCommand() *cobra.Command {
	var answer ringi.ResolveIncident
	var how, output, input string
	cmd := &cobra.Command{
		Use: "resolve RUN [INCIDENT]", Short: "Answer an incident", Args: cli.Between(1, "RUN", "INCIDENT"),
		Long: "Answers an incident. INCIDENT is its number, and may be left out when the run has only one.",
		RunE: func(cmd *cobra.Command, args []string) error {
			answer.How = ringi.Resolution(how)
			if !slices.Contains(resolutions(), answer.How) {
				return cli.Usage("take one of "+words(resolutions()), "--how is %q", how)
			}
			if err := needReason(answer.Reason); err != nil {
				return err
			}
			var err error
			if answer.Output, err = p.Document("output", output); err != nil {
				return err
			}
			if answer.Input, err = p.Document("input", input); err != nil {
				return err
			}
			return p.resolveIncident(cmd.Context(), args, answer)
		},
	}
	f := cmd.Flags()
	f.StringVar(&how, "how", "", "one of "+words(resolutions()))
	f.StringVar(&output, "output", "", "with done: what the step answered; @FILE, - or JSON")
	f.StringVar(&answer.Activity, "activity", "", "with run_other: what to run in place of the undo")
	f.StringVar(&input, "input", "", "with run_other: its input; @FILE, - or JSON")
	reasonFlag(cmd, &answer.Reason)
	return cmd
}

func (p program) resolveIncident(ctx context.Context, args []string, answer ringi.ResolveIncident) error {
	svc, err := p.Service()
	if err != nil {
		return err
	}
	run, err := findRun(ctx, svc, args[0])
	if err != nil {
		return err
	}
	if answer.Incident, err = whichIncident(ctx, svc, run, args[1:]); err != nil {
		return err
	}
	res, err := do(ctx, svc, run, answer)
	if err != nil {
		return err
	}
	return p.printSteered(run, res)
}

// whichIncident is the incident that the arguments name, or the only one.
func whichIncident(ctx context.Context, svc ringi.Service, run ringi.RunID, args []string) (int64, error) {
	if len(args) > 0 {
		id, err := strconv.ParseInt(args[0], 10, 64)
		if err != nil || id < 1 {
			return 0, cli.Usage("ringi incidents shows them", "%q is not the number of an incident", args[0])
		}
		return id, nil
	}
	page, err := svc.List(ctx, ringi.IncidentQuery{Tenant: ringi.DefaultTenant, Run: run})
	switch {
	case err != nil:
		return 0, err
	case len(page.Incidents) == 0:
		return 0, &ringi.Error{Code: ringi.CodeNotFound, Message: fmt.Sprintf("run %s has no open incident", run)}
	case len(page.Incidents) > 1:
		return 0, cli.Usage("name one; ringi incidents --run "+string(run)+" shows them", "the run has %d open incidents", len(page.Incidents))
	}
	return page.Incidents[0].ID, nil
}

func incidentText(i ringi.Incident) string {
	text := string(i.Kind)
	if i.Step != "" {
		text += " at step " + i.Step
	}
	return fmt.Sprintf("%s: %s; allowed: %s", text, i.Message, words(i.Allowed))
}

// words lists words for a person.
func words[W ~string](list []W) string {
	out := make([]string, len(list))
	for i, w := range list {
		out[i] = string(w)
	}
	return strings.Join(out, ", ")
}
