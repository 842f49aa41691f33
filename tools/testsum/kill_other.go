//go:build !unix

package main

import "os/exec"

// killGroup has no process groups to use here: only the go command is killed,
// and its test binaries end at their own -timeout.
func killGroup(cmd *exec.Cmd) {}
