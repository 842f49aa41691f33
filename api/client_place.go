package api

import (
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/ringiflow/ringi"
)

// homeAfter is how long another server than the first is asked once the first
// did not answer: longer than a restart takes, and short enough for the work to
// be spread again soon after one.
const homeAfter = 3 * time.Second

// Addresses splits a list of addresses that are separated by commas, and
// refuses what is none.
func Addresses(list string) ([]string, error) {
	var all []string
	for part := range strings.SplitSeq(list, ",") {
		address := strings.TrimSpace(part)
		u, err := url.Parse(address)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" {
			return nil, &ringi.Error{
				Code: ringi.CodeInvalid, Message: fmt.Sprintf("the server's address %q is not one", address),
				Hint: "give http:// or https:// and a host, as in http://127.0.0.1:7070; several are separated by commas",
			}
		}
		all = append(all, strings.TrimRight(address, "/"))
	}
	return all, nil
}

// places are the servers of one database, of which any will do. The first is
// the one to ask; while it does not answer another is. It is safe for
// concurrent use.
type places struct {
	all []string
	now func() time.Time

	mu   sync.Mutex
	at   int
	left time.Time // when the first was left
}

// here is the server to ask now.
func (p *places) here() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.at != 0 && p.now().Sub(p.left) >= homeAfter {
		p.at = 0
	}
	return p.all[p.at]
}

// failed says that a server did not answer, or can answer nothing durably. Of
// several requests that met the same failure the first moves on.
func (p *places) failed(address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.all) == 1 || p.all[p.at] != address {
		return
	}
	if p.at == 0 {
		p.left = p.now()
	}
	p.at = (p.at + 1) % len(p.all)
}
