package work

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/cmd/ringi/cli"
)

// A QueueState is a queue as queue list prints it.
type QueueState struct {
	ringi.QueueView
	Capacity int    `json:"capacity"`       // workers that take its tasks
	Note     string `json:"note,omitempty"` // what is wrong with it
}

// A WorkerState is a worker in one queue as worker list prints it.
type WorkerState struct {
	Queue string `json:"queue"` // "" when it has polled none
	ringi.WorkerView
	Note string `json:"note,omitempty"` // what is wrong with it
}

func (p program) listQueuesCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List queues with their tasks and who takes them", Args: cobra.NoArgs,
		Long: `Lists the queues that hold tasks or are polled: tasks that wait (READY) and are
with a worker (LEASED), the age of the oldest that waits, the workers that take
tasks, and the last poll. A queue whose tasks nobody takes is named, and so is a
worker that sends heartbeats but asks for no tasks: it is no capacity.

Workers are those that a server on this database has seen in the last minute.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.listQueues(cmd.Context()) },
	}
}

func (p program) listWorkersCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the workers that were seen in the last minute", Args: cobra.NoArgs,
		Long: `Lists the workers that a server on this database has seen in the last minute, by
queue: a worker that serves two has two lines. One that sends heartbeats but has not asked
for tasks lately is no capacity.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.listWorkers(cmd.Context()) },
	}
}

// queues asks the server.
func (p program) queues(ctx context.Context) ([]ringi.QueueView, error) {
	svc, err := p.Service()
	if err != nil {
		return nil, err
	}
	page, err := svc.List(ctx, ringi.WorkerQuery{Tenant: ringi.DefaultTenant})
	return page.Queues, err
}

func (p program) listQueues(ctx context.Context) error {
	queues, err := p.queues(ctx)
	if err != nil {
		return err
	}
	out := struct {
		Queues []QueueState `json:"queues"`
	}{Queues: []QueueState{}}
	t := cli.Table{Head: []string{"QUEUE", "READY", "LEASED", "OLDEST", "WORKERS", "LAST POLL", "NOTE"}}
	for _, v := range queues {
		if v.Queue == "" { // workers without a queue; worker list shows them
			continue
		}
		s := stateOf(v)
		out.Queues = append(out.Queues, s)
		oldest := ""
		if v.Ready > 0 {
			oldest = (time.Duration(v.OldestMS) * time.Millisecond).Round(time.Second).String()
		}
		t.Row(v.Queue, strconv.Itoa(v.Ready), strconv.Itoa(v.Leased), oldest, strconv.Itoa(s.Capacity), moment(lastPoll(v)), s.Note)
	}
	return p.Print(out, t)
}

// stateOf counts who takes the tasks of a queue, and says what is wrong.
func stateOf(v ringi.QueueView) QueueState {
	s := QueueState{QueueView: v}
	for _, w := range v.Workers {
		if w.Capacity {
			s.Capacity++
		}
	}
	switch {
	case s.Capacity == 0 && v.Ready > 0 && len(v.Workers) > 0:
		s.Note = "nobody takes its tasks: its workers send heartbeats but do not ask for any"
	case s.Capacity == 0 && v.Ready > 0:
		s.Note = "nobody takes its tasks: no worker polls it"
	case s.Capacity == 0 && len(v.Workers) > 0:
		s.Note = "its workers send heartbeats but do not ask for tasks"
	case v.Lapsed > 0:
		s.Note = cli.Counted(v.Lapsed, "task") + " handed out again and again, and no worker says that it came"
	}
	return s
}

func lastPoll(v ringi.QueueView) (last time.Time) {
	for _, w := range v.Workers {
		if w.LastPoll.After(last) {
			last = w.LastPoll
		}
	}
	return last
}

func moment(at time.Time) string {
	if at.IsZero() {
		return "never"
	}
	return cli.Moment(at)
}

func (p program) listWorkers(ctx context.Context) error {
	queues, err := p.queues(ctx)
	if err != nil {
		return err
	}
	out := struct {
		Workers []WorkerState `json:"workers"`
	}{Workers: []WorkerState{}}
	for _, q := range queues {
		for _, w := range q.Workers {
			s := WorkerState{Queue: q.Queue, WorkerView: w}
			if !w.Capacity {
				s.Note = "it sends heartbeats but does not ask for tasks"
			}
			out.Workers = append(out.Workers, s)
		}
	}
	slices.SortFunc(out.Workers, func(a, b WorkerState) int {
		return cmp.Or(cmp.Compare(a.Worker, b.Worker), cmp.Compare(a.Queue, b.Queue))
	})
	t := cli.Table{Head: []string{"WORKER", "QUEUE", "CAPACITY", "LAST POLL", "LAST SEEN", "NOTE"}}
	for _, s := range out.Workers {
		t.Row(s.Worker, cmp.Or(s.Queue, "-"), fmt.Sprint(s.Capacity), moment(s.LastPoll), moment(s.LastSeen), s.Note)
	}
	return p.Print(out, t)
}
