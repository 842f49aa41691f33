package cli

import (
	"log/slog"
	"time"
)

const (
	// DrainTime is how long a server may take to end what is under way: what
	// orchestrators grant a process before they kill it.
	DrainTime = 30 * time.Second
	// HeaderTime frees a connection on which no request comes.
	HeaderTime = 10 * time.Second
)

// Where messages go.
const (
	OutboxStdout = "stdout"
	OutboxOff    = "off" // nowhere: they wait
)

// Logger is the log of a server, on standard error.
func (p *Program) Logger() *slog.Logger {
	if p.Get(SetLogFormat) == OutputJSON {
		return slog.New(slog.NewJSONHandler(p.Stderr, nil))
	}
	return slog.New(slog.NewTextHandler(p.Stderr, nil))
}
