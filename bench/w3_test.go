package bench_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ringiflow/ringi/api"
	"github.com/ringiflow/ringi/bench"
	"github.com/ringiflow/ringi/store/postgres/pgtest"
)

// BenchmarkW3 runs bench w3, DESIGN section 9: runs of three activities, each
// step durable with fsync, input of 200 bytes and outputs of 100, the worker
// through ringi.Service with tasks, leases and tokens as in production.
func BenchmarkW3(b *testing.B) {
	for _, inFlight := range []int{1, 64, 512} {
		b.Run(fmt.Sprintf("inflight=%d", inFlight), func(b *testing.B) {
			r, err := bench.W3(b.Context(), bench.W3Config{
				Database: "sqlite:" + filepath.Join(b.TempDir(), "w3.db"), Inflight: inFlight, Runs: b.N, Warm: -1, FloorFor: -1, Now: time.Now,
			})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(r.RunsPerSecond, "runs/s")
			b.ReportMetric(r.MeanBatch, "writes/commit")
			b.ReportMetric(r.RowsPerRun, "rows/run")
		})
	}
}

// The numbers are for people; that everything was measured, that nothing is left
// behind and that what ran can be replayed is for the test.
func TestW3IsMeasuredBesideItsFloorAndLeavesNothing(t *testing.T) {
	for _, kind := range []string{"sqlite", "postgres"} {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			database := "sqlite:" + filepath.Join(dir, "w3.db")
			if kind == "postgres" {
				server, err := pgtest.Start(t.Context(), pgtest.Config{})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() {
					if err := server.Close(); err != nil {
						t.Error(err)
					}
				})
				database = server.URL("postgres")
			}
			for _, c := range []bench.W3Config{
				{Inflight: 8},
				{Inflight: 8, Rate: 20, Payload: 1000},
				{Inflight: 8, Mode: bench.ModeHTTP, Worker: remoteWorker},
				{Inflight: 8, Branches: 20, FloorFor: -1},
				{Inflight: 8, Steps: 25, Nodes: 3, FloorFor: -1},
			} {
				if kind == "sqlite" {
					c.Nodes = 0
				}
				if c.FloorFor == 0 {
					c.FloorFor = time.Millisecond
				}
				c.Database, c.Runs, c.Warm, c.Now = database, 40, -1, time.Now
				got, err := bench.W3(t.Context(), c)
				if err != nil {
					t.Fatal(err)
				}
				if got.Name != "w3" || got.Store != kind || got.Inflight != 8 || got.Nodes != c.Nodes || (got.Conflicts != nil) != (c.Nodes > 1) || got.Branches != c.Branches || got.Runs != 40 || got.FileSystem == "" {
					t.Errorf("measured %+v", got)
				}
				if got.RunsPerSecond <= 0 || got.P50MS <= 0 || got.P95MS < got.P50MS || got.P99MS < got.P95MS || got.CPUMSPerRun <= 0 || got.Commits < 4 || got.MeanBatch < 1 {
					t.Errorf("measured %+v", got)
				}
				// A run writes ten rows, and three more when each of its tasks was claimed.
				if got.RowsPerRun < 10 || got.BytesPerRun < 1000+float64(c.Payload) {
					t.Errorf("measured %+v", got)
				}
				if c.FloorFor < 0 {
					continue
				}
				if got.FloorRunsPerSecond < got.FloorSameBatch || got.FloorBatch < 1 || got.FloorSameBatch <= 0 || got.FloorP50MS <= 0 {
					t.Errorf("measured %+v", got)
				}
			}
			leftovers(t, kind, dir, database)
		})
	}
}

// remoteWorker is the worker of the HTTP mode, in the process of the test.
func remoteWorker(_ context.Context, server, keyFile string, slots int) (bench.WorkerProcess, error) {
	key, err := readKey(keyFile)
	if err != nil {
		return bench.WorkerProcess{}, err
	}
	client, err := api.NewClient(api.ClientConfig{Address: server, Key: key})
	if err != nil {
		return bench.WorkerProcess{}, err
	}
	w, err := bench.NewW3Worker(client, slots)
	if err != nil {
		return bench.WorkerProcess{}, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	return bench.WorkerProcess{
		CPU:  func() (time.Duration, error) { return 0, nil },
		Stop: func() error { cancel(); return <-ended },
	}, nil
}

func readKey(file string) (string, error) {
	raw, err := os.ReadFile(file)
	return strings.TrimSpace(string(raw)), err
}

func TestW3ThatWouldMeasureNothingIsRefused(t *testing.T) {
	file := "sqlite:" + filepath.Join(t.TempDir(), "w3.db")
	for _, c := range []struct {
		config bench.W3Config
		want   string
	}{
		{bench.W3Config{Database: "mysql:x"}, "mysql"},
		{bench.W3Config{Database: file, Mode: "remote"}, "there is no mode"},
		{bench.W3Config{Database: file, Mode: bench.ModeHTTP}, "somebody has to start the worker"},
		{bench.W3Config{Database: file, Rate: -1}, "not below 0"},
		{bench.W3Config{Database: file, Nodes: 3}, "a SQLite file has one node"},
		{bench.W3Config{Database: file, Steps: 4, Branches: 4}, "in sequence or side by side"},
		{bench.W3Config{Database: "sqlite:" + filepath.Join(t.TempDir(), "missing", "x.db")}, "make a database beside"},
	} {
		c.config.Now = time.Now
		if _, err := bench.W3(t.Context(), c.config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.config, err, c.want)
		}
	}
}
