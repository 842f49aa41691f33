//go:build !unix

package demo

import (
	"context"
	"errors"
)

// startDatabase cannot: how PostgreSQL is started and ended here is not known.
func startDatabase(context.Context) (*server, error) {
	return nil, errors.New("on this system the demo starts no PostgreSQL of its own: name one with --database postgres://…")
}
