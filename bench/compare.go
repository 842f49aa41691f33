package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// CompareConfig says what is compared.
type CompareConfig struct {
	W3        W3Config // of ours; Database, Inflight and Runs are set here
	Databases []string // on each of which ours is measured
	Levels    []int    // runs in flight
	For       time.Duration

	// Peers is a directory with a program run.sh, which measures the peer that its
	// first argument names, a directory beside it, at the levels -levels and for
	// -dur each, and says in its last line "results: FILE": an object per point in
	// a line of that file, as PeerPoint. "" is none.
	Peers string
}

// A ComparePoint is one measured point, of ours or of a peer.
type ComparePoint struct {
	Engine        string  `json:"engine"`
	Inflight      int     `json:"inflight"`
	RunsPerSecond float64 `json:"runsPerSecond"`
	P50MS         float64 `json:"p50Ms"`
	P99MS         float64 `json:"p99Ms"`
	CPUMSPerRun   float64 `json:"cpuMsPerRun"`
}

// CompareResult is what was measured, and why something was not.
type CompareResult struct {
	Name    string         `json:"name"`
	Points  []ComparePoint `json:"points"`
	Missing []string       `json:"missing"`
}

// A PeerPoint is a line of a peer's results; points of another mode than closed
// are not compared.
type PeerPoint struct {
	Peer        string  `json:"peer"`
	Mode        string  `json:"mode"`
	Concurrency int     `json:"concurrency"`
	Throughput  float64 `json:"workflows_per_s"`
	P50         float64 `json:"p50_ms"`
	P99         float64 `json:"p99_ms"`
	CPU         float64 `json:"cpu_ms_per_wf"`
}

// Compare measures ours, and then the peers that are there. What is missing is
// no error; it is named.
func Compare(ctx context.Context, cfg CompareConfig) (CompareResult, error) {
	if cfg.W3.Told == nil {
		cfg.W3.Told = func(string) {}
	}
	out := CompareResult{Name: "compare", Points: []ComparePoint{}, Missing: []string{}}
	for _, database := range cfg.Databases {
		points, err := Sweep(ctx, cfg.W3, database, cfg.Levels, cfg.For)
		if err != nil {
			return out, err
		}
		for _, p := range points {
			out.Points = append(out.Points, ComparePoint{
				Engine: "ringi-" + p.Store, Inflight: p.Inflight, RunsPerSecond: p.RunsPerSecond, P50MS: p.P50MS, P99MS: p.P99MS, CPUMSPerRun: p.CPUMSPerRun,
			})
		}
	}
	peers, err := peersIn(cfg.Peers)
	if err != nil {
		out.Missing = append(out.Missing, err.Error())
	}
	for _, peer := range peers {
		cfg.W3.Told("measuring " + peer)
		points, err := cfg.peer(ctx, peer)
		if ctx.Err() != nil {
			return out, ctx.Err()
		}
		if err != nil {
			out.Missing = append(out.Missing, fmt.Sprintf("%s: %v", peer, err))
		}
		out.Points = append(out.Points, points...)
	}
	return out, nil
}

// Sweep measures W3 at several numbers of runs in flight, without its floor.
func Sweep(ctx context.Context, cfg W3Config, database string, levels []int, each time.Duration) ([]W3Result, error) {
	var list []W3Result
	for _, n := range levels {
		cfg.Database, cfg.Inflight, cfg.Runs, cfg.For, cfg.FloorFor = database, n, 0, each, -1
		r, err := W3(ctx, cfg)
		if err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return list, nil
}

// peerProgram measures a peer.
const peerProgram = "run.sh"

// peersIn lists the peers of a directory. The error says what is missing.
func peersIn(dir string) ([]string, error) {
	if dir == "" {
		return nil, errors.New("peers: no directory with their harness was named")
	}
	if _, err := os.Stat(filepath.Join(dir, peerProgram)); err != nil {
		return nil, fmt.Errorf("peers: %s has no %s that measures them", dir, peerProgram)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("peers: %w", err)
	}
	var peers []string
	for _, e := range entries {
		if _, err := os.Stat(filepath.Join(dir, e.Name(), "main.go")); e.IsDir() && !errors.Is(err, fs.ErrNotExist) {
			peers = append(peers, e.Name())
		}
	}
	if len(peers) == 0 {
		return nil, fmt.Errorf("peers: %s has no peer: a directory with a main.go", dir)
	}
	return peers, nil
}

// peer measures one peer.
func (c *CompareConfig) peer(ctx context.Context, peer string) ([]ComparePoint, error) {
	levels := make([]string, len(c.Levels))
	for i, n := range c.Levels {
		levels[i] = strconv.Itoa(n)
	}
	cmd := exec.CommandContext(ctx, "bash", filepath.Join(c.Peers, peerProgram), peer, "-levels", strings.Join(levels, ","), "-dur", c.For.String(), "-open", "0")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	failed := cmd.Run()
	lines := strings.Split(strings.TrimSpace(said.String()), "\n")
	last := lines[len(lines)-1]
	file, found := strings.CutPrefix(last, "results: ")
	if failed != nil {
		return nil, fmt.Errorf("it was not measured: %s: %w", last, failed)
	}
	if !found {
		return nil, fmt.Errorf("it did not say where its results are: %s", last)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return peerPoints(raw)
}

func peerPoints(raw []byte) (points []ComparePoint, err error) {
	for line := range bytes.Lines(raw) {
		var p PeerPoint
		if err := json.Unmarshal(line, &p); err != nil {
			return points, fmt.Errorf("a line of its results cannot be read: %w", err)
		}
		if p.Mode == "closed" {
			points = append(points, ComparePoint{Engine: p.Peer, Inflight: p.Concurrency, RunsPerSecond: p.Throughput, P50MS: p.P50, P99MS: p.P99, CPUMSPerRun: p.CPU})
		}
	}
	slices.SortStableFunc(points, func(a, b ComparePoint) int { return a.Inflight - b.Inflight })
	return points, nil
}
