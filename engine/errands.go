package engine

import (
	"sync"

	"github.com/ringiflow/ringi"
)

// errands are commands that a sweep sent and nobody waits for. A sweep that
// comes by again before one is done does not send it twice. Its zero value
// works; safe for concurrent use.
type errands struct {
	mu     sync.Mutex
	flying map[string]bool
}

// send routes the command unless one of that name is under way. then may be
// nil; it is called from the committer and must not block.
func (e *errands) send(p *parts, name string, cmd ringi.Command, then func(settled)) {
	e.mu.Lock()
	if e.flying == nil {
		e.flying = map[string]bool{}
	}
	twice := e.flying[name]
	e.flying[name] = true
	e.mu.Unlock()
	if twice {
		return
	}
	done := func(s settled) {
		e.mu.Lock()
		delete(e.flying, name)
		e.mu.Unlock()
		if then != nil {
			then(s)
		}
	}
	p.route(cmd, nil, done)
}
