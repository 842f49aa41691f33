package access

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/ringiflow/ringi"
)

const (
	// keyPrefix lets people and scanners of secrets tell our keys from others.
	keyPrefix = "rg_"
	// keyBytes is the length of what is random in a key: 256 bits.
	keyBytes = 32
	// maxName is the most bytes of a name, a group or a scope, as of every name.
	maxName = 256
	// none stands for no groups or no scopes in a line.
	none = "-"
)

// A Principal is who a key belongs to and what it may be used for.
type Principal struct {
	ID     string
	Kind   ringi.ActorKind // Person or Machine
	Groups []string
	Scopes []string
	Tenant ringi.Tenant
}

// Actor is the principal as commands carry it.
func (p Principal) Actor() ringi.Actor {
	return ringi.Actor{ID: p.ID, Kind: p.Kind, Groups: p.Groups}
}

// Scopes lists the scopes that a key can have.
func Scopes() []string {
	return []string{"read", "start", "start_for", "work", "decide", "operate", "publish", "admin"}
}

// NewKey draws a key and the line that a key file holds for it. The key is shown
// once and stored nowhere. It fails on a principal that no line can say: a name
// or group with spaces or commas, a kind that is neither person nor machine, a
// scope that does not exist.
func NewKey(p Principal) (key, line string, err error) {
	secret := make([]byte, keyBytes)
	if _, err := rand.Read(secret); err != nil {
		return "", "", fmt.Errorf("access: no randomness for a key: %w", err)
	}
	key = keyPrefix + base64.RawURLEncoding.EncodeToString(secret)
	sum := sha256.Sum256([]byte(key))
	line = strings.Join([]string{p.ID, string(p.Kind), joined(p.Groups), joined(p.Scopes), hex.EncodeToString(sum[:])}, " ")
	read, err := parseLine(line)
	if err == nil && (!slices.Equal(read.principal.Groups, p.Groups) || !slices.Equal(read.principal.Scopes, p.Scopes)) {
		err = fmt.Errorf("a group or scope of %v has a comma or is empty", slices.Concat(p.Groups, p.Scopes))
	}
	if err != nil {
		return "", "", fmt.Errorf("access: no key for %q: %w", p.ID, err)
	}
	return key, line, nil
}

func joined(names []string) string {
	if len(names) == 0 {
		return none
	}
	return strings.Join(names, ",")
}

// A LineError is what is wrong with one line of a key file.
type LineError struct {
	File string
	Line int // from 1
	Err  error
}

// Error returns file, line and what is wrong.
func (e *LineError) Error() string { return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err) }

// Unwrap returns what is wrong.
func (e *LineError) Unwrap() error { return e.Err }

// A Ring is the keys of a file. It never changes and may be shared.
type Ring struct {
	entries []entry
}

type entry struct {
	sum       [sha256.Size]byte
	principal Principal
}

// Parse reads a key file; file names it in errors. Empty lines and lines that
// begin with # are left out. The first line that is wrong is a *LineError. Two
// lines may have one name (a key that replaces another), but not one key, nor
// one name in two kinds.
func Parse(file string, text []byte) (*Ring, error) {
	ring := &Ring{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		e, err := parseLine(line)
		if err == nil {
			err = ring.fits(e)
		}
		if err != nil {
			return nil, &LineError{File: file, Line: n, Err: err}
		}
		ring.entries = append(ring.entries, e)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("access: read %s: %w", file, err)
	}
	return ring, nil
}

func (r *Ring) fits(e entry) error {
	for _, other := range r.entries {
		if other.sum == e.sum {
			return fmt.Errorf("the key of %s is there twice: give %s a key of its own", other.principal.ID, e.principal.ID)
		}
		if other.principal.ID == e.principal.ID && other.principal.Kind != e.principal.Kind {
			return fmt.Errorf("%s is both person and machine: use two names", e.principal.ID)
		}
	}
	return nil
}

func parseLine(line string) (entry, error) {
	fields := strings.Fields(line)
	if len(fields) != 5 {
		return entry{}, fmt.Errorf("%d fields, want 5: name kind groups scopes sha256, with - for no groups", len(fields))
	}
	e := entry{principal: Principal{ID: fields[0], Kind: ringi.ActorKind(fields[1]), Tenant: ringi.DefaultTenant}}
	p := &e.principal
	if err := checkName("name", p.ID); err != nil {
		return entry{}, err
	}
	if p.Kind != ringi.Person && p.Kind != ringi.Machine {
		return entry{}, fmt.Errorf("the kind %q is not person or machine", p.Kind)
	}
	var err error
	if p.Groups, err = names("group", fields[2]); err != nil {
		return entry{}, err
	}
	if p.Scopes, err = names("scope", fields[3]); err != nil {
		return entry{}, err
	}
	for _, s := range p.Scopes {
		if !slices.Contains(Scopes(), s) {
			return entry{}, fmt.Errorf("there is no scope %q: use some of %s", s, strings.Join(Scopes(), " "))
		}
	}
	sum, err := hex.DecodeString(fields[4])
	if err != nil || len(sum) != sha256.Size {
		return entry{}, fmt.Errorf("the last field is not a SHA-256 in hex, which has %d digits", 2*sha256.Size)
	}
	copy(e.sum[:], sum)
	return e, nil
}

func names(what, list string) ([]string, error) {
	if list == none {
		return nil, nil
	}
	all := strings.Split(list, ",")
	for i, name := range all {
		if err := checkName(what, name); err != nil {
			return nil, err
		}
		if slices.Contains(all[:i], name) {
			return nil, fmt.Errorf("the %s %q is there twice", what, name)
		}
	}
	return all, nil
}

func checkName(what, name string) error {
	odd := func(r rune) bool { return r == ',' || r == unicode.ReplacementChar || !unicode.IsPrint(r) }
	switch {
	case name == "" || name == none || strings.HasPrefix(name, "#"):
		return fmt.Errorf("the %s %q is empty or a sign of the file", what, name)
	case len(name) > maxName:
		return fmt.Errorf("the %s %.40q… has %d bytes, more than %d", what, name, len(name), maxName)
	case strings.ContainsFunc(name, odd):
		return fmt.Errorf("the %s %q has characters that no name may have", what, name)
	}
	return nil
}

// Len is how many keys there are.
func (r *Ring) Len() int { return len(r.entries) }

// Find returns who a key belongs to. It takes as long for a key that is nearly
// right as for any other.
func (r *Ring) Find(key string) (Principal, bool) {
	sum := sha256.Sum256([]byte(key))
	found := -1
	for i := range r.entries {
		if subtle.ConstantTimeCompare(sum[:], r.entries[i].sum[:]) == 1 {
			found = i
		}
	}
	if found < 0 {
		return Principal{}, false
	}
	return r.entries[found].principal, true
}
