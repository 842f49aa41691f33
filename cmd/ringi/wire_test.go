package main

import (
	"bytes"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"
)

// A wire is what a server's connections to its database run through. It does
// something at the very bytes that the test names.
type wire struct {
	l      net.Listener
	server string

	mu    sync.Mutex
	trap  *trap
	delay time.Duration // of each message to the database
}

// A trap is sprung by the message to the database that holds its bytes.
type trap struct {
	bytes  []byte
	sprung func()          // called once, before the message goes on
	pass   <-chan struct{} // the message waits for its end; nil: it goes on at once
	cut    bool            // the message goes on, and its answer never comes
}

// wired puts a wire before a database and returns the address through it.
func wired(t *testing.T, address string) (*wire, string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{l: l, server: u.Host}
	go w.accept()
	t.Cleanup(func() { _ = l.Close() })
	u.Host = l.Addr().String()
	return w, u.String()
}

// set arms a trap.
func (w *wire) set(t *trap) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trap = t
}

// slow delays every message.
func (w *wire) slow(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.delay = d
}

// meets returns the trap that a message springs, and the delay.
func (w *wire) meets(message []byte) (*trap, time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.trap; t != nil && bytes.Contains(message, t.bytes) {
		w.trap = nil
		return t, w.delay
	}
	return nil, w.delay
}

func (w *wire) accept() {
	for {
		client, err := w.l.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", w.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		go w.forth(server, client)
		go func() {
			defer client.Close()
			defer server.Close()
			pump(client, server, func([]byte) bool { return true })
		}()
	}
}

// forth carries messages to the database.
func (w *wire) forth(server, client net.Conn) {
	defer client.Close()
	defer server.Close()
	pump(server, client, func(message []byte) bool {
		t, delay := w.meets(message)
		if delay > 0 {
			<-time.After(delay)
		}
		if t == nil {
			return true
		}
		t.sprung()
		if t.pass != nil {
			<-t.pass
		}
		if t.cut {
			_ = client.Close() // its answer finds nobody; the message itself still goes
		}
		return true
	})
}

// pump copies until an end, or until pass says no to what came.
func pump(to, from net.Conn, pass func([]byte) bool) {
	buf := make([]byte, 1<<20)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if !pass(buf[:n]) {
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
