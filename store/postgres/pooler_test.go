package postgres_test

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/ringiflow/ringi/store/postgres"
	"github.com/ringiflow/ringi/store/storetest"
)

// pooler is a pooler in transaction mode, and a nasty one: each transaction
// gets the server connection that was unused for longest, so that hardly ever
// two of a client meet the same one, and nothing is reset in between.
type pooler struct {
	t       testing.TB
	l       net.Listener
	servers chan *pgproto3.Frontend
	hijack  []*pgconn.HijackedConn

	mu      sync.Mutex
	clients map[net.Conn]bool
}

// pooled puts a pooler before a database and returns the address through it.
func pooled(t testing.TB, address string, size int) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	p := &pooler{t: t, servers: make(chan *pgproto3.Frontend, size), clients: map[net.Conn]bool{}}
	for range size {
		pg, err := pgconn.Connect(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		h, err := pg.Hijack()
		if err != nil {
			t.Fatal(err)
		}
		p.hijack = append(p.hijack, h)
		p.servers <- h.Frontend
	}
	if p.l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	go p.accept()
	t.Cleanup(func() {
		p.l.Close()
		p.mu.Lock()
		defer p.mu.Unlock()
		for c := range p.clients {
			c.Close()
		}
		for _, h := range p.hijack {
			h.Conn.Close()
		}
	})
	u.Host = p.l.Addr().String()
	return u.String()
}

func (p *pooler) accept() {
	for {
		c, err := p.l.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		p.clients[c] = true
		p.mu.Unlock()
		go func() {
			defer c.Close()
			_ = p.serve(pgproto3.NewBackend(c, c)) // ends when the client goes
		}()
	}
}

// serve greets a client and then serves its transactions.
func (p *pooler) serve(client *pgproto3.Backend) error {
	if _, err := client.ReceiveStartupMessage(); err != nil {
		return err
	}
	client.Send(&pgproto3.AuthenticationOk{})
	client.Send(&pgproto3.ParameterStatus{Name: "server_encoding", Value: "UTF8"})
	client.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	if err := client.Flush(); err != nil {
		return err
	}
	for {
		first, err := client.Receive()
		if err != nil {
			return err
		}
		if _, ok := first.(*pgproto3.Terminate); ok {
			return nil
		}
		server := <-p.servers
		err = transaction(client, server, first)
		p.servers <- server
		if err != nil {
			return err
		}
	}
}

// transaction passes messages on until the server is outside of a transaction.
func transaction(client *pgproto3.Backend, server *pgproto3.Frontend, msg pgproto3.FrontendMessage) (err error) {
	for {
		for {
			server.Send(msg)
			_, sync := msg.(*pgproto3.Sync)
			_, query := msg.(*pgproto3.Query)
			if sync || query {
				break
			}
			if msg, err = client.Receive(); err != nil {
				server.Send(&pgproto3.Sync{}) // leave the server connection usable
				break
			}
		}
		gone := err
		if err := server.Flush(); err != nil {
			return err
		}
		for {
			answer, err := server.Receive()
			if err != nil {
				return err
			}
			client.Send(answer)
			ready, ok := answer.(*pgproto3.ReadyForQuery)
			if !ok {
				continue
			}
			if err := client.Flush(); err != nil || gone != nil || ready.TxStatus == 'I' {
				return errors.Join(err, gone)
			}
			break
		}
		if msg, err = client.Receive(); err != nil {
			return err
		}
	}
}

// The suite of all drivers behind a pooler in transaction mode, with the
// parameter that says so.
func TestStoreBehindAPooler(t *testing.T) {
	address := database(t)
	openStore(t, postgres.Config{URL: address})
	beside := connect(t, address)
	c := postgres.Config{URL: pooled(t, address, 4) + "&default_query_exec_mode=exec", Writers: 4, Readers: 2}
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		beside.empty()
		return harness(openStore(t, c), c)
	})
}

// Without the parameter it is found out, and nothing is lost by it.
func TestAPoolerIsFoundOut(t *testing.T) {
	address := database(t)
	var mu sync.Mutex
	var told []string
	c := postgres.Config{URL: pooled(t, address, 3), Warn: func(text string) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, text)
	}}
	a, b := openStore(t, c), openStore(t, c)
	var wg sync.WaitGroup
	for n := range 40 {
		for i, s := range []*postgres.Store{a, b} {
			wg.Go(func() {
				if c, err := s.Commit(context.Background(), startOf(2*n+i+1, 10)); err != nil || len(c.Lost) > 0 {
					t.Errorf("commit: %v, lost %v", err, c.Lost)
				}
			})
		}
	}
	wg.Wait()
	for n := range 80 {
		if !stands(t, a, startOf(n+1, 0)) {
			t.Errorf("run %d does not stand", n+1)
		}
	}
	if len(told) == 0 || !strings.Contains(told[0], "default_query_exec_mode=exec") {
		t.Errorf("told %q, want what to add to the URL", told)
	}
}
