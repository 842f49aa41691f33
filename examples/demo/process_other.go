//go:build !linux

package demo

import "syscall"

// attributes asks for nothing: only Linux can tie a child to its parent.
// Elsewhere the children of a demo that is itself killed have to be ended by hand.
func attributes() *syscall.SysProcAttr { return nil }
