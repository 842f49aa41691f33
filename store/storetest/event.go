package storetest

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

// send stores an event that is kept until a second.
func (s *subject) send(id string, sent, keep float64) {
	s.Helper()
	created, err := s.h.Events.Send(s.ctx, tenant, event(id, sent), at(keep))
	s.must(err)
	if !created {
		s.Fatalf("event %s was known", id)
	}
}

func event(id string, sent float64) ringi.SentEvent {
	return ringi.SentEvent{ID: id, Name: "paid", Key: "o-1", Data: json.RawMessage(`{"amount":12}`), SentAt: at(sent)}
}

// wait starts a run that waits for events "paid" of "o-1".
func (s *subject) wait(opened float64, change func(*ringi.WaitRow)) *line {
	s.Helper()
	return s.waitOf(tenant, opened, change)
}

func (s *subject) waitOf(tenant ringi.Tenant, opened float64, change func(*ringi.WaitRow)) *line {
	s.Helper()
	l := s.runOf(tenant)
	row := ringi.WaitRow{Step: "wait", Event: "paid", Key: "o-1", Generation: 1, OpenedAt: at(opened)}
	if change != nil {
		change(&row)
	}
	w := l.start("")
	w.Waits = []store.WaitChange{{Step: row.Step, Row: &row}}
	l.do(w)
	return l
}

// pairs lists pairs as "run step event", of one name and key and of all, which
// must agree where there is no other.
func (s *subject) pairs() []string {
	s.Helper()
	var texts [2][]string
	for i, q := range []store.PairQuery{{Tenant: tenant, Name: "paid", Key: "o-1", Limit: 100}, {Limit: 100}} {
		list, err := s.h.Events.Pairs(s.ctx, q)
		s.must(err)
		for _, p := range list {
			texts[i] = append(texts[i], fmt.Sprintf("%s %s %s", p.Key.Run, p.Step, p.Event.ID))
		}
	}
	if fmt.Sprint(texts[0]) != fmt.Sprint(texts[1]) {
		s.Errorf("pairs of the name are %v, of all %v", texts[0], texts[1])
	}
	return texts[0]
}

func (s *subject) wantPairs(want ...string) {
	s.Helper()
	if got := s.pairs(); fmt.Sprint(got) != fmt.Sprint(want) {
		s.Errorf("pairs %v, want %v", got, want)
	}
}

func (s *subject) expire(now float64, limit int) int {
	s.Helper()
	n, err := s.h.Events.Expire(s.ctx, at(now), limit)
	s.must(err)
	return n
}

func knownEvents(s *subject) {
	s.send("e1", 1, 100)
	for what, change := range map[string]func(*ringi.SentEvent){
		"name": func(e *ringi.SentEvent) { e.Name = "shipped" },
		"key":  func(e *ringi.SentEvent) { e.Key = "o-2" },
		"data": func(e *ringi.SentEvent) { e.Data = json.RawMessage(`{"amount":99}`) },
		"none": func(e *ringi.SentEvent) { e.Data = nil },
	} {
		e := event("e1", 9)
		change(&e)
		created, err := s.h.Events.Send(s.ctx, tenant, e, at(100))
		var known *store.EventKnown
		if created || !errors.As(err, &known) || fmt.Sprint(known.Event) != fmt.Sprint(event("e1", 1)) {
			s.Errorf("another %s: created %v, %v, want *EventKnown with the event that is stored", what, created, err)
		}
	}
	if created, err := s.h.Events.Send(s.ctx, 2, event("e1", 1), at(100)); err != nil || !created {
		s.Errorf("the id in another tenant: created %v, %v, want true", created, err)
	}
}

func eventTests() []suiteTest {
	pair := func(l *line, id string) string { return fmt.Sprintf("%s wait %s", l.Key.Run, id) }
	return []suiteTest{
		{"an event is stored once per id", func(s *subject) { // S-16
			s.send("e1", 1, 100)
			created, err := s.h.Events.Send(s.ctx, tenant, event("e1", 9), at(100))
			s.must(err)
			if created {
				s.Error("a repeated id made another event")
			}
			l := s.wait(2, nil)
			list, err := s.h.Events.Pairs(s.ctx, store.PairQuery{Tenant: tenant, Name: "paid", Key: "o-1", Limit: 9})
			s.must(err)
			if len(list) != 1 || list[0].Key != l.Key || string(list[0].Event.Data) != `{"amount":12}` || !list[0].Event.SentAt.Equal(at(1)) {
				s.Errorf("pairs %+v, want the event that was stored first", list)
			}
		}},
		{"an id that is known with another name, key or data is refused with what is stored", knownEvents}, // S-16
		{"sent before, at and after the opening of its wait it is found", func(s *subject) {
			l := s.wait(10, nil)
			for i, sent := range []float64{9, 10, 11} {
				id := fmt.Sprint("e", i)
				s.send(id, sent, 50)
				s.wantPairs(pair(l, "e0")) // the oldest first, one pair per wait
			}
		}},
		{"of several the oldest comes first", func(s *subject) {
			l := s.wait(10, nil)
			s.send("later", 5, 50)
			s.send("earlier", 4, 50)
			s.wantPairs(pair(l, "earlier"))
		}},
		{"every wait of the name and key gets it", func(s *subject) {
			a, b := s.wait(1, nil), s.wait(2, nil)
			s.wait(1, func(r *ringi.WaitRow) { r.Key = "o-2" })
			s.waitOf(2, 1, nil)
			s.send("e1", 3, 50)
			s.wantPairs(pair(a, "e1"), pair(b, "e1"))
		}},
		{"an event that expired before the wait opened is not found", func(s *subject) {
			s.send("e1", 1, 10)
			s.wait(10, nil)
			s.wantPairs()
		}},
		{"a wait that was open at sending is served however late", func(s *subject) {
			l := s.wait(0, nil)
			s.send("e1", 1, 2)
			if n := s.expire(1000, 9); n != 0 {
				s.Errorf("%d events expired although a wait is open for one", n)
			}
			s.wantPairs(pair(l, "e1"))
		}},
		{"a run does not receive the event that started it", func(s *subject) {
			l := s.wait(0, func(r *ringi.WaitRow) { r.NotEvent = "e1" })
			s.send("e1", 1, 50)
			s.wantPairs()
			s.send("e2", 2, 50)
			s.wantPairs(pair(l, "e2"))
		}},
		{"a wait that ended is not found", func(s *subject) {
			l := s.wait(0, nil)
			s.send("e1", 1, 50)
			w := l.next(1)
			w.Waits = []store.WaitChange{{Step: "wait"}}
			l.do(w)
			s.wantPairs()
		}},
		{"expiry deletes what no wait is open for, within its limit", func(s *subject) {
			s.send("e1", 1, 10)
			s.send("e2", 1, 10)
			s.send("e3", 1, 11)
			if a, b, c := s.expire(9, 9), s.expire(10, 1), s.expire(10, 9); a != 0 || b != 1 || c != 1 {
				s.Errorf("%d, %d, %d events expired, want 0, 1, 1", a, b, c)
			}
			l := s.wait(2, nil)
			s.wantPairs(pair(l, "e3"))
		}},
		{"a limit holds", func(s *subject) {
			s.send("e1", 1, 50)
			s.wait(2, nil)
			s.wait(2, nil)
			list, err := s.h.Events.Pairs(s.ctx, store.PairQuery{Limit: 1})
			s.must(err)
			if len(list) != 1 {
				s.Errorf("%d pairs, want 1", len(list))
			}
		}},
	}
}
