package postgres

import (
	"encoding/binary"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
)

// The types of arguments, by their fixed numbers in PostgreSQL. Naming them
// with every statement saves asking the server, which would be a round trip
// and, behind a pooler, another server's answer.
const (
	oidBool      = 16
	oidBytes     = 17
	oidInt       = 20
	oidText      = 25
	oidUUID      = 2950
	oidTime      = 1184
	oidTexts     = 1009
	oidInts      = 1016
	oidBools     = 1000
	oidBytesList = 1001
	oidUUIDs     = 2951
	oidTimes     = 1185
)

// args are the arguments of one statement, in the binary format of the
// protocol. They are written by hand: a batch has thousands of values, and the
// general codecs of the driver ask each one for its type.
type args struct {
	oids   []uint32
	values [][]byte // nil is null
}

func (a *args) add(oid uint32, value []byte) {
	a.oids = append(a.oids, oid)
	a.values = append(a.values, value)
}

func (a *args) int(n int64) { a.add(oidInt, binary.BigEndian.AppendUint64(nil, uint64(n))) }

func (a *args) text(s string) { a.add(oidText, []byte(s)) }

func (a *args) time(t time.Time) { a.add(oidTime, appendTime(nil, t)) }

// bytes are null when they are nil.
func (a *args) bytes(b []byte) { a.add(oidBytes, b) }

// run is null for a text that is no run id, which no row equals.
func (a *args) run(id ringi.RunID) {
	raw, ok := store.RunBytes(id)
	if !ok {
		a.add(oidUUID, nil)
		return
	}
	a.add(oidUUID, raw[:])
}

// list adds the columns of a table of arguments.
func (a *args) list(columns ...*column) {
	for _, c := range columns {
		a.add(c.array, c.done())
	}
}

// size is about how many bytes the arguments take in a message.
func (a *args) size() (n int) {
	for _, v := range a.values {
		n += len(v) + 4
	}
	return n
}

// A column is an array of values of one type, as it goes over the wire: a
// header, then each value behind its length.
type column struct {
	elem, array uint32
	n           int
	nulls       bool
	buf         []byte // behind the header
}

func ints() *column      { return &column{elem: oidInt, array: oidInts} }
func texts() *column     { return &column{elem: oidText, array: oidTexts} }
func uuids() *column     { return &column{elem: oidUUID, array: oidUUIDs} }
func times() *column     { return &column{elem: oidTime, array: oidTimes} }
func bools() *column     { return &column{elem: oidBool, array: oidBools} }
func bytesList() *column { return &column{elem: oidBytes, array: oidBytesList} }

const arrayHeader = 20

// begin makes room for the header and writes the length of the next value.
func (c *column) begin(length int) {
	if c.buf == nil {
		c.buf = make([]byte, arrayHeader, 256)
	}
	c.n++
	c.buf = binary.BigEndian.AppendUint32(c.buf, uint32(length))
}

// room makes room for values that are so many with so many bytes together.
func (c *column) room(values, bytes int) {
	c.buf = make([]byte, arrayHeader, arrayHeader+4*values+bytes)
}

func (c *column) null() {
	c.begin(-1)
	c.nulls = true
}

func (c *column) int(n int64) {
	c.begin(8)
	c.buf = binary.BigEndian.AppendUint64(c.buf, uint64(n))
}

func (c *column) text(s string) {
	c.begin(len(s))
	c.buf = append(c.buf, s...)
}

func (c *column) textOrNull(s string) {
	if s == "" {
		c.null()
		return
	}
	c.text(s)
}

func (c *column) bytes(b []byte) {
	c.begin(len(b))
	c.buf = append(c.buf, b...)
}

// bytesOrNull tells nil from empty.
func (c *column) bytesOrNull(b []byte) {
	if b == nil {
		c.null()
		return
	}
	c.bytes(b)
}

func (c *column) bool(b bool) {
	c.begin(1)
	if b {
		c.buf = append(c.buf, 1)
		return
	}
	c.buf = append(c.buf, 0)
}

// time is null when it is zero.
func (c *column) time(t time.Time) {
	if t.IsZero() {
		c.null()
		return
	}
	c.begin(8)
	c.buf = appendTime(c.buf, t)
}

// run is null for "" and whatever else is no run id.
func (c *column) run(id ringi.RunID) {
	raw, ok := store.RunBytes(id)
	if !ok {
		c.null()
		return
	}
	c.bytes(raw[:])
}

// key adds a run's key to two columns.
func addKey(tenants, runs *column, k store.Key) {
	tenants.int(int64(k.Tenant))
	runs.run(k.Run)
}

// done writes the header.
func (c *column) done() []byte {
	if c.n == 0 {
		return binary.BigEndian.AppendUint32(make([]byte, 8, 12), c.elem) // an array without dimensions
	}
	head := c.buf[:0:arrayHeader]
	head = binary.BigEndian.AppendUint32(head, 1) // dimensions
	nulls := uint32(0)
	if c.nulls {
		nulls = 1
	}
	head = binary.BigEndian.AppendUint32(head, nulls)
	head = binary.BigEndian.AppendUint32(head, c.elem)
	head = binary.BigEndian.AppendUint32(head, uint32(c.n))
	binary.BigEndian.AppendUint32(head, 1) // the first index
	return c.buf
}

// epoch is the second from which PostgreSQL counts microseconds, in ours.
const epoch = 946_684_800_000_000

func appendTime(buf []byte, t time.Time) []byte {
	return binary.BigEndian.AppendUint64(buf, uint64(t.UnixMicro()-epoch))
}
