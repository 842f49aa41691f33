package postgres_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/store"
	"github.com/ringiflow/ringi/store/postgres"
)

// BenchmarkW3Rows is the floor of `bench w3`: the ten rows of a run of three
// activities in sequence (four of the log, two of the run, four of its task),
// written in batches with fsync, and nothing else.
func BenchmarkW3Rows(b *testing.B) {
	for _, batch := range []int{1, 16, 64, 256} {
		for _, mode := range []string{"prepared", "exec"} {
			b.Run(fmt.Sprintf("batch %d %s", batch, mode), func(b *testing.B) {
				url := database(b)
				if mode == "exec" {
					url += "&default_query_exec_mode=exec"
				}
				benchmarkW3Rows(b, openStore(b, postgres.Config{URL: url}), batch)
			})
		}
	}
}

func benchmarkW3Rows(b *testing.B, s *postgres.Store, batch int) {
	lines := make([]w3Line, batch)
	writes := make([]store.Write, batch)
	drawn := 0
	b.ResetTimer()
	for b.Loop() {
		for stage := range 4 {
			for i := range lines {
				if stage == 0 {
					lines[i] = newLine(drawn)
				}
				drawn++
				writes[i] = lines[i].write(stage, commitID(drawn))
			}
			c, err := s.Commit(b.Context(), writes...)
			if err != nil || len(c.Lost) > 0 {
				b.Fatal(err, c.Lost)
			}
		}
	}
	b.ReportMetric(float64(b.N*batch)/b.Elapsed().Seconds(), "runs/s")
	b.ReportMetric(0, "ns/op")
}

// w3Line is a run of three activities in sequence and where it stands.
type w3Line struct {
	key  store.Key
	seq  int64
	head []byte
}

// runID is the n-th run, ids growing as those of version 7 do.
func runID(n int) ringi.RunID {
	var id [16]byte
	id[0] = 1
	binary.BigEndian.PutUint64(id[8:], uint64(n))
	return store.RunText(id[:])
}

func commitID(n int) store.CommitID {
	id := store.CommitID{2}
	binary.BigEndian.PutUint64(id[8:], uint64(n))
	return id
}

func newLine(n int) w3Line {
	return w3Line{key: store.Key{Tenant: ringi.DefaultTenant, Run: runID(n)}}
}

// The bytes of a transition's events, as the engine makes them for an input
// of 200 bytes and an output of 100.
const (
	w3StartBody = 800
	w3NextBody  = 600
)

// write is the write of one of the four transitions, and moves the line.
func (l *w3Line) write(stage int, id store.CommitID) store.Write {
	now := time.UnixMicro(1_800_000_000_000_000).UTC()
	size, events := w3NextBody, int64(2)
	if stage == 0 {
		size = w3StartBody
	}
	body := bytes.Repeat([]byte("x"), size)
	copy(body, id[:])
	w := store.Write{
		Key: l.key, Commit: id, First: l.seq + 1, Last: l.seq + events,
		Prev: l.head, Head: store.Chain(l.head, body), Body: body,
	}
	row := &ringi.TaskRow{
		Step: "reserve", Attempt: 1, Seq: w.Last, InputSeq: w.Last, Activity: "inventory.reserve", Queue: "default",
		ReadyAt: now, Timeout: 30 * time.Second, Heartbeat: 30 * time.Second, TotalAt: now.Add(15 * time.Minute),
	}
	lease := &store.Lease{Worker: "worker-1", At: now, Until: now.Add(5 * time.Second)}
	switch stage {
	case 0:
		w.Start = &store.StartRow{
			Definition: "order_fulfilment", Version: 1, Digest: "d", StartKey: string(l.key.Run), InputDigest: "i",
			Requester: "carol", Title: "Order 7", StartedAt: now, RunRow: ringi.RunRow{Status: ringi.Running},
		}
	case 3:
		w.Run = &ringi.RunRow{Status: ringi.Completed, EndedAt: now}
		row, lease = nil, nil
	}
	if stage > 0 {
		w.Needs = []ringi.Need{{Token: ringi.TaskRow{Seq: l.seq}.Token(1)}}
	}
	w.Tasks = []store.TaskChange{{Row: row, Fresh: row != nil, Lease: lease}}
	l.seq, l.head = w.Last, w.Head
	return w
}
