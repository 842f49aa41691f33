package wal

import (
	"encoding/binary"
	"math/bits"

	"github.com/ringiflow/ringi/outbox"
)

// partitionOf is the partition of a message as the database computes it in the
// column part, which logical replication leaves out because it is generated. The
// relay that has the partition is told of the message and no other. Where the
// database computes another, as in one that is not in UTF-8, the claim finds
// nothing and the message is left to polling.
func partitionOf(tenant int64, aggregateID string) int {
	return int(hashText(aggregateID, uint64(tenant)) % outbox.Partitions)
}

// hashText is hashtextextended of PostgreSQL: Bob Jenkins' lookup3 over the bytes,
// twelve at a time, with the seed as a first twelve.
func hashText(text string, seed uint64) uint64 {
	k := []byte(text)
	a := 0x9e3779b9 + uint32(len(k)) + 3923095
	b, c := a, a
	if seed != 0 {
		a, b, c = mix(a+uint32(seed>>32), b+uint32(seed), c)
	}
	for ; len(k) >= 12; k = k[12:] {
		a, b, c = mix(a+word(k), b+word(k[4:]), c+word(k[8:]))
	}
	var rest [12]byte
	// The lowest byte of the last word is where the length would be.
	copy(rest[:8], k)
	if len(k) > 8 {
		copy(rest[9:], k[8:])
	}
	_, b, c = finish(a+word(rest[:]), b+word(rest[4:]), c+word(rest[8:]))
	return uint64(b)<<32 | uint64(c)
}

func word(k []byte) uint32 { return binary.LittleEndian.Uint32(k) }

// mix stirs three words so that each bit changes all.
func mix(a, b, c uint32) (uint32, uint32, uint32) {
	for _, turn := range [2][3]int{{4, 6, 8}, {16, 19, 4}} {
		a = (a - c) ^ bits.RotateLeft32(c, turn[0])
		c += b
		b = (b - a) ^ bits.RotateLeft32(a, turn[1])
		a += c
		c = (c - b) ^ bits.RotateLeft32(b, turn[2])
		b += a
	}
	return a, b, c
}

// finish stirs the last words.
func finish(a, b, c uint32) (uint32, uint32, uint32) {
	c = (c ^ b) - bits.RotateLeft32(b, 14)
	a = (a ^ c) - bits.RotateLeft32(c, 11)
	b = (b ^ a) - bits.RotateLeft32(a, 25)
	c = (c ^ b) - bits.RotateLeft32(b, 16)
	a = (a ^ c) - bits.RotateLeft32(c, 4)
	b = (b ^ a) - bits.RotateLeft32(a, 14)
	c = (c ^ b) - bits.RotateLeft32(b, 24)
	return a, b, c
}
