package cli

import (
	"log/slog"
	"sync"
	"time"
)

// troubleAgain is how long the same trouble is not logged again: while a server
// or a database is away every call says so.
const troubleAgain = time.Minute

// Trouble returns a function that logs errors with a message, and leaves out one
// that came already within a minute. It may be called concurrently.
func (p *Program) Trouble(log *slog.Logger, message string) func(error) {
	var mu sync.Mutex
	var last string
	var at time.Time
	return func(err error) {
		mu.Lock()
		defer mu.Unlock()
		now := p.Now()
		if err.Error() == last && now.Sub(at) < troubleAgain {
			return
		}
		last, at = err.Error(), now
		log.Warn(message, "err", err)
	}
}
