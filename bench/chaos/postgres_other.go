//go:build !unix

package chaos

import (
	"context"
	"errors"
)

// startDatabase cannot: how PostgreSQL is started and ended here is not known.
func startDatabase(context.Context) (*server, error) {
	return nil, errors.New("on this system no PostgreSQL is started: name one with --database postgres://…")
}
