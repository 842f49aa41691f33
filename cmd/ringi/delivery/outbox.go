package delivery

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ringiflow/ringi/cmd/ringi/cli"
	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/relay"
)

// outboxFlags are what the commands of outbox take.
type outboxFlags struct {
	outbox.Filter
	states    []string
	places    []string // destinations, each with commas between
	aggregate string
	all       bool
	payload   bool
}

func (p program) outboxCommand() *cobra.Command {
	box := &cobra.Command{
		Use: "outbox", Short: "Look after the messages of an outbox", Args: cobra.NoArgs,
		Long: `Shows and mends the messages of an outbox in the database that --database names,
also while relays and servers run on it.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	box.AddCommand(p.outboxStatusCommand(), p.outboxListCommand(), p.outboxChangesCommand(), p.outboxSchemaCommand(),
		p.outboxChangeCommand(relay.Retry, "Try dead and parked messages again",
			`Makes dead and parked messages due now, with all their attempts, and lets the
aggregates of parked ones go on. With --state pending also those that wait for
their next try.`),
		p.outboxChangeCommand(relay.Resend, "Send delivered messages once more, under the same id",
			`Sends delivered messages again, under their ids, so that consumers that have
handled them drop them. A broker that still remembers an id drops it itself: NATS
within the stream's duplicate window, two minutes unless the stream says
otherwise. A consumer that has forgotten an id does its work a second time: what
was delivered more than 7 days ago is sent only with --old.`),
		p.outboxChangeCommand(relay.Purge, "Delete dead messages for ever",
			`Deletes dead messages; with --state parked or delivered those instead. The
aggregates of parked ones go on without them. What waits to be delivered is never
deleted.`))
	return box
}

func (p program) outboxStatusCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "status", Short: "Count what is not delivered, by destination and tenant", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.withOutbox(cmd.Context(), func(ctx context.Context, db *relay.Database) error {
				depths, err := db.Outbox.Backlog(ctx)
				if err != nil {
					return err
				}
				out := struct {
					Destinations []relay.DepthView `json:"destinations"`
				}{relay.ViewDepths(depths, p.Now())}
				t := cli.Table{Head: relay.DepthCells()}
				for _, d := range out.Destinations {
					t.Row(d.Cells()...)
				}
				return p.Print(out, t)
			})
		},
	}
	cli.SettingFlags(cmd, cli.SetDatabase)
	return cmd
}

func (p program) outboxListCommand() *cobra.Command {
	var f outboxFlags
	cmd := &cobra.Command{
		Use: "list [ID...]", Short: "List messages, oldest first",
		Example: "  ringi outbox list --state dead,parked --payload --json",
		RunE: func(cmd *cobra.Command, ids []string) error {
			if err := f.complete(cmd, ids); err != nil {
				return err
			}
			if f.Limit = min(f.Limit, outbox.MostListed); f.Limit == 0 {
				f.Limit = outbox.DefaultListed
			}
			return p.withOutbox(cmd.Context(), func(ctx context.Context, db *relay.Database) error {
				list, err := db.Outbox.List(ctx, f.Filter)
				if errors.Is(err, outbox.ErrAfter) {
					return cli.Usage("take the value of next", "--after: %v", err)
				}
				if err != nil {
					return err
				}
				return p.printMessages(list, f)
			})
		},
	}
	f.flags(cmd)
	cmd.Flags().BoolVar(&f.payload, "payload", false, "print payload and headers too")
	cmd.Flags().StringVar(&f.After, "after", "", "continue behind the message with this id")
	return cmd
}

func (p program) printMessages(list []outbox.Entry, f outboxFlags) error {
	out := struct {
		Messages []relay.MessageView `json:"messages"`
		Next     string              `json:"next,omitempty"` // for --after; absent on the last page
	}{Messages: relay.ViewMessages(list, f.payload)}
	if n := len(list); n > 0 && n == f.Limit {
		out.Next = list[n-1].ID
	}
	t := cli.Table{Head: relay.MessageCells()}
	for i, m := range out.Messages {
		t.Row(m.Cells()...)
		if f.payload {
			t.Row("", string(list[i].Payload))
		}
	}
	if err := p.Print(out, t); err != nil || out.Next == "" || p.JSON() {
		return err
	}
	p.Say("there may be more: --after %s", out.Next)
	return nil
}

func (p program) outboxChangesCommand() *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use: "changes", Short: "List what was retried, resent and purged, and why, the latest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 || limit > outbox.MostListed {
				return cli.Usage("", "--limit is %d; write a number from 1 to %d", limit, outbox.MostListed)
			}
			return p.withOutbox(cmd.Context(), func(ctx context.Context, db *relay.Database) error {
				list, err := db.Outbox.Changes(ctx, limit)
				if err != nil {
					return err
				}
				out := struct {
					Changes []relay.ChangeView `json:"changes"`
				}{relay.ViewChanges(list)}
				t := cli.Table{Head: relay.ChangeCells()}
				for _, c := range out.Changes {
					t.Row(c.Cells()...)
				}
				return p.Print(out, t)
			})
		},
	}
	cli.SettingFlags(cmd, cli.SetDatabase)
	cmd.Flags().IntVar(&limit, "limit", outbox.DefaultListed, "at most so many")
	return cmd
}

func (p program) outboxSchemaCommand() *cobra.Command {
	var dialect string
	var apply bool
	cmd := &cobra.Command{
		Use: "schema", Short: "Print the statements that make the tables of an outbox, or run them", Args: cobra.NoArgs,
		Long: `Prints the statements that make the tables of an outbox. They may run again on a
database that has them. From Go: Schema of packages outbox/sqlite,
outbox/postgres and outbox/mysql. Those of an inbox are inbox.Schema and
inbox.MySQLSchema.

With --apply nothing is printed: the tables in the database that --database names
are made, or those of an earlier version brought up to date, and every message
is kept. Stop the relays of the earlier version first. From Go: Migrate.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if apply {
				return p.applySchema(cmd.Context())
			}
			d := relay.Dialect(dialect)
			if dialect == "" {
				d, _ = relay.DialectOf(p.Get(cli.SetDatabase)) // it was checked
			}
			text, err := d.Schema()
			if err != nil {
				return cli.Usage("", "%v", err)
			}
			if p.JSON() {
				return p.PrintJSON(struct {
					Dialect relay.Dialect `json:"dialect"`
					SQL     string        `json:"sql"`
				}{d, text})
			}
			_, err = fmt.Fprintln(p.Stdout, strings.TrimSpace(text))
			return err
		},
	}
	cli.SettingFlags(cmd, cli.SetDatabase)
	cmd.Flags().StringVar(&dialect, "dialect", "", "sqlite, postgres or mysql (default: that of the database)")
	cmd.Flags().BoolVar(&apply, "apply", false, "make the tables in the database, or bring them up to date")
	return cmd
}

// applySchema makes the tables in the database that the setting names.
func (p program) applySchema(ctx context.Context) error {
	db, err := relay.Connect(p.databaseName())
	if err != nil {
		return err
	}
	if err := errors.Join(db.Migrate(ctx), db.Close()); err != nil {
		return err
	}
	p.Say("%s has the tables of an outbox, as this version wants them", db.Name)
	return nil
}

func (p program) outboxChangeCommand(verb relay.Verb, about, long string) *cobra.Command {
	var f outboxFlags
	cmd := &cobra.Command{
		Use: string(verb) + " [ID...]", Short: about,
		Long: long + "\n\nName messages by their ids, choose them with flags, or say --all.",
		RunE: func(cmd *cobra.Command, ids []string) error {
			if err := f.complete(cmd, ids); err != nil {
				return err
			}
			if len(ids)+len(f.states)+len(f.places)+len(f.Tenants)+len(f.aggregate)+len(f.Type) == 0 && !f.all {
				return cli.Usage("ringi outbox list shows them", "name messages, choose some with flags, or say --all")
			}
			if verb != relay.Retry && strings.TrimSpace(f.Reason) == "" {
				return cli.Usage("say why, for those who look at this later", "--reason is missing")
			}
			return p.withOutbox(cmd.Context(), func(ctx context.Context, db *relay.Database) error {
				return p.changeMessages(ctx, db, verb, f)
			})
		},
	}
	f.flags(cmd)
	cmd.Flags().BoolVar(&f.all, "all", false, "every message that this is about")
	cmd.Flags().StringVar(&f.Reason, "reason", "", "why; it is kept with the change: ringi outbox changes")
	if verb == relay.Resend {
		cmd.Flags().BoolVar(&f.Old, "old", false, "also what consumers may have forgotten")
	}
	return cmd
}

func (p program) changeMessages(ctx context.Context, db *relay.Database, verb relay.Verb, f outboxFlags) error {
	now := p.Now()
	done, err := verb.Do(ctx, db.Outbox, now, f.Filter, f.Limit)
	switch {
	case errors.Is(err, relay.ErrNone):
		return &cli.Ending{Code: cli.ExitNotFound, Message: err.Error(), Hint: "ringi outbox list ID shows how it stands", Err: err}
	case errors.Is(err, outbox.ErrResendOld):
		return &cli.Ending{Code: cli.ExitConflict, Message: err.Error(), Hint: "choose later ones, or say --old", Err: err}
	case err != nil:
		return err
	}
	if verb == relay.Resend && done.Messages > 0 {
		p.Say("a broker drops what it remembers: the last of these was delivered %v ago, and NATS remembers for the stream's duplicate window (2m unless it says otherwise)", now.Sub(done.LastDelivered).Round(time.Second))
	}
	out := struct {
		Verb     relay.Verb `json:"verb"`
		Messages int        `json:"messages"`
		Reason   string     `json:"reason,omitempty"`
	}{verb, done.Messages, f.Reason}
	var t cli.Table
	t.Row(string(verb), cli.Counted(out.Messages, "message"), f.Reason)
	return p.Print(out, t)
}

func (p program) withOutbox(ctx context.Context, do func(context.Context, *relay.Database) error) error {
	db, err := p.openOutbox(ctx)
	if err != nil {
		return err
	}
	return errors.Join(do(ctx, db), db.Close())
}

// flags are those that choose messages.
func (f *outboxFlags) flags(cmd *cobra.Command) {
	cli.SettingFlags(cmd, cli.SetDatabase)
	fs := cmd.Flags()
	fs.StringSliceVar(&f.states, "state", nil, "pending, claimed, delivered, parked or dead")
	// No slice of pflag's, which takes '' for none at all.
	fs.StringArrayVar(&f.places, "destination", nil, "of this destination; '' is the usual one")
	fs.Int64SliceVar(&f.Tenants, "tenant", nil, "of this tenant")
	fs.StringVar(&f.aggregate, "aggregate", "", "TYPE or TYPE/ID")
	fs.StringVar(&f.Type, "type", "", "of this event type")
	fs.IntVar(&f.Limit, "limit", 0, "at most so many (list: 100 unless told, 1000 at most; else 0 is all)")
}

// complete makes the filter of the flags. One that was given and says nothing, as a
// script does whose variable is empty, must not select everything.
func (f *outboxFlags) complete(cmd *cobra.Command, ids []string) (err error) {
	if f.States, err = relay.ParseStates(f.states); err != nil {
		return cli.Usage("", "--state: %v", err)
	}
	if f.Limit < 0 {
		return cli.Usage("", "--limit is %d, which is nothing", f.Limit)
	}
	given := cmd.Flags().Changed
	if given("aggregate") {
		if f.AggregateType, f.AggregateID, err = relay.ParseAggregate(f.aggregate); err != nil {
			return cli.Usage("", "--aggregate: %v", err)
		}
	}
	if given("type") && f.Type == "" || given("state") && len(f.states) == 0 {
		return cli.Usage("leave it out to take all", "--type or --state is empty")
	}
	f.Destinations = nil
	for _, names := range f.places {
		f.Destinations = append(f.Destinations, strings.Split(names, ",")...)
	}
	if len(ids) > 0 {
		f.IDs = ids
	}
	return nil
}
