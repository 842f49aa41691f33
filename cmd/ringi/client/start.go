package client

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/cmd/ringi/cli"
)

// StartedRun is what start --json prints.
type StartedRun struct {
	Run     ringi.RunID  `json:"run"`
	Created bool         `json:"created"`
	Version int          `json:"version"`
	Status  ringi.Status `json:"status"`
}

type startFlags struct {
	start       ringi.Start
	members     []string
	input       string
	wait, watch bool
	timeout     time.Duration
}

func (p program) startCommand() *cobra.Command {
	var f startFlags
	cmd := &cobra.Command{
		Use: "start NAME", Short: "Start a run of a definition", Args: cli.Exactly("NAME"),
		Example: `  ringi start order_fulfilment -i order_id=A-1 -i amount=1200 --key A-1
  ringi start order_fulfilment --input @order.json --wait --timeout 1m`,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.start.Definition = args[0]
			return p.start(cmd.Context(), f)
		},
	}
	fs := cmd.Flags()
	fs.StringArrayVarP(&f.members, "set", "i", nil, "NAME=VALUE of the input; a value that is JSON is taken as such, else as text")
	fs.StringVar(&f.input, "input", "", "the input: @FILE, - for standard input, or JSON")
	fs.StringVar(&f.start.Key, "key", "", "one key, one run: a repeat gets the run that exists")
	fs.IntVar(&f.start.Version, "version", 0, "version of the definition; 0 is the latest")
	fs.StringVar(&f.start.OnBehalfOf, "on-behalf-of", "", "the person who asks for it; needs the scope start_for")
	fs.BoolVar(&f.wait, "wait", false, "wait until the run has ended; exit 5 unless it completed")
	fs.BoolVar(&f.watch, "watch", false, "as --wait, and print each change")
	fs.DurationVar(&f.timeout, "timeout", 0, "wait at most so long, then exit 8; 0 waits for ever")
	return cmd
}

func (p program) start(ctx context.Context, f startFlags) error {
	if f.timeout < 0 || f.timeout > 0 && !f.wait && !f.watch {
		return cli.Usage("", "--timeout is for --wait and --watch, and above 0")
	}
	if f.start.Version < 0 {
		return cli.Usage("0 is the latest", "--version is %d, and versions begin with 1", f.start.Version)
	}
	input, err := p.Document("input", f.input)
	if err != nil {
		return err
	}
	if f.start.Input, err = withMembers(input, f.members); err != nil {
		return err
	}
	svc, err := p.Service()
	if err != nil {
		return err
	}
	res, err := do(ctx, svc, "", f.start)
	if err != nil {
		return f.hinted(err)
	}
	out := StartedRun{res.Run, res.Created, res.Version, res.Status}
	if !f.wait && !f.watch {
		return p.printStarted(out)
	}
	if f.watch {
		if err := p.printStarted(out); err != nil {
			return err
		}
	}
	show := func(v ringi.RunView) error {
		if f.watch {
			return p.printChange(v)
		}
		if p.Terminal.Err {
			p.Say("%s %s %s", v.Run, v.Status, v.WaitingFor)
		}
		return nil
	}
	view, err := p.await(ctx, svc, res.Run, f.timeout, show)
	if !f.watch {
		if view.Status != "" {
			out.Status = view.Status
		}
		if perr := p.printStarted(out); err == nil {
			err = perr
		}
	}
	if err != nil {
		return err
	}
	return notCompleted(view)
}

// hinted says how an input is given, when the one that was given, or none, did
// not fit.
func (f startFlags) hinted(err error) error {
	e := cli.RefusalOf(err)
	if e == nil || e.Code != ringi.CodeInvalid || !strings.Contains(e.Message, "input") {
		return err
	}
	hint := ""
	switch {
	case f.start.Input == nil:
		hint = "no input was given: an empty object is --input '{}', and -i NAME=VALUE or --input @FILE give more"
	default:
		for _, m := range f.members {
			name, value, _ := strings.Cut(m, "=")
			if !strings.HasPrefix(value, `"`) && json.Valid([]byte(value)) {
				hint = fmt.Sprintf(`%s was taken as JSON; as a text it is -i '%s="%s"'`, m, name, strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value))
				break
			}
		}
	}
	if hint == "" {
		return err
	}
	if e.Hint != "" {
		hint = e.Hint + "; " + hint
	}
	return &ringi.Error{Code: e.Code, Message: e.Message, Hint: hint, Err: err}
}

func (p program) printStarted(out StartedRun) error {
	var t cli.Table
	how := "started"
	if !out.Created {
		how = "exists"
	}
	t.Row(string(out.Run), how, fmt.Sprintf("version %d", out.Version), string(out.Status))
	return p.Print(out, t)
}

// withMembers sets members of the input, which is an object then.
func withMembers(input json.RawMessage, members []string) (json.RawMessage, error) {
	if len(members) == 0 {
		return input, nil
	}
	object := map[string]json.RawMessage{}
	if input != nil {
		if err := json.Unmarshal(input, &object); err != nil || object == nil {
			return nil, cli.Usage("", "-i sets members of an object, and --input is not one")
		}
	}
	for _, m := range members {
		name, value, ok := strings.Cut(m, "=")
		if !ok || name == "" {
			return nil, cli.Usage("as in -i amount=1200", "-i %s is not NAME=VALUE", m)
		}
		if json.Valid([]byte(value)) {
			object[name] = json.RawMessage(value)
			continue
		}
		text, err := json.Marshal(value)
		if err != nil {
			return nil, cli.Usage("", "-i %s: %v", m, err)
		}
		object[name] = text
	}
	return json.Marshal(object)
}
