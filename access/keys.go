package access

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/ringiflow/ringi"
)

// lookAgain is how often at most the file is looked at: a key that is taken
// away works for no longer than this.
const lookAgain = time.Second

// Config says where keys are.
type Config struct {
	File string

	// Now is the clock; nil is time.Now.
	Now func() time.Time

	// Trouble sees why a changed file could not be taken; what was read last
	// stays in force. It sees ErrNoKeys when a file that was taken holds no key.
	// Nil drops it.
	Trouble func(error)
}

// ErrNoKeys says that a file of keys is in force that holds none: until a line
// is added, nobody is let in.
var ErrNoKeys = errors.New("access: the key file holds no key")

// Keys are the keys of a file, as it stands. They are safe for concurrent use.
type Keys struct {
	file    string
	now     func() time.Time
	trouble func(error)

	mu     sync.Mutex
	ring   *Ring
	looked time.Time
	seen   os.FileInfo // of the file that ring was read from, or that was refused; nil: there was none
}

// Open reads a key file. It fails when the file cannot be read or has a wrong
// line, which is a *LineError.
func Open(config Config) (*Keys, error) {
	k := &Keys{file: config.File, now: config.Now, trouble: config.Trouble}
	if k.now == nil {
		k.now = time.Now
	}
	if k.trouble == nil {
		k.trouble = func(error) {}
	}
	k.looked = k.now()
	ring, seen, err := k.read()
	if err != nil {
		return nil, err
	}
	k.ring, k.seen = ring, seen
	if ring.Len() == 0 {
		k.trouble(ErrNoKeys)
	}
	return k, nil
}

// read reads the file. What tells its states apart is taken before, so that a
// change meanwhile is found the next time.
func (k *Keys) read() (*Ring, os.FileInfo, error) {
	seen, err := os.Stat(k.file)
	if err != nil {
		return nil, nil, fmt.Errorf("access: the key file cannot be read: %w", err)
	}
	text, err := os.ReadFile(k.file)
	if err != nil {
		return nil, seen, fmt.Errorf("access: the key file cannot be read: %w", err)
	}
	ring, err := Parse(k.file, text)
	return ring, seen, err
}

// unchanged reports whether the file is the one that was seen last.
func (k *Keys) unchanged() bool {
	info, err := os.Stat(k.file)
	if err != nil {
		return k.seen == nil // still gone: said once is enough
	}
	return k.seen != nil && os.SameFile(info, k.seen) && info.ModTime().Equal(k.seen.ModTime()) && info.Size() == k.seen.Size()
}

// Ring returns the keys as the file has them, which is looked at once a second.
func (k *Keys) Ring() *Ring {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	if since := now.Sub(k.looked); since >= 0 && since < lookAgain {
		return k.ring
	}
	k.looked = now
	if k.unchanged() {
		return k.ring
	}
	ring, seen, err := k.read()
	k.seen = seen
	if err != nil {
		k.trouble(err)
		return k.ring
	}
	k.ring = ring
	if ring.Len() == 0 {
		k.trouble(ErrNoKeys)
	}
	return ring
}

// Who returns who sent a request, from its bearer key alone. An error is an
// *ringi.Error of CodeUnauthenticated.
func (k *Keys) Who(r *http.Request) (Principal, error) {
	headers := r.Header.Values("Authorization")
	if len(headers) == 0 {
		return Principal{}, unauthenticated("the request has no key", "send it as Authorization: Bearer KEY; see --key-file and RINGI_KEY_FILE")
	}
	scheme, key, _ := strings.Cut(headers[0], " ")
	if key = strings.TrimSpace(key); len(headers) > 1 || !strings.EqualFold(scheme, "Bearer") || key == "" {
		return Principal{}, unauthenticated("the Authorization header is not one bearer key", "send Authorization: Bearer KEY")
	}
	p, ok := k.Ring().Find(key)
	if !ok {
		return Principal{}, unauthenticated("the key is not known", "it may have been replaced; ask for a new one (ringi keys new)")
	}
	return p, nil
}

func unauthenticated(message, hint string) error {
	return &ringi.Error{Code: ringi.CodeUnauthenticated, Message: message, Hint: hint}
}
