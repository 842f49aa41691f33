package prove

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/cmd/ringi/cli"
	"github.com/ringiflow/ringi/cmd/ringi/client"
	"github.com/ringiflow/ringi/cmd/ringi/server"
	"github.com/ringiflow/ringi/engine/replay"
	"github.com/ringiflow/ringi/store"
)

// progressEvery is how often long work says how far it is.
const progressEvery = 2 * time.Second

func (p program) replayCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "replay [RUN]", Short: "Fold logs again and compare everything that stands beside them", Args: cli.Between(0, "RUN"),
		Long: `Folds the log of a run, or with --all of every run, from its first event and
compares what the database keeps beside it: snapshot, list row, tasks, timers,
waits, approvals, incidents and the chain of hashes. With --all it also finds
rows of runs that do not exist and definitions that are not what their digest
says. What cannot be read is named like everything else. It reads the database
itself, also while servers run on it, and changes nothing. Exits with 1
if something does not follow from the events.

It cannot see that the last events of a run are gone when they changed nothing
beside the log and no audit record names them: keep copies of what must not be
lost. Nor does it look at sent events, messages and the audit trail.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if all == (len(args) == 1) {
				return cli.Usage("ringi replay RUN, or ringi replay --all", "name one run, or say --all")
			}
			return p.replay(cmd.Context(), args)
		},
	}
	cli.SettingFlags(cmd, cli.SetDatabase)
	cmd.Flags().BoolVar(&all, "all", false, "every run")
	return cmd
}

func (p program) replay(ctx context.Context, args []string) (err error) {
	db, err := server.OpenReading(ctx, p.Program)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	q := replay.Query{Now: p.Now()}
	if len(args) > 0 {
		if q.Run, err = storedRun(ctx, db, args[0]); err != nil {
			return err
		}
	} else if p.Terminal.Err {
		told := p.Now()
		q.Told = func(sum replay.Report) {
			if now := p.Now(); now.Sub(told) >= progressEvery {
				told = now
				p.Say("%s, %s, %d mismatches so far", cli.Counted(sum.Runs, "run"), cli.Counted(sum.Events, "event"), len(sum.Mismatches))
			}
		}
	}
	out, err := replay.Run(ctx, db, q)
	if err != nil {
		return err
	}
	return p.printReplayed(out)
}

// storedRun is the run that an id or its abbreviation names in the database.
// Rows that cannot be read are no hindrance: replay is there to name them.
func storedRun(ctx context.Context, db store.Records, id string) (ringi.RunID, error) {
	return client.LookUp(id, func(q ringi.RunQuery) ([]ringi.RunID, string, error) {
		rows, next, err := db.Runs(ctx, q)
		if bad := (*store.Unreadable)(nil); errors.As(err, &bad) {
			err = nil
		}
		runs := make([]ringi.RunID, len(rows))
		for i, r := range rows {
			runs[i] = r.Key.Run
		}
		return runs, next, err
	})
}

func (p program) printReplayed(out replay.Report) error {
	t := cli.Table{Head: []string{"RUN", "WHAT", "SEQ", "DETAIL"}}
	for _, m := range out.Mismatches {
		t.Row(string(m.Run), m.What, strconv.FormatInt(m.Seq, 10), m.Detail)
	}
	if len(out.Mismatches) == 0 {
		t = cli.Table{}
		t.Row(fmt.Sprintf("%s, %s: everything follows from the events", cli.Counted(out.Runs, "run"), cli.Counted(out.Events, "event")))
	}
	if err := p.Print(out, t); err != nil || len(out.Mismatches) == 0 {
		return err
	}
	newer := 0
	for _, m := range out.Mismatches {
		if m.Newer {
			newer++
		}
	}
	if newer > 0 {
		return &cli.Ending{
			Code: cli.ExitFailed, Message: fmt.Sprintf("%s can only be read by a newer version; of what stands beside the others %d does not follow from their events",
				cli.Counted(newer, "run"), len(out.Mismatches)-newer),
			Hint: "run ringi replay of the version that the servers have",
		}
	}
	return &cli.Ending{
		Code: cli.ExitFailed, Message: fmt.Sprintf("%d of what stands beside the events of %s does not follow from them", len(out.Mismatches), cli.Counted(out.Runs, "run")),
		Hint: "the log is the truth; somebody or something changed the rest",
	}
}
