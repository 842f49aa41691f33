package store

import (
	"errors"
	"fmt"

	"github.com/ringiflow/ringi"
)

// CheckBatch refuses writes that no driver can apply: it returns a *BadWrite
// that names the first of them, or nil. Drivers call it before they touch the
// database, so that all refuse alike.
func CheckBatch(writes []Write) error {
	runs := make(map[Key]bool, len(writes))
	for i := range writes {
		w := &writes[i]
		if runs[w.Key] {
			return &BadWrite{Index: i, Err: fmt.Errorf("run %s has two writes in one batch; fold them into one", w.Key.Run)}
		}
		runs[w.Key] = true
		if err := w.check(); err != nil {
			return &BadWrite{Index: i, Err: err}
		}
	}
	return nil
}

func (w *Write) check() error {
	if _, ok := RunBytes(w.Key.Run); !ok {
		return fmt.Errorf("run id %q is not a UUID in lower-case canonical form", w.Key.Run)
	}
	switch {
	case w.First < 1:
		return fmt.Errorf("first sequence is %d; sequences begin at 1", w.First)
	case (w.First == 1) != (len(w.Prev) == 0):
		return fmt.Errorf("first sequence is %d and the chain head before it has %d bytes; only a start has none", w.First, len(w.Prev))
	case w.Body == nil && w.Start != nil:
		return errors.New("a start without events")
	case w.Body == nil:
		return nil
	case w.Last < w.First:
		return fmt.Errorf("events %d to %d; the last is below the first", w.First, w.Last)
	case len(w.Head) == 0 || w.Commit == CommitID{}:
		return errors.New("events without a chain head or a commit id")
	case (w.First == 1) != (w.Start != nil):
		return fmt.Errorf("first sequence is %d; the list row is inserted by the first event, and only by it", w.First)
	}
	return nil
}

// RunBytes returns the 16 bytes of a run id; false when the id is not a UUID
// in lower-case canonical form, the one spelling that a database gives back.
func RunBytes(id ringi.RunID) (raw [16]byte, ok bool) {
	if len(id) != 36 {
		return raw, false
	}
	n := 0
	for i := 0; i < len(id); i++ {
		c := id[i]
		if i == 8 || i == 13 || i == 18 || i == 23 {
			if c != '-' {
				return raw, false
			}
			continue
		}
		var v byte
		switch {
		case '0' <= c && c <= '9':
			v = c - '0'
		case 'a' <= c && c <= 'f':
			v = c - 'a' + 10
		default:
			return raw, false
		}
		raw[n/2] = raw[n/2]<<4 | v
		n++
	}
	return raw, true
}

// RunText is the run id of 16 bytes, the reverse of RunBytes.
func RunText(raw []byte) ringi.RunID {
	if len(raw) != 16 {
		return ""
	}
	const digits = "0123456789abcdef"
	text := make([]byte, 0, 36)
	for i, b := range raw {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			text = append(text, '-')
		}
		text = append(text, digits[b>>4], digits[b&15])
	}
	return ringi.RunID(text)
}
