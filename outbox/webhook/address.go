package webhook

import (
	"context"
	"fmt"
	"net/netip"
	"syscall"
)

// forbidden are the networks that the world outside cannot have, by the
// registries of special-purpose addresses. IPv6 outside 2000::/3 is forbidden
// without being listed.
//
// constant: only read
var forbidden = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
	"192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24",
	"203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
	"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
)

// global is where IPv6 addresses of the world outside are; translated is where
// a translator between the two (NAT64) puts those of IPv4, in the last four bytes.
//
// constant: only read
var global, translated = netip.MustParsePrefix("2000::/3"), netip.MustParsePrefix("64:ff9b::/96")

func prefixes(texts ...string) []netip.Prefix {
	all := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		all[i] = netip.MustParsePrefix(text)
	}
	return all
}

// permitted refuses an address inside a network that is not the world's, unless
// it was allowed. IPv4 inside IPv6 is judged as what it is.
func permitted(a netip.Addr, allowed []netip.Prefix) error {
	given := a
	a = a.WithZone("").Unmap()
	if translated.Contains(a) {
		b := a.As16()
		a = netip.AddrFrom4([4]byte(b[12:]))
	}
	for _, p := range allowed {
		if p.Contains(a) {
			return nil
		}
	}
	bad := a.Is6() && !global.Contains(a)
	for _, p := range forbidden {
		bad = bad || p.Contains(a)
	}
	if bad {
		return fmt.Errorf("webhook: %s is an address of a private or special network; if the endpoint belongs there, allow the network (AllowNetworks)", given)
	}
	return nil
}

// guard checks the address of every connection just before it is made. Checking
// the name, or the result of a look-up of our own, is the rejected alternative:
// the dialler would look the name up again and may get another answer.
func guard(allowed []netip.Prefix) func(context.Context, string, string, syscall.RawConn) error {
	return func(_ context.Context, _, address string, _ syscall.RawConn) error {
		ap, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("webhook: address %q cannot be read, so it is not dialled", address)
		}
		return permitted(ap.Addr(), allowed)
	}
}
