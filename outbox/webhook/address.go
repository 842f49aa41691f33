package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"syscall"

	"github.com/ringiflow/ringi/egress"
)

// explained says what to do about an address that was refused.
func explained(err error) error {
	var private *egress.PrivateError
	switch {
	case errors.As(err, &private):
		return fmt.Errorf("webhook: %w; if the endpoint belongs there, allow the network (AllowNetworks)", err)
	case err != nil:
		return fmt.Errorf("webhook: %w", err)
	}
	return nil
}

// guard checks the address of every connection just before it is made.
func guard(allowed []netip.Prefix) func(context.Context, string, string, syscall.RawConn) error {
	check := egress.Guard(allowed)
	return func(ctx context.Context, network, address string, conn syscall.RawConn) error {
		return explained(check(ctx, network, address, conn))
	}
}
