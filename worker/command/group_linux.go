package command

import "syscall"

// dieTogether has the kernel kill the program when the worker dies.
func dieTogether(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
