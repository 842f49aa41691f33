package httpstep

import (
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ringiflow/ringi"
)

const (
	// shareOf is which part of the slots the calls to one host may take: three
	// hosts that hang leave room for all others.
	shareOf = 4
	// arrival is how long a task that was let through counts although its call has
	// not begun: it may have been handed to nobody. Longer than the lease of a
	// hand-over, in which it begins or never does.
	arrival = 10 * time.Second
	// firstGuess is how long a call is taken to last to a host that has not
	// answered yet.
	firstGuess = 100 * time.Millisecond
	// shortestWait keeps tasks from coming back before anything can have changed.
	shortestWait = 20 * time.Millisecond
	// longestWait is how late it can be found that a host has become quick again:
	// as long as an attempt usually may last.
	longestWait = 30 * time.Second
	// fewHosts is how many hosts are kept before those are looked for that nobody
	// calls any more.
	fewHosts = 256
)

// A share bounds how many of the slots the calls to one host take, so that a host
// that is slow holds up nobody but itself. A task that finds its host busy is told
// when to come again: the calls of the host that wait are placed one behind the
// other, as far apart as its calls end. So each is looked at about twice, however
// many there are, and the host is not idle meanwhile.
//
// Rejected alternatives: to wait in the slot takes the slots all the same; to wait
// beside them uses up the time of the attempt, which counts from the hand-out; a
// queue for each host makes as many polls as there are hosts.
type share struct {
	most int // calls to one host

	mu    sync.Mutex
	hosts map[string]*host // those that are called or waited for
	sweep int              // how many hosts there are when idle ones are looked for
}

// A host is where calls go, by name and port.
type host struct {
	calls map[callID]call
	took  time.Duration // how long calls last, of late
	next  time.Time     // when the last one comes that was told to wait
}

// A call was let through, or is under way.
type call struct {
	since    time.Time
	underWay bool
}

// A callID is one hand-out of one call.
type callID struct {
	run   ringi.RunID
	step  string
	token int64
}

func idOf(task ringi.Task) callID { return callID{task.Run, task.Step, task.Token} }

func newShare(slots int) *share {
	return &share{most: max(slots/shareOf, 1), hosts: map[string]*host{}, sweep: fewHosts}
}

// Later says how long a task shall wait since its host has all the calls that it
// may have at once; 0 lets it through. Give it to engine.Config.Later of the
// engine that hands out the tasks of the performer's queue.
func (p *Performer) Later(task ringi.Task) time.Duration {
	var r struct {
		URL string `json:"url"`
	}
	if json.Unmarshal(task.Input, &r) != nil {
		return 0 // it cannot be sent, and fails at once
	}
	u, err := url.Parse(r.URL)
	if err != nil {
		return 0
	}
	return p.share.later(hostOf(u), idOf(task), p.config.Now())
}

// hostOf names where a url leads, in one way for all its spellings.
func hostOf(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = "443"
		if strings.EqualFold(u.Scheme, "http") {
			port = "80"
		}
	}
	if n, err := strconv.ParseUint(port, 10, 16); err == nil {
		port = strconv.FormatUint(n, 10) // 0443 is 443
	}
	return strings.TrimSuffix(strings.ToLower(u.Hostname()), ".") + " " + port
}

// of finds or makes a host. The caller holds the lock.
func (s *share) of(name string, now time.Time) *host {
	h := s.hosts[name]
	if h == nil {
		if len(s.hosts) >= s.sweep {
			s.forget(now)
		}
		h = &host{calls: map[callID]call{}, took: firstGuess}
		s.hosts[name] = h
	}
	return h
}

// forget drops the hosts that nobody calls or waits for.
func (s *share) forget(now time.Time) {
	for name, h := range s.hosts {
		h.expire(now)
		if len(h.calls) == 0 && !h.next.After(now) {
			delete(s.hosts, name)
		}
	}
	s.sweep = 2*len(s.hosts) + fewHosts
}

// expire drops the calls that were let through and never began.
func (h *host) expire(now time.Time) {
	for id, c := range h.calls {
		if !c.underWay && now.Sub(c.since) >= arrival {
			delete(h.calls, id)
		}
	}
}

// lasts is how long a call is taken to last: as long as those before, or as those
// under way have lasted, if that is longer.
func (h *host) lasts(now time.Time) time.Duration {
	var sum time.Duration
	for _, c := range h.calls {
		sum += now.Sub(c.since)
	}
	return max(h.took, sum/time.Duration(max(len(h.calls), 1)))
}

func (s *share) later(name string, id callID, now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.of(name, now)
	h.expire(now)
	if len(h.calls) < s.most {
		h.calls[id] = call{since: now}
		return 0
	}
	if h.next.Before(now) {
		h.next = now
	}
	h.next = h.next.Add(h.lasts(now) / time.Duration(s.most))
	if h.next.Sub(now) > longestWait {
		h.next = now.Add(longestWait / 2) // more than can be foreseen: they come again and are told again
	}
	return max(h.next.Sub(now), shortestWait)
}

// begin counts a call that is under way. The returned function ends it.
func (s *share) begin(name string, id callID, clock func() time.Time) (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	begun := clock()
	s.of(name, begun).calls[id] = call{since: begun, underWay: true}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		now := clock()
		h := s.of(name, now)
		delete(h.calls, id)
		const weight = 4 // of what is known against one more call
		h.took += (now.Sub(begun) - h.took) / weight
	}
}
