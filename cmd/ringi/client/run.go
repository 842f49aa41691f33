package client

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
	"github.com/ringiflow/ringi/cmd/ringi/cli"
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

func (p program) runsCommand() *cobra.Command {
	var q ringi.RunQuery
	var status []string
	cmd := &cobra.Command{
		Use: "runs", Short: "List runs, newest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, s := range status {
				if !slices.Contains(ringi.Statuses(), ringi.Status(s)) {
					return cli.Usage(fmt.Sprintf("take one of %v", ringi.Statuses()), "%q is not a status", s)
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

func (p program) listRuns(ctx context.Context, q ringi.RunQuery) error {
	svc, err := p.Service()
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
	t := cli.Table{Head: []string{"RUN", "STATUS", "WAITING FOR", "DEFINITION", "KEY", "STARTED", "TITLE"}}
	for _, r := range out.Runs {
		t.Row(string(r.Run), string(r.Status), r.WaitingFor, fmt.Sprintf("%s/%d", r.Definition, r.Version), cli.Short(r.Key, 40), cli.Moment(r.StartedAt), cli.Short(r.Title, 60))
	}
	if err := p.Print(out, t); err != nil {
		return err
	}
	p.sayMore(out.Next)
	return nil
}

// pages calls get until it has so many entries, or there are no more. get is
// told how many it may ask for, and answers how many came and whether more exist.
func pages(limit int, get func(limit int) (n int, more bool, err error)) error {
	if limit < 1 {
		return cli.Usage("", "--limit is %d, which lists nothing", limit)
	}
	for limit > 0 {
		n, more, err := get(min(limit, largestPage))
		if e := cli.RefusalOf(err); e != nil && e.Code == ringi.CodeInvalid { // a cursor or filter that is none
			return cli.Usage(e.Hint, "%s", e.Message)
		}
		if err != nil || !more || n == 0 {
			return err
		}
		limit -= n
	}
	return nil
}

// sayMore tells a person that a list goes on.
func (p program) sayMore(next string) {
	if next != "" && !p.JSON() {
		p.Say("there are more: --limit shows more at once, --after %s goes on", next)
	}
}

// RunState is what show --json prints, and each line of --watch.
type RunState struct {
	Run         ringi.RunID  `json:"run"`
	Status      ringi.Status `json:"status"`
	WaitingFor  string       `json:"waitingFor"`
	Steps       []StepState  `json:"steps"`
	EffectsLeft []string     `json:"effectsLeft"`

	Paused    *ringi.PauseState `json:"paused,omitempty"`
	Waits     []ringi.WaitView  `json:"waits,omitempty"`
	Incidents []ringi.Incident  `json:"incidents,omitempty"`
}

// StepState is a step of a RunState.
type StepState struct {
	ID       string `json:"id"`
	Outcome  string `json:"outcome"`
	Attempts int    `json:"attempts"`
}

func stateOf(v ringi.RunView) RunState {
	s := RunState{
		Run: v.Run, Status: v.Status, WaitingFor: v.WaitingFor, Steps: []StepState{}, EffectsLeft: []string{},
		Paused: v.Paused, Waits: v.Waits, Incidents: v.Incidents,
	}
	for _, st := range v.Steps {
		s.Steps = append(s.Steps, StepState{st.ID, st.Outcome, st.Attempts})
	}
	s.EffectsLeft = append(s.EffectsLeft, v.EffectsLeft...)
	return s
}

func (p program) showCommand() *cobra.Command {
	var watch bool
	cmd := &cobra.Command{
		Use: "show RUN", Short: "Show a run with its steps", Args: cli.Exactly("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			svc, err := p.Service()
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
func (p program) printRun(v ringi.RunView) error {
	if p.JSON() {
		return p.PrintJSON(stateOf(v))
	}
	var t cli.Table
	t.Row("run", string(v.Run))
	t.Row("definition", fmt.Sprintf("%s version %d", v.Definition, v.Version))
	rows := [][2]string{
		{"title", v.Title},
		{"key", v.Key},
		{"requester", v.Requester},
		{"status", string(v.Status)},
		{"waiting for", v.WaitingFor},
		{"started", cli.Moment(v.StartedAt)},
		{"ended", cli.Moment(v.EndedAt)},
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
			t.Row(r[0], r[1])
		}
	}
	if err := t.Write(p.Stdout, p.Colours()); err != nil || len(v.Steps) == 0 {
		return err
	}
	if _, err := fmt.Fprintln(p.Stdout); err != nil {
		return err
	}
	steps := cli.Table{Head: []string{"STEP", "OUTCOME", "ATTEMPTS", "UNDO", "ERROR"}}
	for _, s := range v.Steps {
		steps.Row(s.ID, s.Outcome, strconv.Itoa(s.Attempts), s.Undo, cli.Short(causeText(s.Error), 100))
	}
	return steps.Write(p.Stdout, p.Colours())
}

// pauseText says who holds a run, since when and why.
func pauseText(s ringi.PauseState) string {
	text := "by " + s.By + " since " + cli.Moment(s.At)
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
		text += ", until " + cli.Moment(w.Until)
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
func (p program) printChange(v ringi.RunView) error {
	if p.JSON() {
		return p.PrintJSON(stateOf(v))
	}
	var t cli.Table
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
	t.Row(cli.Moment(p.Now()), status, strings.Join(steps, ", "))
	return t.Write(p.Stdout, p.Colours())
}

// await looks at a run until it has ended. Each change is shown. A server that
// is away for a moment is waited for. timeout 0 waits for ever; a shorter one than
// the first look takes ends with that look, so that there is something to tell.
func (p program) await(ctx context.Context, svc ringi.Service, run ringi.RunID, timeout time.Duration, show func(ringi.RunView) error) (ringi.RunView, error) {
	first := ctx
	if timeout > 0 {
		var cancel, cancelFirst context.CancelFunc
		first, cancelFirst = context.WithTimeoutCause(ctx, max(timeout, firstLook), errWaited)
		defer cancelFirst()
		ctx, cancel = context.WithTimeoutCause(ctx, timeout, errWaited)
		defer cancel()
	}
	var last ringi.RunView
	var away time.Time
	pause := watchFirst
	for {
		look := ctx
		if last.Seq == 0 {
			look = first
		}
		view, err := svc.Run(look, ringi.DefaultTenant, run)
		switch {
		case first.Err() != nil, last.Seq != 0 && ctx.Err() != nil:
			return last, waited(ctx, run, last, timeout)
		case ringi.ErrorCode(err) == ringi.CodeUnavailable && (away.IsZero() || p.Now().Sub(away) < awayMost):
			if away.IsZero() {
				away = p.Now()
				p.Say("the server cannot be reached; waiting for it")
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
			return last, waited(ctx, run, last, timeout)
		case <-time.After(pause):
		}
		pause = min(2*pause, watchMost)
	}
}

// firstLook is how long the first look may take, however short the wait: that of
// a server which is there and busy.
const firstLook = 10 * time.Second

// errWaited is the cause of a wait that took too long.
var errWaited = errors.New("waited too long")

func waited(ctx context.Context, run ringi.RunID, last ringi.RunView, timeout time.Duration) error {
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
	return &cli.Ending{Code: cli.ExitWaited, Message: text, Hint: "ringi show " + string(run)}
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
	return &cli.Ending{Code: cli.ExitNotCompleted, Message: text, Hint: "ringi show " + string(v.Run)}
}
