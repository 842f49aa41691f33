//go:build unix

package child

import (
	"fmt"
	"syscall"
)

// Freeze stops the process as SIGSTOP does, until Thaw: it keeps its connections
// and its locks, and says nothing. A frozen process can be killed.
func (p *Process) Freeze() error { return p.signal(syscall.SIGSTOP) }

// Thaw lets a frozen process go on.
func (p *Process) Thaw() error { return p.signal(syscall.SIGCONT) }

func (p *Process) signal(s syscall.Signal) error {
	if !p.Running() {
		return fmt.Errorf("%s does not run, so that it cannot get %v", p.Name, s)
	}
	if err := p.now.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("send %v to %s: %w", s, p.Name, err)
	}
	return nil
}
