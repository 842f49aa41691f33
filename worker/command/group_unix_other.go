//go:build unix && !linux

package command

import "syscall"

// dieTogether does nothing: only Linux can do that.
func dieTogether(*syscall.SysProcAttr) {}
