//go:build !unix

package child

import "errors"

// errNoFreeze says what this system lacks.
var errNoFreeze = errors.New("on this system no process can be stopped and continued")

// Freeze cannot stop a process here.
func (p *Process) Freeze() error { return errNoFreeze }

// Thaw has nothing to let go on here.
func (p *Process) Thaw() error { return errNoFreeze }
