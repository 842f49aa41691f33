package postgres

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ringiflow/ringi/store"
)

const (
	// connectTime bounds one attempt to connect.
	connectTime = 5 * time.Second
	// sendBuffer is asked for on every connection, so that a batch lies in the
	// kernel as a whole once it was sent. Linux grants 208 KiB of it unless
	// net.core.wmem_max says more.
	sendBuffer = 1 << 20
	// leastRoom is what is counted with where it is not known.
	leastRoom = 64 << 10
)

// keepAlive notices within ten seconds that the other side is gone.
// constant: only read
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 3}

// A pool is a bounded number of connections. Safe for concurrent use.
type pool struct {
	config *pgconn.Config
	made   func(context.Context, *conn) error // called with every new connection
	slots  chan struct{}                      // one per connection that may be in use

	mu         sync.Mutex
	idle       []*conn
	generation int64 // grows when a connection broke: the idle ones are suspects
	closed     bool
}

func newPool(config *pgconn.Config, size int, made func(context.Context, *conn) error) *pool {
	return &pool{config: config, made: made, slots: make(chan struct{}, size)}
}

// take waits for a connection, makes one if none is idle, and returns it. Its
// errors are store.ErrUnavailable.
func (p *pool) take(ctx context.Context) (*conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: all connections are in use: %w", store.ErrUnavailable, ctx.Err())
	}
	c, err := p.find(ctx)
	if err != nil {
		<-p.slots
		return nil, fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	return c, nil
}

func (p *pool) find(ctx context.Context) (*conn, error) {
	for {
		p.mu.Lock()
		if p.closed {
			p.mu.Unlock()
			return nil, errClosed
		}
		generation := p.generation
		n := len(p.idle)
		if n == 0 {
			p.mu.Unlock()
			return p.connect(ctx, generation)
		}
		c := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		if c.generation == generation && alive(c.pg.Conn()) {
			return c, nil
		}
		p.broke(c)
	}
}

func (p *pool) connect(ctx context.Context, generation int64) (*conn, error) {
	pg, err := pgconn.ConnectConfig(ctx, p.config)
	if err != nil {
		return nil, err
	}
	c := &conn{pg: pg, prepared: map[statement]*pgconn.StatementDescription{}, generation: generation, room: room(pg.Conn())}
	if err := p.made(ctx, c); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// give takes a connection back. One that is broken, or inside a transaction,
// is closed.
func (p *pool) give(c *conn) {
	defer func() { <-p.slots }()
	if c.pg.IsClosed() || c.pg.TxStatus() != 'I' {
		p.broke(c)
		return
	}
	p.mu.Lock()
	keep := !p.closed && c.generation == p.generation
	if keep {
		p.idle = append(p.idle, c)
	}
	p.mu.Unlock()
	if !keep {
		c.close()
	}
}

// broke closes a broken connection, and lets the idle ones of its time be
// closed before they are used: what broke one has often broken all.
func (p *pool) broke(c *conn) {
	p.mu.Lock()
	if c.generation == p.generation {
		p.generation++
	}
	p.mu.Unlock()
	c.close()
}

// suspect lets all connections be made anew, such as after a failover.
func (p *pool) suspect() {
	p.mu.Lock()
	p.generation++
	p.mu.Unlock()
}

// close closes the pool when every connection was given back.
func (p *pool) close() {
	p.mu.Lock()
	done := p.closed
	p.closed = true
	p.mu.Unlock()
	if done {
		return
	}
	for range cap(p.slots) {
		p.slots <- struct{}{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.idle {
		c.close()
	}
	p.idle = nil
	for range cap(p.slots) {
		<-p.slots
	}
}

// closeTime bounds saying good-bye to the server.
const closeTime = time.Second

func (c *conn) close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	_ = c.pg.Close(ctx) // a connection that is given up may be broken in any way
}

// dial connects with what every connection needs.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{Timeout: connectTime, KeepAliveConfig: keepAlive}
	nc, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if buffered, ok := nc.(interface{ SetWriteBuffer(int) error }); ok {
		if err := buffered.SetWriteBuffer(sendBuffer); err != nil {
			return nil, fmt.Errorf("make room in the send buffer: %w", err)
		}
	}
	return nc, nil
}
