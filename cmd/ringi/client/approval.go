package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/cmd/ringi/cli"
)

func (p program) approvalsCommand() *cobra.Command {
	var run string
	var mine bool
	q := ringi.ApprovalQuery{Tenant: ringi.DefaultTenant}
	cmd := &cobra.Command{
		Use: "approvals", Short: "List open approvals, oldest first", Args: cobra.NoArgs,
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
			if mine {
				q.For = &ringi.Actor{} // the server knows whose key it is
			}
			return p.listApprovals(cmd.Context(), svc, q)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&mine, "mine", false, "only those that the key's holder may vote on now")
	f.StringVar(&run, "run", "", "only of this run")
	f.IntVar(&q.Limit, "limit", listLimit, "at most so many")
	f.StringVar(&q.After, "after", "", "go on after this cursor: next of the page before")
	return cmd
}

func (p program) listApprovals(ctx context.Context, svc ringi.Service, q ringi.ApprovalQuery) error {
	out := struct {
		Approvals []ringi.ApprovalView `json:"approvals"`
		Next      string               `json:"next,omitempty"`
	}{Approvals: []ringi.ApprovalView{}}
	err := pages(q.Limit, func(limit int) (int, bool, error) {
		q.Limit = limit
		page, err := svc.List(ctx, q)
		out.Approvals, out.Next, q.After = append(out.Approvals, page.Approvals...), page.Next, page.Next
		return len(page.Approvals), page.Next != "", err
	})
	if err != nil {
		return err
	}
	t := cli.Table{Head: []string{"RUN", "STEP", "TITLE", "REQUESTER", "VOTES", "EXPIRES"}}
	for _, a := range out.Approvals {
		t.Row(string(a.Run), a.Step, cli.Short(a.Title, 60), a.Requester, standingOf(a.Approval), cli.Moment(a.ExpiresAt))
	}
	if err := p.Print(out, t); err != nil {
		return err
	}
	p.sayMore(out.Next)
	return nil
}

// standingOf says how far each lane has come.
func standingOf(a ringi.Approval) string {
	votes := make([]int, len(a.Lanes))
	for _, v := range a.Votes {
		for _, lane := range v.Lanes {
			if v.Approve && lane >= 0 && lane < len(votes) {
				votes[lane]++
			}
		}
	}
	parts := make([]string, len(a.Lanes))
	for i, l := range a.Lanes {
		parts[i] = fmt.Sprintf("%s %d of %d", l.Name, votes[i], l.Quorum)
	}
	return strings.Join(parts, ", ")
}

func (p program) approveCommand() *cobra.Command {
	return p.voteCommand("approve", "Vote for what an approval asks", true)
}

func (p program) rejectCommand() *cobra.Command {
	return p.voteCommand("reject", "Vote against what an approval asks", false)
}

type voteFlags struct {
	vote ringi.DecideApproval
	yes  bool
}

func (p program) voteCommand(verb, about string, approve bool) *cobra.Command {
	f := voteFlags{vote: ringi.DecideApproval{Approve: approve}}
	cmd := &cobra.Command{
		Use: verb + " RUN [STEP]", Short: about, Args: cli.Between(1, "RUN", "STEP"),
		Long: about + `. A vote names the digest of what its voter saw: --digest names one that
was seen elsewhere; without it the approval is shown and the vote is for what
was shown, after a question or with --yes. STEP may be left out when the run has
only one open approval.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.vote.Digest == "" && !f.yes && !p.Terminal.In {
				return cli.Usage("--digest DIGEST votes on what you saw, --yes on what is shown", "nobody is here to answer a question")
			}
			return p.vote(cmd.Context(), args, f)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&f.vote.Digest, "digest", "", "digest of the subject that you saw")
	fs.StringVar(&f.vote.Comment, "comment", "", "a word to the others; kept with the vote")
	if !approve {
		fs.StringVar(&f.vote.Comment, "reason", "", "the same as --comment")
	}
	fs.BoolVarP(&f.yes, "yes", "y", false, "vote on what is shown without a question")
	return cmd
}

func (p program) vote(ctx context.Context, args []string, f voteFlags) error {
	svc, err := p.Service()
	if err != nil {
		return err
	}
	run, err := findRun(ctx, svc, args[0])
	if err != nil {
		return err
	}
	if len(args) > 1 {
		f.vote.Step = args[1]
	}
	if f.vote.Digest == "" || f.vote.Step == "" {
		if f.vote, err = p.choose(ctx, svc, run, f); err != nil {
			return err
		}
	}
	res, err := do(ctx, svc, run, f.vote)
	if err != nil {
		return err
	}
	out := struct {
		Run     ringi.RunID         `json:"run"`
		Step    string              `json:"step"`
		Outcome ringi.AnswerOutcome `json:"outcome"`
		Status  ringi.Status        `json:"status"`
	}{run, f.vote.Step, res.Answer.Outcome, res.Status}
	var t cli.Table
	t.Row(string(run), f.vote.Step, "vote "+string(res.Answer.Outcome), "run "+string(res.Status))
	return p.Print(out, t)
}

// choose completes a vote with the approval that it is about. One that is closed
// already gets the vote as well: the server says who decided, and whether this
// person had voted so.
func (p program) choose(ctx context.Context, svc ringi.Service, run ringi.RunID, f voteFlags) (ringi.DecideApproval, error) {
	vote := f.vote
	a, err := awaitApproval(ctx, svc, run, vote.Step)
	if ringi.ErrorCode(err) == ringi.CodeNotFound {
		closed, cerr := closedApproval(ctx, svc, run, vote.Step)
		if cerr != nil || closed.Step == "" {
			return vote, errors.Join(cerr, err)
		}
		vote.Step = closed.Step
		if vote.Digest == "" {
			vote.Digest = closed.Approval.Digest
		}
		return vote, nil
	}
	if err != nil {
		return vote, err
	}
	vote.Step = a.Step
	if vote.Digest != "" {
		return vote, nil
	}
	p.sayApproval(a)
	if !f.yes && !p.asked(ctx, vote.Approve) {
		return vote, &cli.Ending{Code: cli.ExitFailed, Message: "no vote was sent"}
	}
	vote.Digest = a.Digest
	return vote, nil
}

// closedApproval is the approval that the run asked last, at a step if one is
// named; its Step is empty if there was none.
func closedApproval(ctx context.Context, svc ringi.Service, run ringi.RunID, step string) (last ringi.ApprovalOpened, err error) {
	q := ringi.HistoryQuery{Tenant: ringi.DefaultTenant, Run: run}
	_, err = eachEvent(ctx, svc, q, func(e ringi.HistoryEvent) error {
		if e.Kind != ringi.KindOf(ringi.ApprovalOpened{}) {
			return nil
		}
		var opened ringi.ApprovalOpened
		if err := json.Unmarshal(e.Data, &opened); err != nil {
			return fmt.Errorf("event %d of run %s: %w", e.Seq, run, err)
		}
		if step == "" || opened.Step == step {
			last = opened
		}
		return nil
	})
	return last, err
}

// approvalWait is how long a vote waits for an approval of a run that is still
// on its way there: who types the command that a start suggests is quick.
const approvalWait = 3 * time.Second

// awaitApproval is openApproval, a little later if the run is still running.
func awaitApproval(ctx context.Context, svc ringi.Service, run ringi.RunID, step string) (ringi.ApprovalView, error) {
	limit := time.After(approvalWait)
	for {
		a, err := openApproval(ctx, svc, run, step)
		if ringi.ErrorCode(err) != ringi.CodeNotFound {
			return a, err
		}
		view, verr := svc.Run(ctx, ringi.DefaultTenant, run)
		if verr != nil || view.Status != ringi.Running && view.WaitingFor != "approval" { // it may have opened just now
			return a, err
		}
		select {
		case <-ctx.Done():
			return a, context.Cause(ctx)
		case <-limit:
			return a, err
		case <-time.After(watchFirst):
		}
	}
}

// openApproval is the open approval of a run at a step, or its only one.
func openApproval(ctx context.Context, svc ringi.Service, run ringi.RunID, step string) (ringi.ApprovalView, error) {
	page, err := svc.List(ctx, ringi.ApprovalQuery{Tenant: ringi.DefaultTenant, Run: run})
	if err != nil {
		return ringi.ApprovalView{}, err
	}
	var open []string
	var found []ringi.ApprovalView
	for _, a := range page.Approvals {
		open = append(open, a.Step)
		if step == "" || a.Step == step {
			found = append(found, a)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return ringi.ApprovalView{}, cli.Usage("name the step: "+strings.Join(open, ", "), "the run has %d open approvals", len(found))
	}
	if _, err := svc.Run(ctx, ringi.DefaultTenant, run); err != nil {
		return ringi.ApprovalView{}, err
	}
	e := &ringi.Error{Code: ringi.CodeNotFound, Message: fmt.Sprintf("run %s has no open approval", run), Hint: "ringi show " + string(run)}
	if step != "" {
		e.Message = fmt.Sprintf("step %s of run %s has no open approval", step, run)
	}
	return ringi.ApprovalView{}, e
}

// sayApproval shows what a vote will be about: what was frozen, not what
// somebody made of it.
func (p program) sayApproval(a ringi.ApprovalView) {
	p.Say("%s", cli.Plain(a.Title))
	rows := [][2]string{
		{"asked by", a.Requester},
		{"summary", a.Summary},
		{"risk", a.Risk},
		{"subject", compact(a.Subject)},
		{"consequence", a.Consequence},
		{"votes", standingOf(a.Approval)},
		{"expires", cli.Moment(a.ExpiresAt)},
		{"digest", a.Digest},
	}
	for _, s := range a.Show {
		value := s.Value
		if value == nil {
			value = s.Table
		}
		rows = append(rows, [2]string{s.Label, compact(value)})
	}
	for _, v := range a.Votes {
		word := "against"
		if v.Approve {
			word = "for"
		}
		rows = append(rows, [2]string{v.Person, strings.TrimSpace(word + " " + v.Comment)})
	}
	for _, r := range rows {
		if r[1] != "" {
			p.Say("  %-12s %s", cli.Plain(r[0]), cli.Plain(r[1]))
		}
	}
}

// compact is JSON on one line.
func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return string(raw)
	}
	return b.String()
}

// asked asks the person at the terminal whether the vote is meant.
func (p program) asked(ctx context.Context, approve bool) bool {
	word := "Reject"
	if approve {
		word = "Approve"
	}
	fmt.Fprintf(p.Stderr, "%s? Write yes: ", word)
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(p.Stdin).ReadString('\n') // no line is no yes
		answer <- line
	}()
	select {
	case <-ctx.Done():
		return false
	case line := <-answer:
		switch strings.ToLower(strings.TrimSpace(line)) {
		case "y", "yes":
			return true
		}
		return false
	}
}
