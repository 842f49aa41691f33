package bench_test

import (
	"context"
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ringiflow/ringi/bench"
)

func TestALongHistoryIsLoadedAndReplayed(t *testing.T) {
	dir := t.TempDir()
	got, err := bench.Load(t.Context(), bench.LoadConfig{Database: "sqlite:" + filepath.Join(dir, "x.db"), Events: 700, Now: time.Now})
	if err != nil || got.Name != "load" || got.Events < 700 || got.LoadMS <= 0 {
		t.Errorf("measured %+v, %v", got, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if _, err := bench.Load(t.Context(), bench.LoadConfig{Database: "sqlite:" + filepath.Join(dir, "x.db"), Events: 1_000_000, Now: time.Now}); err == nil {
		t.Error("a run cannot have a million events")
	}
}

// What fills the database is runs like all others: it can be replayed.
func TestANodeStartsOnADatabaseFullOfRuns(t *testing.T) {
	dir := t.TempDir()
	var runs int
	got, err := bench.Start(t.Context(), bench.StartConfig{
		Database: "sqlite:" + filepath.Join(dir, "x.db"), Finished: 2500, Waiting: 31, Now: time.Now,
		Node: func(ctx context.Context, database string) (bench.NodeProcess, error) {
			var err error
			if runs, err = bench.Replayed(ctx, database); err != nil {
				return bench.NodeProcess{}, err
			}
			ready := false
			report, err := bench.ServeNode(ctx, database, time.Now, func() { ready = true })
			if !ready {
				t.Error("it was never ready")
			}
			return bench.NodeProcess{Report: func() (bench.NodeReport, error) { return report, err }}, nil
		},
	})
	if err != nil || got.Name != "start" || got.ReadySeconds <= 0 || got.RSSBytes <= 0 || got.ClaimP99MS <= 0 || runs != 2531 {
		t.Errorf("measured %+v after %d runs, %v", got, runs, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestPeersAreMeasuredAndWhatIsMissingIsNamed(t *testing.T) {
	dir := t.TempDir()
	peers := filepath.Join(dir, "peers")
	for _, name := range []string{"common", "fast", "broken"} {
		if err := os.MkdirAll(filepath.Join(peers, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	files := map[string]string{
		"fast/main.go": "", "broken/main.go": "",
		"results": `{"peer":"fast-pg","mode":"closed","concurrency":3,"workflows_per_s":7.5,"p50_ms":1,"p99_ms":2,"cpu_ms_per_wf":0.5}
{"peer":"fast-pg","mode":"open","rate_per_s":3}
`,
		"run.sh": `[ "$*" = "$1 -levels 3 -dur 50ms -open 0" ] || exit 2
if [ "$1" = fast ]; then echo noise; echo "results: $(dirname "$0")/results"; else echo "nobody built it"; exit 1; fi
`,
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(peers, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := bench.CompareConfig{
		W3: bench.W3Config{Warm: -1, Now: time.Now}, Databases: []string{"sqlite:" + filepath.Join(dir, "x.db")},
		Levels: []int{3}, For: 50 * time.Millisecond, Peers: peers,
	}
	got, err := bench.Compare(t.Context(), c)
	if err != nil || len(got.Points) != 2 || got.Points[0].Engine != "ringi-sqlite" || got.Points[0].RunsPerSecond <= 0 {
		t.Fatalf("compared %+v, %v", got, err)
	}
	if want := (bench.ComparePoint{Engine: "fast-pg", Inflight: 3, RunsPerSecond: 7.5, P50MS: 1, P99MS: 2, CPUMSPerRun: 0.5}); got.Points[1] != want {
		t.Errorf("the peer is %+v", got.Points[1])
	}
	if len(got.Missing) != 1 || !strings.HasPrefix(got.Missing[0], "broken: ") || !strings.Contains(got.Missing[0], "nobody built it") {
		t.Errorf("missing is %q", got.Missing)
	}
	c.Peers, c.Databases = "", nil
	if got, err := bench.Compare(t.Context(), c); err != nil || len(got.Missing) != 1 || !strings.Contains(got.Missing[0], "no directory") {
		t.Errorf("compared %+v, %v", got, err)
	}
}

func TestTheDrawingHoldsEveryPoint(t *testing.T) {
	for _, points := range [][]bench.W3Result{
		nil,
		{{Inflight: 1}},
		{{Inflight: 1, RunsPerSecond: 321, P99MS: 1.5}, {Inflight: 64, RunsPerSecond: 4999, P99MS: 31}},
	} {
		svg := bench.SVG("W3 <on> & sqlite", points)
		var any struct {
			Circles []struct{} `xml:"circle"`
			Texts   []string   `xml:"text"`
		}
		if err := xml.Unmarshal([]byte(svg), &any); err != nil || len(any.Circles) != 2*len(points) || any.Texts[0] != "W3 <on> & sqlite" {
			t.Errorf("%v, %d circles, %q", err, len(any.Circles), any.Texts)
		}
	}
}
