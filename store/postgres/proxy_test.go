package postgres_test

import (
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
)

// proxy stands between a store and the server and loses what it is told to.
type proxy struct {
	t       testing.TB
	l       net.Listener
	server  string
	lose    atomic.Int32 // what the next message meets
	refuses atomic.Bool  // new connections are closed at once

	mu    sync.Mutex
	conns map[net.Conn]bool
}

// What the proxy loses.
const (
	loseNothing = iota
	loseAnswer  // the server gets the message, its answer is cut off
	loseRequest // the server never gets it
)

// proxied puts a proxy before a database and returns the address through it.
func proxied(t testing.TB, address string) (*proxy, string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{t: t, l: l, server: u.Host, conns: map[net.Conn]bool{}}
	go p.accept()
	t.Cleanup(func() {
		l.Close()
		p.cut()
	})
	u.Host = l.Addr().String()
	return p, u.String()
}

func (p *proxy) accept() {
	for {
		client, err := p.l.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.server)
		if err != nil || p.refuses.Load() {
			client.Close()
			if server != nil {
				server.Close()
			}
			continue
		}
		p.mu.Lock()
		p.conns[client], p.conns[server] = true, true
		p.mu.Unlock()
		var answerLost atomic.Bool
		go p.pump(server, client, func() bool {
			switch p.lose.Load() {
			case loseRequest:
				p.lose.Store(loseNothing)
				return false
			case loseAnswer:
				p.lose.Store(loseNothing)
				answerLost.Store(true)
			}
			return true
		})
		go p.pump(client, server, func() bool { return !answerLost.Load() })
	}
}

// pump copies until an end, or until pass says no to what came.
func (p *proxy) pump(to, from net.Conn, pass func() bool) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 1<<20)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if !pass() {
				return
			}
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// cut cuts all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
	}
	clear(p.conns)
}
