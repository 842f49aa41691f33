//go:build !linux

package child

import "syscall"

// attributes asks for nothing: only Linux can tie a child to its parent.
// Elsewhere the children of a program that is itself killed have to be ended by hand.
func attributes() *syscall.SysProcAttr { return nil }
