//go:build unix

package command

import (
	"fmt"
	"os/exec"
	"strings"
	"syscall"
)

// inGroup gives the program a process group of its own, so that it can be ended
// with everything that it started, and so that Ctrl-C ends only the worker.
func inGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieTogether(cmd.SysProcAttr)
}

// askGroup asks the program and everything in its group to end.
func askGroup(cmd *exec.Cmd) { signalGroup(cmd, syscall.SIGTERM) }

// killGroup ends them.
func killGroup(cmd *exec.Cmd) { signalGroup(cmd, syscall.SIGKILL) }

// signalGroup sends a signal. There is nobody left to get it when it fails.
func signalGroup(cmd *exec.Cmd, s syscall.Signal) { _ = syscall.Kill(-cmd.Process.Pid, s) }

// codeOf names how a program ended.
func codeOf(cmd *exec.Cmd) string {
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return fmt.Sprintf("exit_%d", cmd.ProcessState.ExitCode())
	}
	names := map[syscall.Signal]string{
		syscall.SIGKILL: "KILL", syscall.SIGTERM: "TERM", syscall.SIGINT: "INT", syscall.SIGSEGV: "SEGV", syscall.SIGABRT: "ABRT",
		syscall.SIGPIPE: "PIPE", syscall.SIGHUP: "HUP", syscall.SIGQUIT: "QUIT", syscall.SIGBUS: "BUS", syscall.SIGFPE: "FPE",
	}
	if name := names[status.Signal()]; name != "" {
		return "signal_" + name
	}
	return "signal_" + strings.ReplaceAll(status.Signal().String(), " ", "_")
}
