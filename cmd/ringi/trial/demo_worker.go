package trial

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/examples/order"
	"github.com/ringiflow/ringi/worker"
)

const (
	// demoSlots is how many calls the worker makes at once: more than the demo
	// ever needs, also when everything comes at once after a server is back.
	demoSlots = 32
	// demoDrain is how long the worker's calls may take to end when it stops;
	// the longest is an attempt of three seconds.
	demoDrain = 8 * time.Second
)

// demoWorkerCommand is the worker of the demo as a process of its own.
func (p program) demoWorkerCommand() *cobra.Command {
	var services order.Activities
	var call time.Duration
	var seed uint64
	cmd := &cobra.Command{
		Use:    "worker",
		Short:  "The worker of the demo; the demo starts it",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p.Drain()
			client, err := p.Service()
			if err != nil {
				return err
			}
			services.Client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: demoSlots}}
			w, err := worker.New(worker.Config{
				Service: client, Name: fmt.Sprintf("demo-%d", os.Getpid()), Drain: demoDrain,
				Queues:  []worker.Queue{{Slots: demoSlots, Activities: demoActivities(&services, demoDistance{call, seed})}},
				Trouble: func(err error) { p.Say("%s %v", p.Now().UTC().Format(time.RFC3339Nano), err) },
			})
			if err != nil {
				return err
			}
			return w.Run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVar(&services.Stock, order.Stock, "", "URL of the stock service")
	f.StringVar(&services.Payment, order.Payment, "", "URL of the payment service")
	f.StringVar(&services.Shipping, order.Shipping, "", "URL of the shipping service")
	f.StringVar(&services.Mail, order.Mail, "", "URL of the mail service")
	f.DurationVar(&call, "call", 0, "how long a call takes on average, as over a real network")
	f.Uint64Var(&seed, "seed", 0, "from which the length of each call is drawn")
	return cmd
}

// demoActivities are the activities of the order process, for a worker.
func demoActivities(a *order.Activities, d demoDistance) []worker.Activity {
	return []worker.Activity{
		demoActivity(order.InventoryReserve, d, a.Reserve),
		demoActivity(order.InventoryRelease, d, a.Release),
		demoActivity(order.PaymentCharge, d, a.Charge),
		demoActivity(order.PaymentFind, d, a.Find),
		demoActivity(order.PaymentRefund, d, a.Refund),
		demoActivity(order.ShippingBook, d, a.Book),
		demoActivity(order.ShippingCancel, d, a.Cancel),
		demoActivity(order.ShippingLabel, d, a.Label),
		demoActivity(order.MailSend, d, a.Send),
	}
}

// demoActivity makes an activity of one call of a service.
func demoActivity[In, Out any](name string, d demoDistance, call func(context.Context, string, In) (Out, error)) worker.Activity {
	return worker.Func(name, func(ctx context.Context, in In) (Out, error) {
		task := worker.Task(ctx)
		there, back := d.of(task)
		if err := demoPause(ctx, there); err != nil {
			var none Out
			return none, &worker.Failure{
				Code: worker.CodeTimedOut, Message: "the call was not made: " + err.Error(), Retryable: true, Applied: ringi.AppliedNo,
			}
		}
		out, err := call(ctx, task.Key, in)
		_ = demoPause(ctx, back) // an answer that is here is told, however long it took
		return out, demoFailure(err)
	})
}

// demoFailure says what a failed call proves in the worker's words.
func demoFailure(err error) error {
	var f *order.Failure
	if !errors.As(err, &f) {
		return err
	}
	return &worker.Failure{Code: f.Code, Message: f.Message, Retryable: f.Retryable, Applied: ringi.Applied(f.Applied)}
}

// A demoDistance makes the services as far away as real ones are: on loopback a
// call takes a fraction of a millisecond, and no kill would ever meet one.
type demoDistance struct {
	mean time.Duration // of a call, there and back; 0 is no distance
	seed uint64
}

// of returns how long the call of a task is under way, and its answer: together
// half to three halves of the mean, the same for the same attempt and seed. Most
// of it is the answer's: to die with the effect made and the answer on its way
// is what a worker has to be forgiven.
func (d demoDistance) of(task ringi.Task) (there, back time.Duration) {
	if d.mean <= 0 {
		return 0, 0
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "%d/%s/%s/%d", d.seed, task.Key, task.Activity, task.Attempt)
	whole := d.mean/2 + time.Duration(float64(d.mean)*float64(h.Sum64()&0xffff)/0xffff)
	there = whole / 5
	return there, whole - there
}

// demoPause waits for d or the end of the context, which is an error.
func demoPause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
