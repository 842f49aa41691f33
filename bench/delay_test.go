package bench_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/ringiflow/ringi/bench"
	"github.com/ringiflow/ringi/store/postgres/pgtest"
)

// The numbers are for people; that each source was measured at each rate and nothing
// is left behind is for the test.
func TestDelaysAreMeasuredOfEachSourceAndLeaveNothing(t *testing.T) {
	server, err := pgtest.Start(t.Context(), pgtest.Config{Settings: map[string]string{"wal_level": "logical"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	got, err := bench.Delays(t.Context(), bench.DelayConfig{
		Database: server.URL("postgres"), Sink: "file:" + filepath.Join(t.TempDir(), "events"), Now: time.Now,
		Sources: []string{bench.SourcePoll, bench.SourceWAL}, Rates: []int{10, 500}, For: 300 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Delays) != 4 {
		t.Fatalf("measured %+v", got)
	}
	for i, d := range got.Delays {
		if d.Source != []string{bench.SourcePoll, bench.SourceWAL}[i%2] || d.Rate != []int{10, 500}[i/2] || d.Messages == 0 || d.P99MS < d.P50MS || d.MaxMS < d.P99MS {
			t.Errorf("measured %+v", d)
		}
		if told := d.ToldByLog > 0; d.Source == bench.SourcePoll && told || d.Source == bench.SourceWAL && d.Rate == 500 && !told {
			t.Errorf("%s was told of %.2f by the log", d.Source, d.ToldByLog)
		}
	}
	leftovers(t, "postgres", "", server.URL("postgres"))
}
