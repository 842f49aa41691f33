package webhook_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/webhook"
)

// names is a resolver whose answers a test chooses, one per question for an
// IPv4 address; the last one stays.
func names(t *testing.T, answers ...string) (*net.Resolver, *atomic.Int32) {
	t.Helper()
	asked := &atomic.Int32{}
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			defer theirs.Close()
			for {
				query, err := readFrame(theirs)
				if err != nil {
					return
				}
				reply := query // header and question are repeated
				binary.BigEndian.PutUint16(reply[2:], 0x8180)
				binary.BigEndian.PutUint16(reply[10:], 0) // no additional records
				end := 12
				for reply[end] != 0 {
					end += int(reply[end]) + 1
				}
				kind := binary.BigEndian.Uint16(reply[end+1:])
				reply = reply[:end+5]
				if kind == 1 { // A
					n := int(asked.Add(1)) - 1
					address := netip.MustParseAddr(answers[min(n, len(answers)-1)]).As4()
					binary.BigEndian.PutUint16(reply[6:], 1)
					reply = append(reply, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
					reply = append(reply, address[:]...)
				}
				if _, err := theirs.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...)); err != nil {
					return
				}
			}
		}()
		return ours, nil
	}}, asked
}

// readFrame reads one DNS message as it travels over a stream.
func readFrame(r io.Reader) ([]byte, error) {
	var size [2]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	query := make([]byte, binary.BigEndian.Uint16(size[:]))
	_, err := io.ReadFull(r, query)
	return query, err
}

// Every spelling of an address that is not the world's is refused before a
// connection is made, whether the URL or a name server says it.
func TestPrivateNetworksAreNotReached(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var touched atomic.Bool
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			touched.Store(true)
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = listener.Close() })
	port := listener.Addr().(*net.TCPAddr).Port
	resolver, _ := names(t, "127.0.0.1")
	for _, host := range []string{
		"127.0.0.1", "127.8.9.10", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254", "100.64.0.1",
		"0.0.0.0", "192.0.2.1", "198.18.0.1", "224.0.0.1", "255.255.255.255",
		"[::1]", "[::]", "[fe80::1]", "[fe80::1%25lo]", "[fc00::1]", "[fd12:3456::1]", "[fec0::1]", "[ff02::1]",
		"[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[64:ff9b::10.0.0.1]", "[64:ff9b:1::1]",
		"[2002:7f00:1::]", "[2001::1]", "[2001:db8::1]",
		"2130706433", "0x7f000001", "017700000001", "127.1", "0x7f.1", "localhost", "127.0.0.1.", "inside.example.com",
	} {
		s, err := webhook.New(webhook.Config{
			URL: fmt.Sprintf("http://%s:%d/", host, port), PlainHTTP: true, Secrets: []webhook.Secret{secret(t)}, Resolver: resolver,
		})
		if err == nil {
			err = s.Publish(t.Context(), orders(1, "a"))[0]
		}
		// Some systems read the odd spellings as addresses, others as names that
		// nobody can have.
		known := err != nil && (strings.Contains(err.Error(), "private or special network") || strings.Contains(err.Error(), "no such host"))
		if !known || outbox.Refused(err) {
			t.Errorf("%s: %v, want it named as private and no message refused", host, err)
		}
	}
	if touched.Load() {
		t.Error("a connection was made all the same")
	}
}

// A name that answers with a public address first and a private one later is
// judged at every connection.
func TestANameCannotChangeItsAddressBetweenCheckAndUse(t *testing.T) {
	e := startEndpoint(t)
	_, port, err := net.SplitHostPort(e.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	resolver, asked := names(t, "127.0.0.1", "127.0.0.2")
	s := e.sink(t, func(c *webhook.Config) {
		c.URL, c.Resolver = "https://example.com:"+port+"/", resolver // the test certificate's name
		c.AllowNetworks = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	})
	if got := s.Publish(t.Context(), orders(1, "a")); got[0] != nil {
		t.Fatal(got[0])
	}
	_ = s.Close() // the connection goes, so the name is looked up again
	got := s.Publish(t.Context(), orders(1, "b"))
	if got[0] == nil || !strings.Contains(got[0].Error(), "127.0.0.2 is an address") {
		t.Errorf("%v after %d look-ups, want the second address refused", got[0], asked.Load())
	}
	wantInOrder(t, e, 1, "a")
}

// A redirect is not followed, wherever it leads.
func TestARedirectIsNotFollowed(t *testing.T) {
	e, other := startEndpoint(t), startEndpoint(t)
	e.answers(status(307, "Location", other.URL))
	got := e.sink(t, nil).Publish(t.Context(), orders(1, "a"))
	if got[0] == nil || outbox.Refused(got[0]) || errors.Is(got[0], outbox.ErrHeld) || other.requests() != 0 {
		t.Errorf("%v, and %d requests elsewhere", got[0], other.requests())
	}
}
