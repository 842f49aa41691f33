//go:build unix

package command

import (
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"syscall"
)

// guardScript kills a process group when its standard input ends without a second
// line. The first names the group.
const guardScript = `trap '' HUP INT QUIT TERM; read -r group || exit 0; read -r done || kill -s KILL -- "-$group" 2> /dev/null || kill -KILL "-$group"`

// A guard outlives a worker that is killed, notices by its pipe, and kills what the
// program of an attempt started and left in its process group: the kernel kills
// only the program itself, and that only on Linux. It is a process of its own, in
// a group of its own, so that what ends the worker does not end it.
//
// Rejected alternatives: the program of the worker as its own guard would be a
// hidden way to run every program that embeds a Runner; a guard as leader of the
// program's group would leave no moment uncovered, but scripts that signal "their"
// group by their own process id would miss it.
type guard struct {
	cmd *exec.Cmd
	in  io.WriteCloser
}

// findGuard is the shell that a guard needs.
func findGuard() (sh string, err error) {
	if sh, err = exec.LookPath("sh"); err != nil {
		return "", fmt.Errorf("what a program starts lives on when the worker is killed, since there is no sh to watch over it: %w", err)
	}
	return sh, nil
}

func startGuard(sh string) (*guard, error) {
	cmd := &exec.Cmd{Path: sh, Args: []string{"ringi-guard", "-c", guardScript}, Dir: "/", Env: []string{}, SysProcAttr: &syscall.SysProcAttr{Setpgid: true}}
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("nothing watches over what the program starts: %w", err)
	}
	return &guard{cmd: cmd, in: in}, nil
}

// watch names the group of a program that has started. A guard that has died is
// missed only when the worker is killed, too.
func (g *guard) watch(pid int) { _, _ = io.WriteString(g.in, strconv.Itoa(pid)+"\n") }

// release ends the guard; the group is gone.
func (g *guard) release() {
	_, _ = io.WriteString(g.in, "\n")
	_ = g.in.Close()
	_ = g.cmd.Wait()
}
