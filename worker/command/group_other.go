//go:build !unix

package command

import (
	"fmt"
	"os/exec"
)

// inGroup does nothing: without process groups only the program itself is ended.
func inGroup(*exec.Cmd) {}

func askGroup(cmd *exec.Cmd) { killGroup(cmd) }

// killGroup ends the program. There is nobody left to end when it fails.
func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

// codeOf names how a program ended.
func codeOf(cmd *exec.Cmd) string { return fmt.Sprintf("exit_%d", cmd.ProcessState.ExitCode()) }
