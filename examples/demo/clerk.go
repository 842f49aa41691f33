package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/examples/order"
)

const (
	// lookEvery is how often the demo looks whether a run has moved on.
	lookEvery = 200 * time.Millisecond
	// askAgain is the pause before a request that the server did not answer is
	// made again: a server that was killed is back within about a second.
	askAgain = 100 * time.Millisecond
)

// A clerk takes orders through their process as a shop and its people
// would: it starts runs, votes with each person's own key, and cancels. It
// repeats its requests for as long as the server is away, and every one of them
// is of a kind that may be repeated. It is safe for concurrent use.
type clerk struct {
	shop   ringi.Service            // with a machine's key
	people map[string]ringi.Service // each with the person's own key
}

// play takes one order from its start to the end of its run.
func (c *clerk) play(ctx context.Context, line order.Line) (order.Run, trail, error) {
	id := line.Order.OrderID
	run, err := c.begin(ctx, line)
	if err != nil {
		return order.Run{}, trail{}, fmt.Errorf("start order %s: %w", id, err)
	}
	if err := c.decide(ctx, run, line); err != nil {
		return order.Run{}, trail{}, fmt.Errorf("decide about order %s, run %s: %w", id, run, err)
	}
	status, err := c.end(ctx, run)
	if err != nil {
		return order.Run{}, trail{}, fmt.Errorf("wait for order %s, run %s: %w", id, run, err)
	}
	events, err := historyOf(ctx, c.shop, run)
	if err != nil {
		return order.Run{}, trail{}, err
	}
	tally, err := trailOf(events)
	if err != nil {
		return order.Run{}, trail{}, fmt.Errorf("read the history of run %s: %w", run, err)
	}
	return order.Run{OrderID: id, Run: string(run), Status: string(status), Unknown: tally.unknown}, tally, nil
}

// begin starts the run. The order's id is the start key: a start whose answer
// was lost starts nothing when it is repeated.
func (c *clerk) begin(ctx context.Context, line order.Line) (ringi.RunID, error) {
	result, err := c.do(ctx, c.shop, "", ringi.Start{
		Definition: order.DefinitionName, Key: line.Order.OrderID, Input: line.Input,
	})
	return result.Run, err
}

// decide lets people do what the line says, once the run asks for it.
func (c *clerk) decide(ctx context.Context, run ringi.RunID, line order.Line) error {
	if len(line.People) == 0 && !line.CancelAtApproval() {
		return nil
	}
	digest, asked, err := c.question(ctx, run)
	if err != nil || !asked {
		return err // it ended before it asked; the books will tell whether that was right
	}
	if line.CancelAtApproval() {
		_, err := c.do(ctx, c.shop, run, ringi.Cancel{Reason: "the customer changed their mind"})
		return err
	}
	for _, vote := range line.People {
		person := c.people[vote.Who]
		if person == nil {
			return fmt.Errorf("nobody is called %q; the demo has keys of alice and bob", vote.Who)
		}
		_, err := c.do(ctx, person, run, ringi.DecideApproval{
			Step: order.ApprovalStep, Approve: vote.Vote == "approve", Digest: digest,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// question waits until the run asks for an approval and returns the digest of
// its subject. It reports false if the run ended without asking.
func (c *clerk) question(ctx context.Context, run ringi.RunID) (digest string, asked bool, err error) {
	for {
		page, err := insist(ctx, func() (ringi.Page, error) {
			return c.shop.List(ctx, ringi.ApprovalQuery{Tenant: ringi.DefaultTenant, Run: run})
		})
		if err != nil {
			return "", false, err
		}
		for _, a := range page.Approvals {
			if a.Run == run && a.Step == order.ApprovalStep {
				return a.Digest, true, nil
			}
		}
		view, err := c.view(ctx, run)
		if err != nil || view.Status.Final() {
			return "", false, err
		}
		if err := pause(ctx, lookEvery); err != nil {
			return "", false, err
		}
	}
}

// end waits until the run has ended and returns its status.
func (c *clerk) end(ctx context.Context, run ringi.RunID) (ringi.Status, error) {
	for {
		view, err := c.view(ctx, run)
		if err != nil || view.Status.Final() {
			return view.Status, err
		}
		if err := pause(ctx, lookEvery); err != nil {
			return "", fmt.Errorf("it is %s%s: %w", view.Status, troubleOf(view), err)
		}
	}
}

// troubleOf says what a run that has not ended waits for.
func troubleOf(view ringi.RunView) string {
	text := ""
	if view.WaitingFor != "" {
		text += ", waiting for " + view.WaitingFor
	}
	for _, i := range view.Incidents {
		text += fmt.Sprintf(", incident %s in step %s (%s)", i.Kind, i.Step, i.Message)
	}
	return text
}

func (c *clerk) view(ctx context.Context, run ringi.RunID) (ringi.RunView, error) {
	return insist(ctx, func() (ringi.RunView, error) { return c.shop.Run(ctx, ringi.DefaultTenant, run) })
}

// do sends one command until it is answered. That a repeat finds the matter
// settled is an answer too: the vote or the cancelling before it arrived, and
// only its answer was lost.
func (c *clerk) do(ctx context.Context, as ringi.Service, run ringi.RunID, action ringi.Action) (ringi.Result, error) {
	tries := 0
	return insist(ctx, func() (ringi.Result, error) {
		tries++
		results := as.Do(ctx, ringi.Command{Tenant: ringi.DefaultTenant, Run: run, Do: action})
		if len(results) != 1 {
			return ringi.Result{}, fmt.Errorf("%d results for one command", len(results))
		}
		switch code := ringi.ErrorCode(results[0].Err); {
		case tries > 1 && (code == ringi.CodeAlreadyDecided || code == ringi.CodeFinal):
			return results[0], nil
		default:
			return results[0], results[0].Err
		}
	})
}

// insist makes a request again and again while the server cannot be
// reached, until the context ends.
func insist[T any](ctx context.Context, ask func() (T, error)) (T, error) {
	for {
		answer, err := ask()
		if ringi.ErrorCode(err) != ringi.CodeUnavailable {
			return answer, err
		}
		if pause := pause(ctx, askAgain); pause != nil {
			return answer, err // what the server said, or did not, tells more than the end of the time
		}
	}
}

// pause waits for d or the end of the context, which is an error.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
