package ndjson

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/ringiflow/ringi/outbox"
)

const (
	// eventStart is how every line of a File begins, as outbox.AppendCloudEvent writes it.
	eventStart = `{"specversion":"1.0"`

	// tornLimit is the longest unfinished line that is repaired, in bytes. No
	// message becomes a longer line, even with every byte escaped.
	tornLimit = 4 << 20
)

// File is the outbox.Sink that appends one CloudEvent per line to a file and answers
// after an fsync, one per batch. One process at a time may write a file. Safe
// for concurrent use.
//
// A crash can leave the last line unfinished. Such a line was never
// acknowledged, so it is cut off when the file is opened, and its message is
// sent again.
type File struct {
	path   string
	source string

	mu     sync.Mutex
	f      *os.File // nil after a failure; the next batch opens it anew
	closed bool
}

var _ outbox.Sink = (*File)(nil)

// OpenFile returns a sink that appends to the file at path, which is made (mode
// 0600) if it is not there. source is the events' CloudEvents source; empty
// means outbox.DefaultEventSource. It refuses what is not a regular file, and a file
// whose unfinished last line is not an event, since that is somebody else's.
func OpenFile(path, source string) (*File, error) {
	s := &File{path: path, source: source}
	if err := s.open(); err != nil {
		return nil, err
	}
	return s, nil
}

// Publish implements outbox.Sink. When the disk is full or fails, nothing of the batch
// is acknowledged and what was written of it is cut off again as far as possible;
// what could not be comes again under the same ids.
func (s *File) Publish(ctx context.Context, msgs []outbox.Message) []error {
	if err := ctx.Err(); err != nil {
		return answers(len(msgs), err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return answers(len(msgs), s.write(msgs))
}

func (s *File) write(msgs []outbox.Message) error {
	if s.closed {
		return fmt.Errorf("ndjson: file %s: %w", s.path, fs.ErrClosed)
	}
	if s.f == nil {
		if err := s.open(); err != nil {
			return err
		}
	}
	before, err := s.f.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = s.f.Write(appendLines(nil, s.source, msgs))
	}
	if err == nil {
		err = s.f.Sync()
	}
	if err == nil {
		return nil
	}
	// After a failed write or sync nothing about the descriptor can be
	// trusted, so it is given up; opening repairs what the cut could not.
	f := s.f
	s.f = nil
	return fmt.Errorf("ndjson: append %d messages to %s: %w", len(msgs), s.path, errors.Join(err, f.Truncate(before), f.Close()))
}

// Close closes the file. Publishing afterwards fails. Closing twice is fine.
func (s *File) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.f == nil {
		return nil
	}
	f := s.f
	s.f = nil
	if err := f.Close(); err != nil {
		return fmt.Errorf("ndjson: close file: %w", err)
	}
	return nil
}

func (s *File) open() error {
	f, err := os.OpenFile(s.path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("ndjson: open file: %w", err)
	}
	if err := repair(f); err != nil {
		return errors.Join(fmt.Errorf("ndjson: file %s: %w", s.path, err), f.Close())
	}
	if err := syncDir(filepath.Dir(s.path)); err != nil {
		return errors.Join(fmt.Errorf("ndjson: file %s: make its name durable: %w", s.path, err), f.Close())
	}
	s.f = f
	return nil
}

// repair cuts an unfinished last line off and makes that durable.
func repair(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("is not a regular file; write to standard output instead")
	}
	size := info.Size()
	tail := make([]byte, min(size, tornLimit))
	if _, err := f.ReadAt(tail, size-int64(len(tail))); err != nil {
		return fmt.Errorf("read its end: %w", err)
	}
	end := bytes.LastIndexByte(tail, '\n') + 1
	torn := tail[end:]
	if len(torn) == 0 {
		return nil
	}
	// A file system may have grown the file before it wrote the bytes: NULs.
	text := bytes.TrimRight(torn, "\x00")
	start := text[:min(len(text), len(eventStart))]
	if (end == 0 && size > tornLimit) || !bytes.HasPrefix([]byte(eventStart), start) {
		return errors.New("its last line has no end and is not an event of this sink; is it another program's file? Choose another path, or end the line")
	}
	if err := f.Truncate(size - int64(len(torn))); err != nil {
		return fmt.Errorf("cut off its unfinished last line: %w", err)
	}
	return f.Sync()
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
