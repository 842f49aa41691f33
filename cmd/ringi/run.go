package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ringiflow/ringi"
)

const (
	// watchFirst and watchMost are the pauses between two looks at a run that
	// is awaited: quick at first, since most steps take milliseconds.
	watchFirst = 20 * time.Millisecond
	watchMost  = 500 * time.Millisecond
	// awayMost is how long a wait bears a server that cannot be reached: a
	// restart is over by then.
	awayMost = 30 * time.Second
	// listLimit is how many entries a list shows unless it is told otherwise.
	listLimit = 50
	// largestPage is the most that the API gives at a time.
	largestPage = 500
)

func (p *Program) runsCommand() *cobra.Command {
	var q ringi.RunQuery
	var status []string
	cmd := &cobra.Command{
		Use: "runs", Short: "List runs, newest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, s := range status {
				if !slices.Contains(ringi.Statuses(), ringi.Status(s)) {
					return usage(fmt.Sprintf("take one of %v", ringi.Statuses()), "%q is not a status", s)
				}
				q.Status = append(q.Status, ringi.Status(s))
			}
			return p.listRuns(cmd.Context(), q)
		},
	}
	q.Tenant = ringi.DefaultTenant
	f := cmd.Flags()
	f.StringSliceVar(&status, "status", nil, "only runs of these statuses")
	f.StringVar(&q.Definition, "definition", "", "only runs of this definition")
	f.StringVar(&q.Key, "key", "", "only the run with this start key")
	f.IntVar(&q.Limit, "limit", listLimit, "at most so many")
	f.StringVar(&q.After, "after", "", "go on after this cursor: next of the page before")
	return cmd
}

func (p *Program) listRuns(ctx context.Context, q ringi.RunQuery) error {
	svc, err := p.service()
	if err != nil {
		return err
	}
	out := struct {
		Runs []ringi.RunSummary `json:"runs"`
		Next string             `json:"next,omitempty"`
	}{Runs: []ringi.RunSummary{}}
	err = pages(q.Limit, func(limit int) (int, bool, error) {
		q.Limit = limit
		page, err := svc.List(ctx, q)
		out.Runs, out.Next, q.After = append(out.Runs, page.Runs...), page.Next, page.Next
		return len(page.Runs), page.Next != "", err
	})
	if err != nil {
		return err
	}
	t := table{head: []string{"RUN", "STATUS", "WAITING FOR", "DEFINITION", "KEY", "STARTED", "TITLE"}}
	for _, r := range out.Runs {
		t.row(string(r.Run), string(r.Status), r.WaitingFor, fmt.Sprintf("%s/%d", r.Definition, r.Version), short(r.Key, 40), moment(r.StartedAt), short(r.Title, 60))
	}
	if err := p.print(out, t); err != nil {
		return err
	}
	p.sayMore(out.Next)
	return nil
}

// pages calls get until it has so many entries, or there are no more. get is
// told how many it may ask for, and answers how many came and whether more exist.
func pages(limit int, get func(limit int) (n int, more bool, err error)) error {
	if limit < 1 {
		return usage("", "--limit is %d, which lists nothing", limit)
	}
	for limit > 0 {
		n, more, err := get(min(limit, largestPage))
		if e := refusalOf(err); e != nil && e.Code == ringi.CodeInvalid { // a cursor or filter that is none
			return usage(e.Hint, "%s", e.Message)
		}
		if err != nil || !more || n == 0 {
			return err
		}
		limit -= n
	}
	return nil
}

// sayMore tells a person that a list goes on.
func (p *Program) sayMore(next string) {
	if next != "" && !p.json() {
		p.say("there are more: --limit shows more at once, --after %s goes on", next)
	}
}

// runState is what show --json prints, and each line of --watch.
type runState struct {
	Run         ringi.RunID  `json:"run"`
	Status      ringi.Status `json:"status"`
	WaitingFor  string       `json:"waitingFor"`
	Steps       []stepState  `json:"steps"`
	EffectsLeft []string     `json:"effectsLeft"`

	Paused    *ringi.PauseState `json:"paused,omitempty"`
	Waits     []ringi.WaitView  `json:"waits,omitempty"`
	Incidents []ringi.Incident  `json:"incidents,omitempty"`
}

type stepState struct {
	ID       string `json:"id"`
	Outcome  string `json:"outcome"`
	Attempts int    `json:"attempts"`
}

func stateOf(v ringi.RunView) runState {
	s := runState{
		Run: v.Run, Status: v.Status, WaitingFor: v.WaitingFor, Steps: []stepState{}, EffectsLeft: []string{},
		Paused: v.Paused, Waits: v.Waits, Incidents: v.Incidents,
	}
	for _, st := range v.Steps {
		s.Steps = append(s.Steps, stepState{st.ID, st.Outcome, st.Attempts})
	}
	s.EffectsLeft = append(s.EffectsLeft, v.EffectsLeft...)
	return s
}

func (p *Program) showCommand() *cobra.Command {
	var watch bool
	cmd := &cobra.Command{
		Use: "show RUN", Short: "Show a run with its steps", Args: exactly("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			svc, err := p.service()
			if err != nil {
				return err
			}
			run, err := findRun(cmd.Context(), svc, args[0])
			if err != nil {
				return err
			}
			if watch {
				_, err := p.await(cmd.Context(), svc, run, 0, p.printChange)
				return err
			}
			view, err := svc.Run(cmd.Context(), ringi.DefaultTenant, run)
			if err != nil {
				return err
			}
			return p.printRun(view)
		},
	}
	cmd.Flags().BoolVar(&watch, "watch", false, "print each change until the run has ended")
	return cmd
}

// printRun prints a run for reading.
func (p *Program) printRun(v ringi.RunView) error {
	if p.json() {
		return p.printJSON(stateOf(v))
	}
	var t table
	t.row("run", string(v.Run))
	t.row("definition", fmt.Sprintf("%s version %d", v.Definition, v.Version))
	rows := [][2]string{
		{"title", v.Title},
		{"key", v.Key},
		{"requester", v.Requester},
		{"status", string(v.Status)},
		{"waiting for", v.WaitingFor},
		{"started", moment(v.StartedAt)},
		{"ended", moment(v.EndedAt)},
		{"repair of", string(v.RepairOf)},
		{"output", string(v.Output)},
		{"effects left", strings.Join(v.EffectsLeft, ", ")},
	}
	if v.Cause != nil {
		rows = append(rows, [2]string{"cause", causeText(v.Cause)})
	}
	if v.Paused != nil {
		rows = append(rows, [2]string{"paused", pauseText(*v.Paused)})
	}
	for _, wait := range v.Waits {
		rows = append(rows, [2]string{"waits at " + wait.Step, waitText(wait)})
	}
	for _, i := range v.Incidents {
		rows = append(rows, [2]string{"incident " + strconv.FormatInt(i.ID, 10), incidentText(i)})
	}
	for _, r := range rows {
		if r[1] != "" {
			t.row(r[0], r[1])
		}
	}
	if err := t.write(p.Stdout, p.colours()); err != nil || len(v.Steps) == 0 {
		return err
	}
	if _, err := fmt.Fprintln(p.Stdout); err != nil {
		return err
	}
	steps := table{head: []string{"STEP", "OUTCOME", "ATTEMPTS", "UNDO", "ERROR"}}
	for _, s := range v.Steps {
		steps.row(s.ID, s.Outcome, strconv.Itoa(s.Attempts), s.Undo, short(causeText(s.Error), 100))
	}
	return steps.write(p.Stdout, p.colours())
}

// pauseText says who holds a run, since when and why.
func pauseText(s ringi.PauseState) string {
	text := "by " + s.By + " since " + moment(s.At)
	if s.Reason != "" {
		text += ": " + s.Reason
	}
	return text
}

// waitText says what a step waits for, and how long at most.
func waitText(w ringi.WaitView) string {
	text := "for " + w.For
	if w.Event != "" {
		text += " " + w.Event
	}
	if w.Key != "" {
		text += " with the key " + w.Key
	}
	if len(w.Approvers) > 0 {
		text += " by " + strings.Join(w.Approvers, ", ")
	}
	if !w.Until.IsZero() {
		text += ", until " + moment(w.Until)
	}
	return text
}

func causeText(c *ringi.Cause) string {
	if c == nil {
		return ""
	}
	text := c.Code
	if c.Message != "" {
		text += ": " + c.Message
	}
	if c.Step != "" {
		text += " (at step " + c.Step + ")"
	}
	return text
}

// printChange prints a run that has changed while it is watched: one line.
func (p *Program) printChange(v ringi.RunView) error {
	if p.json() {
		return p.printJSON(stateOf(v))
	}
	var t table
	var steps []string
	for _, s := range v.Steps {
		text := s.ID + " " + s.Outcome
		if s.Undo != "" {
			text += " (undo " + s.Undo + ")"
		}
		steps = append(steps, text)
	}
	status := string(v.Status)
	if v.WaitingFor != "" {
		status += " for " + v.WaitingFor
	}
	t.row(moment(p.Now()), status, strings.Join(steps, ", "))
	return t.write(p.Stdout, p.colours())
}

// await looks at a run until it has ended. Each change is shown. A server that
// is away for a moment is waited for. timeout 0 waits for ever.
func (p *Program) await(ctx context.Context, svc ringi.Service, run ringi.RunID, timeout time.Duration, show func(ringi.RunView) error) (ringi.RunView, error) {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, timeout, errWaited)
		defer cancel()
	}
	var last ringi.RunView
	var away time.Time
	pause := watchFirst
	for {
		view, err := svc.Run(ctx, ringi.DefaultTenant, run)
		switch {
		case ctx.Err() != nil:
			return last, waited(ctx, last, timeout)
		case ringi.ErrorCode(err) == ringi.CodeUnavailable && (away.IsZero() || p.Now().Sub(away) < awayMost):
			if away.IsZero() {
				away = p.Now()
				p.say("the server cannot be reached; waiting for it")
			}
		case err != nil:
			return last, err
		default:
			away = time.Time{}
			if view.Seq != last.Seq || view.WaitingFor != last.WaitingFor {
				pause = watchFirst
				if err := show(view); err != nil {
					return view, err
				}
			}
			if last = view; view.Status.Final() {
				return view, nil
			}
		}
		select {
		case <-ctx.Done():
			return last, waited(ctx, last, timeout)
		case <-time.After(pause):
		}
		pause = min(2*pause, watchMost)
	}
}

// errWaited is the cause of a wait that took too long.
var errWaited = errors.New("waited too long")

func waited(ctx context.Context, last ringi.RunView, timeout time.Duration) error {
	if cause := context.Cause(ctx); !errors.Is(cause, errWaited) {
		return cause
	}
	text := fmt.Sprintf("the run did not end within %v", timeout)
	if last.Status != "" {
		text += fmt.Sprintf(": it is %s", last.Status)
	}
	if last.WaitingFor != "" {
		text += " for " + last.WaitingFor
	}
	return &ending{code: exitWaited, message: text, hint: "ringi show " + string(last.Run)}
}

// notCompleted is the error of an awaited run that ended otherwise.
func notCompleted(v ringi.RunView) error {
	if v.Status == ringi.Completed {
		return nil
	}
	text := fmt.Sprintf("the run ended as %s", v.Status)
	if v.Cause != nil {
		text += ": " + causeText(v.Cause)
	}
	return &ending{code: exitNotCompleted, message: text, hint: "ringi show " + string(v.Run)}
}

// exactly takes as many arguments as there are names.
func exactly(names ...string) cobra.PositionalArgs { return between(len(names), names...) }

// between takes the arguments of these names, of which the first so many are needed.
func between(needed int, names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < needed:
			return usage("as in: "+cmd.UseLine(), "%s is missing", names[len(args)])
		case len(args) > len(names):
			return usage("as in: "+cmd.UseLine(), "%q is one argument too many", args[len(names)])
		}
		return nil
	}
}

// atLeastOne takes one or more arguments of this name.
func atLeastOne(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usage("as in: "+cmd.UseLine(), "%s is missing", name)
		}
		return nil
	}
}
