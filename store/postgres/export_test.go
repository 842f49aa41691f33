package postgres

import (
	"context"
	"net"
)

// Dial connects as a store does and says how large a message may be.
func Dial(ctx context.Context, network, address string) (net.Conn, int, error) {
	nc, err := dial(ctx, network, address)
	if err != nil {
		return nil, 0, err
	}
	return nc, room(nc), nil
}
