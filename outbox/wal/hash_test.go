package wal_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ringiflow/ringi/outbox/wal"
)

// The partition that the reader computes is the one that the database computes.
func TestPartitionsAreThoseOfTheDatabase(t *testing.T) {
	s := open(t, shared(t))
	for n := range 60 {
		text := strings.Repeat("稟議-order/", 10)[:n]
		text = strings.ToValidUTF8(text, "?")
		for _, tenant := range []int64{0, 1, 7, 1 << 40, 1<<63 - 1} {
			want := s.text(`select (hashtextextended($1, $2) & 63)::text`, text, tenant)
			if got := fmt.Sprint(wal.PartitionOf(tenant, text)); got != want {
				t.Fatalf("tenant %d, %q: partition %s, the database says %s", tenant, text, got, want)
			}
		}
	}
}
