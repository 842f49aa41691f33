package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
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

// Run runs the command of the tree that Args name and returns the exit code. It
// reports errors itself. After a second signal it returns while the command is
// still under way: the process is about to end.
func (p *Program) Run(ctx context.Context, tree func(*Program) *cobra.Command) int {
	p.complete()
	ctx, interrupt := context.WithCancelCause(ctx)
	defer interrupt(nil)
	done := make(chan error, 1)
	go func() { done <- p.execute(ctx, tree) }()
	parent, signalled := ctx.Done(), false
	var late <-chan time.Time
	for {
		select {
		case err := <-done:
			return p.ended(ctx, err)
		case <-p.Signals:
			if signalled {
				return ExitInterrupted
			}
			signalled = true
			interrupt(ErrInterrupted)
		case <-parent:
			parent = nil
			if !p.drains.Load() {
				late = time.After(interruptGrace)
			}
		case <-late:
			return ExitInterrupted
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
func (p *Program) execute(ctx context.Context, tree func(*Program) *cobra.Command) error {
	root := tree(p)
	root.SilenceErrors, root.SilenceUsage = true, true // report tells them
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if err := p.resolve(cmd); err != nil {
			return err
		}
		p.started.Store(true)
		return nil
	}
	p.globalFlags(root)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return Usage("see "+cmd.CommandPath()+" --help", "%s", flagTrouble(err))
	})
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
		var e *Ending
		if !errors.As(err, &e) {
			return Usage("see ringi help", "%v", err)
		}
	}
	return err
}

// flagTrouble says what is wrong with a flag, in words that are not Go's.
func flagTrouble(err error) string {
	var number *strconv.NumError
	if !errors.As(err, &number) {
		return err.Error()
	}
	why := "it is not a whole number"
	switch {
	case errors.Is(number, strconv.ErrRange):
		why = "it is too large"
	case number.Func == "ParseUint":
		why = "it is not a whole number from 0 on"
	case number.Func == "ParseFloat":
		why = "it is not a number"
	case number.Func == "ParseBool":
		why = "it is neither true nor false"
	}
	return strings.TrimSuffix(err.Error(), number.Error()) + why
}

// ended reports an error and returns the exit code.
func (p *Program) ended(ctx context.Context, err error) int {
	if err == nil {
		return ExitOK
	}
	switch {
	case ctx.Err() != nil && !p.drains.Load():
		return ExitInterrupted
	case ctx.Err() != nil && errors.Is(err, context.Canceled): // a signal while it was starting
		return ExitOK
	}
	p.report(err)
	return exitCode(err)
}

// Drain says that the command ends by itself, and well, after a first signal: it
// drains and exits with 0.
func (p *Program) Drain() { p.drains.Store(true) }

// Path resolves a path that the user named against the working directory.
func (p *Program) Path(name string) string {
	if p.Dir == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(p.Dir, name)
}
