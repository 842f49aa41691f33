package child

import "syscall"

// attributes makes a child end with its parent however that one ends, and
// puts it into a group of its own, so that Ctrl-C in a terminal reaches the
// parent alone, which then ends its children in order.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
