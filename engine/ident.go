package engine

import (
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"io"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

// newUUID makes a UUIDv7 of a time and 74 random bits.
func newUUID(now time.Time, random io.Reader) (string, error) {
	var b [16]byte
	if _, err := io.ReadFull(random, b[6:]); err != nil {
		return "", fmt.Errorf("engine: no random bytes for an id: %w", err)
	}
	ms := now.UnixMilli()
	for i := range 6 {
		b[i] = byte(ms >> (8 * (5 - i)))
	}
	b[6] = b[6]&0x0f | 0x70
	b[8] = b[8]&0x3f | 0x80
	text := make([]byte, 36)
	hex.Encode(text, b[:4])
	hex.Encode(text[9:], b[4:6])
	hex.Encode(text[14:], b[6:8])
	hex.Encode(text[19:], b[8:10])
	hex.Encode(text[24:], b[10:])
	text[8], text[13], text[18], text[23] = '-', '-', '-', '-'
	return string(text), nil
}

func newCommitID(random io.Reader) (id store.CommitID, err error) {
	if _, err = io.ReadFull(random, id[:]); err != nil {
		err = fmt.Errorf("engine: no random bytes for a commit id: %w", err)
	}
	return id, err
}

// share spreads texts over n committers.
func share(text string, n int) int {
	h := fnv.New32a()
	_, _ = io.WriteString(h, text) // a hash takes everything
	return int(h.Sum32() % uint32(n))
}

// committerOf is the committer that a run belongs to: always the same one on
// this node, so that a run's commands meet in one place.
func committerOf(run ringi.RunID, n int) int { return share(string(run), n) }

// A startName is what a start key is unique within.
type startName struct {
	tenant     ringi.Tenant
	definition string
	key        string
}

// committerOfStart is the committer that all starts of one key go to.
func committerOfStart(s startName, n int) int {
	return share(fmt.Sprintf("%d/%s/%s", s.tenant, s.definition, s.key), n)
}

// newRunID draws a run id that belongs to the given committer of n.
func newRunID(now time.Time, random io.Reader, committer, n int) (ringi.RunID, error) {
	for {
		id, err := newUUID(now, random)
		if err != nil {
			return "", err
		}
		if run := ringi.RunID(id); committerOf(run, n) == committer {
			return run, nil
		}
	}
}
