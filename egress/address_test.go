package egress_test

import (
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/ringiflow/ringi/egress"
)

func TestOnlyAddressesOfTheWorldArePermitted(t *testing.T) {
	for _, c := range []struct {
		addr string
		ok   bool
	}{
		{"1.1.1.1", true},
		{"93.184.216.34", true},
		{"2606:4700:4700::1111", true},
		{"64:ff9b::101:101", true}, // NAT64 of 1.1.1.1
		{"::ffff:1.1.1.1", true},
		{"127.0.0.1", false},
		{"127.255.255.254", false},
		{"0.0.0.0", false},
		{"10.255.0.1", false},
		{"100.127.255.255", false},
		{"169.254.169.254", false},
		{"168.63.129.16", false}, // a cloud's service for its machines, at a public address
		{"168.63.129.17", true},
		{"::ffff:168.63.129.16", false},
		{"172.31.0.1", false},
		{"192.168.0.1", false},
		{"198.19.0.1", false},
		{"224.0.0.251", false},
		{"255.255.255.255", false},
		{"::", false},
		{"::1", false},
		{"::1%lo", false},
		{"::ffff:127.0.0.1", false},
		{"::ffff:169.254.169.254", false},
		{"::ffff:0:7f00:1", false}, // a translator's other form
		{"::7f00:1", false},        // IPv4-compatible
		{"64:ff9b::a9fe:a9fe", false},
		{"64:ff9b:1::a9fe:a9fe", false},
		{"2002:a9fe:a9fe::1", false}, // 6to4
		{"2002:808:808::1", false},   // 6to4 of a public address: a relay decides where it goes
		{"2001:0:7f00:1::", false},   // Teredo
		{"2001:db8::1", false},
		{"fe80::1", false},
		{"fe80::1%eth0", false},
		{"fd00:ec2::254", false}, // a cloud's metadata service
		{"ff02::1", false},
	} {
		err := egress.Permitted(netip.MustParseAddr(c.addr), nil)
		var private *egress.PrivateError
		if (err == nil) != c.ok || err != nil && (!errors.As(err, &private) || !strings.Contains(err.Error(), c.addr)) {
			t.Errorf("%s: %v, want permitted %v", c.addr, err, c.ok)
		}
	}
	if err := egress.Permitted(netip.Addr{}, nil); err == nil {
		t.Error("no address is permitted")
	}
}

func TestAnAllowedNetworkIsPermittedInEveryForm(t *testing.T) {
	allowed, err := egress.ParseNetworks(" 127.0.0.0/8, ::1,10.1.2.3 , ::ffff:192.168.0.0/112")
	if err != nil {
		t.Fatal(err)
	}
	for addr, ok := range map[string]bool{
		"127.0.0.1": true, "::ffff:127.1.2.3": true, "64:ff9b::7f00:1": true, "::1": true, "::1%lo": true,
		"10.1.2.3": true, "10.1.2.4": false, "192.168.7.7": true, "fe80::1": false,
	} {
		if err := egress.Permitted(netip.MustParseAddr(addr), allowed); (err == nil) != ok {
			t.Errorf("%s: %v, want permitted %v", addr, err, ok)
		}
	}
	for _, wrong := range []string{"10.0.0.0/33", "localhost", "10.0.0.0-10.0.0.9", "10.0.0.0/8 fd00::/8"} {
		if _, err := egress.ParseNetworks(wrong); err == nil {
			t.Errorf("%q was taken for a network", wrong)
		}
	}
	if none, err := egress.ParseNetworks(""); err != nil || none != nil {
		t.Errorf("nothing is %v, %v", none, err)
	}
}

func TestTheGuardRefusesWhatItCannotRead(t *testing.T) {
	for _, address := range []string{"localhost:80", "1.1.1.1", "", "[::1]:80", "127.0.0.1:80"} {
		if egress.Guard(nil)(t.Context(), "tcp", address, nil) == nil {
			t.Errorf("%q was let through", address)
		}
	}
	if err := egress.Guard(nil)(t.Context(), "tcp", "1.1.1.1:80", nil); err != nil {
		t.Error(err)
	}
}

func TestRetryAfterIsSecondsOrADate(t *testing.T) {
	now := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"0": 0, "120": 2 * time.Minute, "Sun, 01 Mar 2026 09:00:30 GMT": 30 * time.Second, "Sun, 01 Mar 2026 08:00:00 GMT": 0,
		"": -1, "soon": -1, "-1": -1, "1.5": -1, "99999999999999999999": -1,
	} {
		got, ok := egress.RetryAfter(http.Header{"Retry-After": {text}}, now)
		if ok != (want >= 0) || ok && got != want {
			t.Errorf("%q: %v %v, want %v", text, got, ok, want)
		}
	}
}
