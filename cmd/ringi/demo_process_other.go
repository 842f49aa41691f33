//go:build !linux

package main

import "syscall"

// demoAttributes asks for nothing: only Linux can tie a child to its parent.
// Elsewhere the children of a demo that is itself killed have to be ended by hand.
func demoAttributes() *syscall.SysProcAttr { return nil }
