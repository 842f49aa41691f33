// Command outbox is a shop that reserves stock and tells payment about it. It
// does so twice: first with two writes, one to the database and one to the
// broker, and then with an outbox. Both times the broker is killed in between.
//
//	go run ./examples/outbox
//
// The reservation is a step of a saga: stock and the event that starts the next
// step are one commit. Payment, the next step, starts from the delivered event,
// keeps the ids of what it has handled, and charges once however often the event
// comes. No engine is needed for any of this.
package main

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite"

	"github.com/ringiflow/ringi/inbox"
	"github.com/ringiflow/ringi/outbox"
	"github.com/ringiflow/ringi/outbox/sqlite"
)

func main() {
	dir, err := os.MkdirTemp("", "ringi-outbox-")
	if err == nil {
		err = run(context.Background(), os.Stdout, dir)
		_ = os.RemoveAll(dir) // it is the system's to clean up what is left there
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// schema is the shop's own tables; those of outbox and inbox come with them.
const schema = `
create table reservation (order_id text primary key);
create table charge (order_id text not null);`

// shop is the service: a database, a broker that it tells, and payment behind it.
type shop struct {
	db     *sql.DB
	broker *broker
	unit   outbox.UnitOfWork[*sql.Tx]
	pay    *inbox.Consumer
}

func openShop(dir string) (*shop, error) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "shop.db")+"?_txlock=immediate&_pragma=busy_timeout(5000)")
	if err != nil {
		return nil, err
	}
	if _, err := db.Exec(schema + sqlite.Schema + inbox.Schema); err != nil {
		return nil, err
	}
	s := &shop{db: db, unit: outbox.UnitOfWork[*sql.Tx]{Database: &outbox.SQL{DB: db, Insert: sqlite.Insert}}}
	if s.pay, err = inbox.NewConsumer(inbox.Config{DB: db, Name: "payment"}); err != nil {
		return nil, err
	}
	s.broker, err = newBroker(s.charge)
	return s, err
}

// reserveTwice is the dual write: the reservation is committed, then the event is
// sent. Between the two anything can happen.
func (s *shop) reserveTwice(ctx context.Context, order string) error {
	if _, err := s.db.ExecContext(ctx, `insert into reservation values (?)`, order); err != nil {
		return err
	}
	event := reserved(order)
	event.ID, event.CreatedAt = outbox.NewID(time.Now()), time.Now()
	return s.broker.send(ctx, &event)
}

// reserve is the same with an outbox: reservation and event are one commit, and
// nothing is sent here.
func (s *shop) reserve(ctx context.Context, order string) error {
	if err := s.unit.Add(ctx, reserved(order)); err != nil {
		return err
	}
	return s.unit.Do(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `insert into reservation values (?)`, order)
		return err
	})
}

// reserved is the event that starts the payment of an order.
func reserved(order string) outbox.Message {
	return outbox.Message{AggregateType: "Order", AggregateID: order, Type: "inventory.reserved", Payload: []byte(`{}`)}
}

// charge is payment: it handles a delivered event, once.
func (s *shop) charge(ctx context.Context, id, order string) error {
	_, err := s.pay.Receive(ctx, inbox.Delivery{ID: id}, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `insert into charge values (?)`, order)
		return err
	})
	return err
}

// run plays both acts and tells what the books say after each.
func run(ctx context.Context, out io.Writer, dir string) error {
	s, err := openShop(dir)
	if err != nil {
		return err
	}
	defer s.db.Close()
	defer s.broker.kill()

	fmt.Fprintln(out, "First act: two writes.")
	if err := s.act(ctx, out, "A", s.reserveTwice); err != nil {
		return err
	}
	if err := s.books(out, "A"); err != nil {
		return err
	}

	fmt.Fprintln(out, "Second act: one write, and a relay.")
	relay, err := outbox.NewRelay(outbox.RelayConfig{Source: sqlite.New(s.db), Sink: s.broker, PauseFirst: 50 * time.Millisecond})
	if err != nil {
		return err
	}
	relaying, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- relay.Run(relaying) }()
	err = s.act(ctx, out, "B", s.reserve)
	if err == nil {
		err = s.await(ctx)
	}
	stop()
	if ended := <-done; err == nil {
		err = ended
	}
	if err != nil {
		return err
	}
	return s.books(out, "B")
}

// act reserves three orders; the broker dies before the second and is back for
// the third.
func (s *shop) act(ctx context.Context, out io.Writer, name string, reserve func(context.Context, string) error) error {
	for n := 1; n <= 3; n++ {
		if n == 2 {
			fmt.Fprintln(out, "  the broker is killed")
			s.broker.kill()
		}
		order := fmt.Sprint(name, n)
		if err := reserve(ctx, order); err != nil {
			fmt.Fprintf(out, "  order %s: reserved, but the event went nowhere\n", order)
		} else {
			fmt.Fprintf(out, "  order %s: reserved\n", order)
		}
		if n == 2 {
			if err := s.broker.start(); err != nil {
				return err
			}
			fmt.Fprintln(out, "  the broker is back")
		}
	}
	return nil
}

// await waits until the relay has delivered everything.
func (s *shop) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	source := sqlite.New(s.db)
	for {
		st, err := source.Stats(ctx)
		if err != nil || st.Pending+st.Claimed == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// books compares what was reserved with what was charged.
func (s *shop) books(out io.Writer, act string) error {
	rows, err := s.db.Query(`select order_id, (select count(*) from charge c where c.order_id = r.order_id) from reservation r where order_id like ? || '%' order by order_id`, act)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var order string
		var charges int
		if err := rows.Scan(&order, &charges); err != nil {
			return err
		}
		switch charges {
		case 0:
			fmt.Fprintf(out, "  books: %s is reserved and was never charged: its event is lost\n", order)
		default:
			fmt.Fprintf(out, "  books: %s is reserved and was charged %d time(s)\n", order, charges)
		}
	}
	return rows.Err()
}
