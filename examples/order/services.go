package order

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"
)

// The names of the four services. The book of a service NAME is NAME.db.
const (
	Stock    = "stock"
	Payment  = "payment"
	Shipping = "shipping"
	Mail     = "mail"
)

// ServiceNames returns the names of the four services in the order in which an
// order meets them.
func ServiceNames() []string { return []string{Stock, Payment, Shipping, Mail} }

const (
	// defaultListen lets the system pick a port, on loopback only: the
	// services believe everything that they are told.
	defaultListen = "127.0.0.1:0"
	// maxBody is the largest request in bytes; the largest order has a few hundred.
	maxBody = 1 << 20
	// headerTimeout frees a connection on which no request comes.
	headerTimeout = 10 * time.Second
	// stopTimeout is how long calls under way may take to end when a service stops.
	stopTimeout = 2 * time.Second
)

// ServiceConfig says which service runs and on what. Name and DB are required.
type ServiceConfig struct {
	Name   string // one of ServiceNames
	DB     string // path of the service's own SQLite file, made if missing
	Lines  []Line // the orders whose faults it acts out; none is a service without faults
	Listen string // address to listen on; "" is a free port on loopback

	// Ready is called once with the service's URL when it can be called. It
	// may be nil.
	Ready func(url string)
}

// RunService runs one service until ctx ends and then returns nil; calls under
// way have two seconds to finish. It returns an error if the service cannot
// start or its listener fails. Two services must not share a DB.
func RunService(ctx context.Context, cfg ServiceConfig) error {
	s := &service{faults: newFaults(cfg.Lines)}
	ops := s.operations(cfg.Name)
	if ops == nil {
		return fmt.Errorf("no service is called %q; take one of %v", cfg.Name, ServiceNames())
	}
	if cfg.DB == "" {
		return fmt.Errorf("service %s has no file for its calls; set DB", cfg.Name)
	}
	if cfg.Listen == "" {
		cfg.Listen = defaultListen
	}
	book, err := openCalls(ctx, cfg.DB)
	if err != nil {
		return fmt.Errorf("start service %s: %w", cfg.Name, err)
	}
	s.calls = book
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", cfg.Listen)
	if err != nil {
		return errors.Join(fmt.Errorf("start service %s: %w", cfg.Name, err), book.close())
	}
	return errors.Join(s.serve(ctx, ln, ops, cfg.Ready), book.close())
}

// service is what the four have in common: a book, faults, and the way in which
// a call is heard, recorded and answered.
type service struct {
	calls  *calls
	faults *faults
}

// operation is what one call does, given what the book says. It decides about
// the effect; the row is written and the answer sent by others.
type operation func(*page, request) (reply, error)

// operations returns what the service of that name can do, or nil.
func (s *service) operations(name string) map[string]operation {
	switch name {
	case Stock:
		return stockOperations()
	case Payment:
		return paymentOperations()
	case Shipping:
		return shippingOperations()
	case Mail:
		return mailOperations()
	}
	return nil
}

func (s *service) serve(ctx context.Context, ln net.Listener, ops map[string]operation, ready func(string)) error {
	mux := http.NewServeMux()
	for op, act := range ops {
		mux.HandleFunc("POST /"+op, s.handle(op, act))
	}
	server := &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: headerTimeout,
		BaseContext:       func(net.Listener) context.Context { return ctx }, // a call that hangs ends with the service
	}
	stopped := make(chan error, 1)
	go func() {
		<-ctx.Done()
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		if err := server.Shutdown(end); err != nil {
			stopped <- server.Close()
			return
		}
		stopped <- nil
	}()
	if ready != nil {
		ready("http://" + ln.Addr().String())
	}
	if err := server.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return <-stopped
}

// request is the body of every call. The key travels in the body and not in a
// header Idempotency-Key, because net/http repeats a POST that carries that
// header by itself when a connection breaks: with a service that charges twice
// for two calls, that would be a second charge that nobody decided on.
type request struct {
	Key      string      `json:"key"`
	OrderID  string      `json:"order_id,omitempty"`
	Items    []Item      `json:"items,omitempty"`
	Customer string      `json:"customer,omitempty"`
	Amount   json.Number `json:"amount,omitempty"`
	To       string      `json:"to,omitempty"`

	fault Kind // a refusal that the order's line asks for, or ""
}

// reply is how a call is answered.
type reply struct {
	status int
	id     string // name of the id in the answer, if the answer has one
	row    int64  // the row that the id names; 0 is the row of this call
	effect bool
	body   map[string]any
}

// done answers a call that had its effect now.
func done(id string) reply { return reply{status: http.StatusOK, id: id, effect: true} }

// repeat answers a call whose effect stands since row.
func repeat(id string, row int64) reply { return reply{status: http.StatusOK, id: id, row: row} }

// without answers a call that is well and has no effect.
func without(body map[string]any) reply { return reply{status: http.StatusOK, body: body} }

// refused answers a call that will never succeed. It had no effect.
func refused(code, message string) reply {
	return reply{status: http.StatusConflict, body: map[string]any{"code": code, "message": message}}
}

// unavailable answers a call that was not looked at. It had no effect.
func unavailable(message string) reply {
	return reply{status: http.StatusServiceUnavailable, body: map[string]any{"code": "unavailable", "message": message}}
}

func badRequest(message string) reply {
	return reply{status: http.StatusBadRequest, body: map[string]any{"code": "bad_request", "message": message}}
}

// handle hears a call, and answers it once its row is committed.
func (s *service) handle(op string, act operation) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var in request
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&in); err != nil {
			badRequest("the body is not JSON: "+err.Error()).send(w, 0)
			return
		}
		if in.Key == "" {
			badRequest("key is missing; every call carries one").send(w, 0)
			return
		}
		// A caller that goes away does not undo a call that arrived.
		answer, row, how, err := s.act(context.WithoutCancel(r.Context()), op, in, act)
		if err != nil {
			reply{status: http.StatusInternalServerError, body: map[string]any{"code": "internal", "message": err.Error()}}.send(w, 0)
			return
		}
		switch how {
		case hangAfter:
			<-r.Context().Done()
			panic(http.ErrAbortHandler)
		case cutBefore, cutAfter:
			panic(http.ErrAbortHandler) // the documented way to close the connection without an answer
		default:
			answer.send(w, row)
		}
	}
}

// act decides about one call and writes its row, in one transaction. It returns
// the answer, the number of the row, and the way in which a fault spoils the
// answer.
func (s *service) act(ctx context.Context, op string, in request, act operation) (answer reply, row int64, how way, err error) {
	err = s.calls.do(ctx, func(p *page) error {
		if in.OrderID == "" {
			if in.OrderID, err = p.orderOf(in.Key); err != nil {
				return err
			}
		}
		kind, spoilt := s.faults.next(op, in.OrderID)
		switch how = spoilt; how {
		case notNow:
			answer = unavailable("out of service for a moment, nothing was done")
		case cutBefore:
			answer = reply{}
		default:
			if how == refuse {
				in.fault = kind
			}
			if answer, err = act(p, in); err != nil {
				return err
			}
		}
		row, err = p.write(op, in.Key, in.OrderID, answer.effect)
		return err
	})
	return answer, row, how, err
}

// send writes the answer; row is the number of the call's own row.
func (a reply) send(w http.ResponseWriter, row int64) {
	body := map[string]any{}
	for name, value := range a.body {
		body[name] = value
	}
	if a.id != "" {
		if a.row != 0 {
			row = a.row
		}
		body[a.id] = callID(a.id, row)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(a.status)
	_ = json.NewEncoder(w).Encode(body) // a caller that is gone hears nothing; the row stands
}

// callID makes the id that a service gives out for what row did.
func callID(name string, row int64) string {
	return name[:len(name)-len("_id")] + "-" + strconv.FormatInt(row, 10)
}
