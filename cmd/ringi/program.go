package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
)

// interruptGrace is how long a command that does not drain may still take after
// a signal: long enough to end a request, short enough for a person who pressed
// Ctrl-C while it reads from a terminal.
const interruptGrace = time.Second

// A Program is one call of ringi. The zero value of every field works: nothing
// comes in, and what goes out is dropped. A Program runs once.
type Program struct {
	Name   string                   // what a person types to call it again; "" is ringi
	Args   []string                 // without the program's name
	Env    func(name string) string // "" for what is not set
	Dir    string                   // relative paths start here; "" is the process's working directory
	Stdin  io.Reader
	Stdout io.Writer // data
	Stderr io.Writer // everything else

	// Terminal says which of the streams a person sits at.
	Terminal Terminal

	// Now is the clock; nil is time.Now.
	Now func() time.Time

	// Signals ends the command. serve and dev drain after the first; the second
	// ends Run at once. Nil never signals; the end of Run's context does the same
	// as a first signal.
	Signals <-chan os.Signal

	// Listening is called by serve and dev with the server's URL once it answers.
	// It may be nil.
	Listening func(url string)

	settings settings
	drains   atomic.Bool // the command handles a signal itself, and ends well after one
	started  atomic.Bool // the arguments made sense
}

// Terminal says which standard streams a person sits at.
type Terminal struct{ In, Out, Err bool }

// Run runs the command that Args name and returns the exit code. It reports
// errors itself. After a second signal it returns while the command is still
// under way: the process is about to end.
func (p *Program) Run(ctx context.Context) int {
	p.complete()
	ctx, interrupt := context.WithCancelCause(ctx)
	defer interrupt(nil)
	done := make(chan error, 1)
	go func() { done <- p.execute(ctx) }()
	parent, signalled := ctx.Done(), false
	var late <-chan time.Time
	for {
		select {
		case err := <-done:
			return p.ended(ctx, err)
		case <-p.Signals:
			if signalled {
				return exitInterrupted
			}
			signalled = true
			interrupt(errInterrupted)
		case <-parent:
			parent = nil
			if !p.drains.Load() {
				late = time.After(interruptGrace)
			}
		case <-late:
			return exitInterrupted
		}
	}
}

// complete fills in what the caller left out.
func (p *Program) complete() {
	if p.Name == "" {
		p.Name = "ringi"
	}
	if p.Env == nil {
		p.Env = func(string) string { return "" }
	}
	if p.Stdin == nil {
		p.Stdin = eof{}
	}
	if p.Stdout == nil {
		p.Stdout = io.Discard
	}
	if p.Stderr == nil {
		p.Stderr = io.Discard
	}
	if p.Now == nil {
		p.Now = time.Now
	}
}

// eof is a standard input that holds nothing.
type eof struct{}

// Read returns io.EOF.
func (eof) Read([]byte) (int, error) { return 0, io.EOF }

// execute finds the command and runs it.
func (p *Program) execute(ctx context.Context) error {
	root := p.rootCommand()
	root.SetArgs(append([]string{}, p.Args...)) // nil would mean os.Args
	root.SetIn(p.Stdin)
	root.SetOut(p.Stdout)
	root.SetErr(p.Stderr)
	strictHelp(root)
	err := root.ExecuteContext(ctx)
	if errors.Is(err, errPrinted) {
		return nil
	}
	if err != nil && !p.started.Load() { // cobra's own: unknown command, unknown flag, wrong number of arguments
		var e *ending
		if !errors.As(err, &e) {
			return usage("see ringi help", "%v", err)
		}
	}
	return err
}

// ended reports an error and returns the exit code.
func (p *Program) ended(ctx context.Context, err error) int {
	if err == nil {
		return exitOK
	}
	switch {
	case ctx.Err() != nil && !p.drains.Load():
		return exitInterrupted
	case ctx.Err() != nil && errors.Is(err, context.Canceled): // a signal while it was starting
		return exitOK
	}
	p.report(err)
	return exitCode(err)
}

// rootCommand is the tree of all commands.
func (p *Program) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "ringi",
		Short: "Runs business processes that must not be half done",
		Long: `ringi runs business processes that must not be half done. Begin with:

  ringi dev      a server on this machine with an example, people and a worker
  ringi demo     100 orders through a server that is killed again and again`,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := p.resolve(cmd); err != nil {
				return err
			}
			p.started.Store(true)
			return nil
		},
	}
	p.globalFlags(root)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usage("see "+cmd.CommandPath()+" --help", "%v", err)
	})
	groups(root, "Servers", p.serveCommand(), p.devCommand(), demoCommand(p), p.relayCommand())
	groups(root, "Definitions", p.checkCommand(), p.explainCommand(), p.publishCommand())
	groups(root, "Runs", p.startCommand(), p.sendCommand(), p.runsCommand(), p.showCommand(), p.historyCommand(),
		p.cancelCommand(), p.pauseCommand(), p.resumeCommand(), p.terminateCommand())
	groups(root, "People", p.approvalsCommand(), p.approveCommand(), p.rejectCommand(), p.incidentsCommand(), p.resolveCommand())
	groups(root, "Operation", p.outboxCommand(), p.replayCommand(), simCommand(p), p.benchCommand(), p.keysCommand(), p.versionCommand())
	root.AddCommand(&cobra.Command{Use: "exit-codes", Short: "What the exit codes mean", Long: exitCodesText})
	return root
}

// strictHelp makes help and completion refuse what they do not know, where cobra
// would print something else and exit with 0. The outputs of root are set by then:
// its completion remembers them.
func strictHelp(root *cobra.Command) {
	root.SetHelpCommand(&cobra.Command{
		Use: "help [COMMAND]", Short: "Help about a command",
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return usage("ringi help lists them", "there is no help about %q", strings.Join(args, " "))
			}
			cmd.InitDefaultHelpFlag() // as --help would, so that both print the same
			return cmd.Help()
		},
	})
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() != "completion" {
			continue
		}
		var shells []string
		for _, shell := range cmd.Commands() {
			shells = append(shells, shell.Name())
		}
		cmd.Args = nil
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage("take one of "+strings.Join(shells, ", "), "there is no completion for %q", args[0])
			}
			return cmd.Help()
		}
	}
}

// groups adds commands under a heading of the help.
func groups(root *cobra.Command, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: title, Title: title + ":"})
	for _, c := range commands {
		c.GroupID = title
		root.AddCommand(c)
	}
}

// path resolves a path that the user named against the working directory.
func (p *Program) path(name string) string {
	if p.Dir == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(p.Dir, name)
}
