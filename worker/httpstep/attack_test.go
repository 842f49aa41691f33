package httpstep_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ringiflow/ringi/worker/httpstep"
)

// names is a resolver that knows every name, with one answer after the other.
func names(answers ...string) *net.Resolver {
	asked := &atomic.Int32{}
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			defer theirs.Close()
			for resolve(theirs, answers, asked) {
			}
		}()
		return ours, nil
	}}
}

// resolve answers one question; it reports false at the end.
func resolve(conn net.Conn, answers []string, asked *atomic.Int32) bool {
	var size [2]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return false
	}
	reply := make([]byte, binary.BigEndian.Uint16(size[:])) // header and question are repeated
	if _, err := io.ReadFull(conn, reply); err != nil {
		return false
	}
	binary.BigEndian.PutUint16(reply[2:], 0x8180)
	binary.BigEndian.PutUint16(reply[10:], 0) // no additional records
	end := 12
	for reply[end] != 0 {
		end += int(reply[end]) + 1
	}
	reply = reply[:end+5]
	kind := binary.BigEndian.Uint16(reply[end+1:])
	address := netip.MustParseAddr(answers[min(int(asked.Load()), len(answers)-1)])
	if (kind == 1) == address.Is4() && (kind == 1 || kind == 28) {
		asked.Add(1)
		data := address.AsSlice()
		binary.BigEndian.PutUint16(reply[6:], 1)
		reply = append(reply, 0xc0, 12, 0, byte(kind), 0, 1, 0, 0, 0, 0, 0, byte(len(data)))
		reply = append(reply, data...)
	}
	_, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...))
	return err == nil
}

// trap listens on a port of this machine, on loopback in both families where
// there are both, and reports whether anybody has connected.
func trap(t *testing.T) (port int, touched *atomic.Bool) {
	t.Helper()
	touched = &atomic.Bool{}
	first, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port = first.Addr().(*net.TCPAddr).Port
	listeners := []net.Listener{first}
	if second, err := net.Listen("tcp", fmt.Sprintf("[::1]:%d", port)); err == nil {
		listeners = append(listeners, second)
	}
	for _, l := range listeners {
		t.Cleanup(func() { _ = l.Close() })
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				touched.Store(true)
				_ = conn.Close()
			}
		}()
	}
	return port, touched
}

// What an attacker writes who may choose the url, or has a name of his own that
// resolves as he likes: no spelling of a private address is reached.
func TestNoURLOfAnAttackerReachesAPrivateAddress(t *testing.T) {
	port, touched := trap(t)
	hosts := []string{
		"127.0.0.1", "127.8.9.10", "127.0.0.1.", "0.0.0.0", "0", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1",
		"169.254.169.254", "100.64.0.1", "100.100.100.200", "192.0.0.192", "192.0.2.1", "198.18.0.1", "224.0.0.1", "255.255.255.255",
		"[::1]", "[::]", "[0:0:0:0:0:0:0:1]", "[fe80::1]", "[fe80::1%25lo]", "[fc00::1]", "[fd00:ec2::254]", "[fec0::1]", "[ff02::1]",
		"[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::ffff:a9fe:a9fe]", "[::ffff:0:7f00:1]", "[::127.0.0.1]", "[::a9fe:a9fe]",
		"[64:ff9b::7f00:1]", "[64:ff9b::169.254.169.254]", "[64:ff9b:1::a9fe:a9fe]",
		"[2002:7f00:1::]", "[2002:a9fe:a9fe::1]", "[2001::1]", "[2001:0:7f00:1::1]", "[2001:db8::1]", "[3fff::1]",
		"2130706433", "0x7f000001", "0x7f.0.0.1", "0x7F.1", "017700000001", "0177.0.0.1", "127.1", "127.0.1", "2852039166", "0xa9fea9fe",
		"①②⑦.⓪.⓪.①", "１２７.0.0.1", "127。0。0。1", "%31%32%37.0.0.1",
		"localhost", "LOCALHOST", "localhost.", "foo.localhost", "ip6-localhost",
		"attacker@127.0.0.1", "a.example:80@127.0.0.1", "127.0.0.1#@a.example", "127.0.0.1%00.a.example", "a.example%2f@127.0.0.1",
	}
	for _, host := range hosts {
		url := fmt.Sprintf("http://%s:%d/latest/meta-data/", host, port)
		config := httpstep.Config{Resolver: names("127.0.0.1")} // whatever is looked up is at home
		_, f := perform(t.Context(), config, firstOf("pure", fmt.Sprintf(`{"method":"GET","url":%q}`, url)))
		if f == nil || f.Retryable && f.Code != "http_unreachable" || strings.HasPrefix(f.Code, "http_2") {
			t.Errorf("%s: %v", host, f)
		}
	}
	for _, form := range []string{ // PORT stands for the port of the trap
		"http:127.0.0.1:PORT", "http:/127.0.0.1:PORT/", "http:///127.0.0.1:PORT/", "http:\\\\127.0.0.1:PORT/", "//127.0.0.1:PORT/", "127.0.0.1:PORT", "HTTP://127.0.0.1:PORT",
		"http://1.1.1.1 &@127.0.0.1:PORT# @a.example/", "http://a.example@127.0.0.1:PORT/", "http://127.0.0.1:PORT\\@a.example/", "http://a.example#@127.0.0.1:PORT/",
		"http://a.example\\.127.0.0.1:PORT/", "http://127.0.0.1:PORT\t/", "\thttp://127.0.0.1:PORT/", "http://127.0.0.1:PORT\r\nHost: a.example/", "http://[127.0.0.1]:PORT/",
		"http://127\uff0e0\uff0e0\uff0e1:PORT/", "http://127\uff610\uff610\uff611:PORT/", "http://127.0.0.1\u3002:PORT/", "http://127.0.0.\u0661:PORT/", "http://127.0.0.1\u00ad:PORT/",
		"http://\u2460\u2465\u2468.\u2461\u2464\u2463.\u2460\u2465\u2468.\u2461\u2464\u2463:PORT/", "http://loc\u0430lhost:PORT/", "http://l\u24deca\u217chost:PORT/", "http://localh\u200bost:PORT/",
		"http://0x7f.0x0.0x0.0x1:PORT/", "http://00000177.1:PORT/", "http://127.000.000.001:PORT/", "http://0127.0.0.1:PORT/", "http://127.0.0.1.:PORT/", "http://127..0.0.1:PORT/", "http://.127.0.0.1:PORT/",
		"http://127.0.0.1/@a.example:PORT", "http://4294967297:PORT/", "http://1.2.3.4.5:PORT/", "http://0.0.0.0.:PORT/", "http://[::ffff:7f00:0001%25lo]:PORT/", "http://[0:0:0:0:0:ffff:127.0.0.1]:PORT/",
		"http://[::ffff:169.254.169.254]:PORT/", "http://[100::1]:PORT/", "http://[5f00::1]:PORT/", "http://[64:ff9b::]:PORT/", "http://[2002:a00:1::]:PORT/", "http://[::1%25eth0]:PORT/", "http://[::%31]:PORT/",
		"http://[fd20:ce::254]:PORT/", "http://[fd00::1]:PORT/", "http://[febf::1]:PORT/", "http://[::2]:PORT/", "http://[::ffff:a00:1]:PORT/", "http://[4000::1]:PORT/", "http://[e000::1]:PORT/",
		"http://127.0.0.1:0PORT/", "http://127.0.0.1:+PORT/", "http://127.0.0.1:PORTx/", "http://127.0.0.1: PORT/", "http://127.0.0.1:PORT:80/", "http://127.0.0.1:\uff10:PORT/", "https://127.0.0.1:PORT/", "http://%6c%6f%63%61%6c%68%6f%73%74:PORT/",
	} {
		url := strings.ReplaceAll(form, "PORT", fmt.Sprint(port))
		raw, err := json.Marshal(map[string]string{"method": "GET", "url": url})
		if err != nil {
			t.Fatal(err)
		}
		_, f := perform(t.Context(), httpstep.Config{Resolver: names("127.0.0.1")}, firstOf("pure", string(raw)))
		if f == nil || f.Retryable && f.Code != "http_unreachable" || strings.HasPrefix(f.Code, "http_2") {
			t.Errorf("%q: %v", url, f)
		}
	}
	for _, scheme := range []string{"file", "gopher", "ftp", "unix", "dict", "ldap", "javascript", "data"} {
		_, f := perform(t.Context(), httpstep.Config{}, firstOf("pure", fmt.Sprintf(`{"method":"GET","url":"%s://127.0.0.1:%d/"}`, scheme, port)))
		if f == nil || f.Code != "http_bad_request" {
			t.Errorf("%s: %v", scheme, f)
		}
	}
	for _, address := range []string{"127.0.0.1", "169.254.169.254", "10.1.2.3", "::1", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1", "fd00:ec2::254"} {
		config := httpstep.Config{Resolver: names(address)}
		_, f := perform(t.Context(), config, firstOf("pure", fmt.Sprintf(`{"method":"GET","url":"http://innocent.example:%d/"}`, port)))
		if f == nil || f.Code != "http_private_address" || !strings.Contains(f.Message, "--http-allow") {
			t.Errorf("a name at %s: %v", address, f)
		}
	}
	if touched.Load() {
		t.Error("a connection was made all the same")
	}
}

// A name that changes its address between two look-ups gains nothing: what
// counts is the address of the connection.
func TestANameCannotBeBoundAgain(t *testing.T) {
	s := startService(t, nil)
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	config := local()
	config.AllowNetworks = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	config.Resolver = names("127.0.0.1", "127.0.0.2", "127.0.0.1")
	for i, want := range []string{"none", "http_private_address", "none"} {
		_, f := perform(t.Context(), config, firstOf("pure", `{"method":"GET","url":"http://rebind.example:`+port+`/"}`))
		if got := strings.Fields(shown(f))[0]; got != want {
			t.Errorf("call %d: got %s, want %s: %v", i, got, want, f)
		}
	}
	if s.requests() != 2 {
		t.Errorf("%d requests came, want 2", s.requests())
	}
}

func TestARedirectIsAnAnswerAndNotFollowed(t *testing.T) {
	port, touched := trap(t)
	for _, to := range []string{
		"http://169.254.169.254/latest/meta-data/iam/security-credentials/", fmt.Sprintf("http://127.0.0.1:%d/", port),
		fmt.Sprintf("//127.0.0.1:%d/", port), "/elsewhere", "file:///etc/passwd",
	} {
		for _, code := range []int{301, 302, 303, 307, 308} {
			s := startService(t, status(code, "Location", to, "Refresh", "0; url="+to))
			_, f := perform(t.Context(), local(), firstOf("pure", `{"method":"GET","url":"`+s.URL+`"}`))
			if f == nil || f.Code != fmt.Sprint("http_", code) || f.Retryable || !strings.Contains(f.Message, "not followed") || s.requests() != 1 {
				t.Errorf("%d to %s: %v, %d requests", code, to, f, s.requests())
			}
			s.Close()
		}
	}
	if touched.Load() {
		t.Error("a redirect was followed")
	}
}

func TestNoProxyIsTakenFromTheEnvironment(t *testing.T) {
	port, touched := trap(t)
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		t.Setenv(name, fmt.Sprintf("http://127.0.0.1:%d", port))
	}
	s := startService(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	if _, f := perform(t.Context(), local(), firstOf("pure", `{"method":"GET","url":"`+s.URL+`"}`)); f != nil {
		t.Error(f)
	}
	_, f := perform(t.Context(), httpstep.Config{}, firstOf("pure", `{"method":"GET","url":"http://10.0.0.1/"}`))
	if f == nil || f.Code != "http_private_address" || touched.Load() {
		t.Errorf("with a proxy: %v, and it was asked: %v", f, touched.Load())
	}
}
