package egress

import (
	"context"
	"fmt"
	"net/netip"
	"syscall"
)

// forbidden are the networks that the world outside cannot have, by the
// registries of special-purpose addresses, and 168.63.129.16, a public address
// behind which a large cloud answers its machines as others do at 169.254.169.254.
// IPv6 outside 2000::/3 is forbidden without being listed.
//
// constant: only read
var forbidden = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "168.63.129.16/32", "169.254.0.0/16", "172.16.0.0/12",
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

// A PrivateError says that an address was not dialled, since it belongs to a
// private or special network that nobody allowed.
type PrivateError struct {
	Addr netip.Addr // as it was given
}

// Error names the address.
func (e *PrivateError) Error() string {
	return fmt.Sprintf("%s is an address of a private or special network, which nobody allowed", e.Addr)
}

// Permitted refuses an address inside a network that is not the world's, unless
// it is in one of the allowed. IPv4 inside IPv6 is judged as what it is, and a
// zone does not matter. The error is a *PrivateError.
func Permitted(a netip.Addr, allowed []netip.Prefix) error {
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
	bad := !a.IsValid() || a.Is6() && !global.Contains(a)
	for _, p := range forbidden {
		bad = bad || p.Contains(a)
	}
	if bad {
		return &PrivateError{Addr: given}
	}
	return nil
}

// Guard returns the ControlContext of a net.Dialer that refuses what Permitted
// does. It sees the address of every connection just before it is made: checking
// the URL, or the answer of a resolver, would leave time for a name to change
// what it stands for.
func Guard(allowed []netip.Prefix) func(ctx context.Context, network, address string, conn syscall.RawConn) error {
	return func(_ context.Context, _, address string, _ syscall.RawConn) error {
		ap, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("the address %q cannot be read, so it is not dialled", address)
		}
		return Permitted(ap.Addr(), allowed)
	}
}

// ParseNetworks reads networks as CIDR or single addresses, separated by commas:
// 10.0.0.0/8, ::1. "" is none.
func ParseNetworks(text string) ([]netip.Prefix, error) {
	var all []netip.Prefix
	for _, word := range splitList(text) {
		p, err := netip.ParsePrefix(word)
		if a, single := netip.ParseAddr(word); single == nil {
			p, err = netip.PrefixFrom(a.WithZone(""), a.BitLen()), nil
		}
		if err != nil {
			return nil, fmt.Errorf("%q is not a network: write it as 10.0.0.0/8 or fd00::/8, or one address", word)
		}
		all = append(all, unmapped(p))
	}
	return all, nil
}

// unmapped is the prefix of IPv4 that one of IPv4 inside IPv6 stands for.
func unmapped(p netip.Prefix) netip.Prefix {
	const mapped = 96 // bits in front of the IPv4 address
	if p.Addr().Is4In6() && p.Bits() >= mapped {
		return netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-mapped).Masked()
	}
	return p.Masked()
}
