package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/engine"
	"github.com/ringiflow/ringi/store/sqlite"
)

// progressEvery is how often long work says how far it is.
const progressEvery = 2 * time.Second

func (p *Program) replayCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "replay [RUN]", Short: "Fold logs again and compare everything that stands beside them", Args: between(0, "RUN"),
		Long: `Folds the log of a run, or with --all of every run, from its first event and
compares what the database keeps beside it: snapshot, list row, tasks, timers,
waits, approvals, incidents and the chain of hashes. It reads the database file
itself, also while a server runs on it, and changes nothing. Exits with 1 if
something does not follow from the events.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if all == (len(args) == 1) {
				return usage("ringi replay RUN, or ringi replay --all", "name one run, or say --all")
			}
			return p.replay(cmd.Context(), args)
		},
	}
	settingFlags(cmd, setDatabase)
	cmd.Flags().BoolVar(&all, "all", false, "every run")
	return cmd
}

func (p *Program) replay(ctx context.Context, args []string) (err error) {
	db, err := sqlite.OpenReading(ctx, sqlite.Config{Path: p.path(sqlitePath(p.get(setDatabase)))})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	out := engine.Replayed{Mismatches: []engine.Mismatch{}}
	if len(args) > 0 {
		run, err := storedRun(ctx, db, args[0])
		if err != nil {
			return err
		}
		if out, err = engine.Replay(ctx, db, db, engine.ReplayQuery{Run: run}); err != nil {
			return err
		}
		return p.printReplayed(out)
	}
	runs, err := everyRun(ctx, db)
	if err != nil {
		return err
	}
	told := p.Now()
	for i, run := range runs {
		one, err := engine.Replay(ctx, db, db, engine.ReplayQuery{Run: run})
		switch {
		case ringi.ErrorCode(err) == ringi.CodeNotFound: // a list row without any event
			one = engine.Replayed{Runs: 1, Mismatches: []engine.Mismatch{{Run: run, What: "log"}}}
		case err != nil:
			return fmt.Errorf("replay run %s: %w", run, err)
		}
		out.Runs, out.Events, out.Mismatches = out.Runs+one.Runs, out.Events+one.Events, append(out.Mismatches, one.Mismatches...)
		if now := p.Now(); p.Terminal.Err && now.Sub(told) >= progressEvery {
			told = now
			p.say("%d of %d runs, %d events, %d mismatches so far", i+1, len(runs), out.Events, len(out.Mismatches))
		}
	}
	return p.printReplayed(out)
}

// everyRun lists the runs that have a log or a list row: should one of the two
// be missing, the other still tells of the run.
func everyRun(ctx context.Context, db *sqlite.Store) ([]ringi.RunID, error) {
	var runs []ringi.RunID
	for after := ringi.RunID(""); ; after = runs[len(runs)-1] {
		page, err := db.LoggedRuns(ctx, ringi.DefaultTenant, after, largestPage)
		if err != nil {
			return nil, err
		}
		if runs = append(runs, page...); len(page) < largestPage {
			break
		}
	}
	q := ringi.RunQuery{Tenant: ringi.DefaultTenant, Limit: largestPage}
	for {
		rows, next, err := db.Runs(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			runs = append(runs, row.Key.Run)
		}
		if q.After = next; next == "" {
			slices.Sort(runs)
			return slices.Compact(runs), nil
		}
	}
}

// storedRun is the run that an id or its abbreviation names in the database.
func storedRun(ctx context.Context, db *sqlite.Store, id string) (ringi.RunID, error) {
	return lookUp(id, func(q ringi.RunQuery) ([]ringi.RunID, string, error) {
		rows, next, err := db.Runs(ctx, q)
		runs := make([]ringi.RunID, len(rows))
		for i, r := range rows {
			runs[i] = r.Key.Run
		}
		return runs, next, err
	})
}

func (p *Program) printReplayed(out engine.Replayed) error {
	t := table{head: []string{"RUN", "WHAT", "SEQ"}}
	for _, m := range out.Mismatches {
		t.row(string(m.Run), m.What, strconv.FormatInt(m.Seq, 10))
	}
	if len(out.Mismatches) == 0 {
		t = table{}
		t.row(fmt.Sprintf("%d runs, %d events: everything follows from the events", out.Runs, out.Events))
	}
	if err := p.print(out, t); err != nil || len(out.Mismatches) == 0 {
		return err
	}
	return &ending{
		code: exitFailed, message: fmt.Sprintf("%d of what stands beside the events of %d runs does not follow from them", len(out.Mismatches), out.Runs),
		hint: "the log is the truth; somebody or something changed the rest",
	}
}
