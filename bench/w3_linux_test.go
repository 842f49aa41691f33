package bench_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ringiflow/ringi/bench"
)

func TestMemoryIsNoDiskToMeasure(t *testing.T) {
	_, err := bench.W3(t.Context(), bench.W3Config{Database: "sqlite:/dev/shm/ringi-w3.db", Now: time.Now})
	if err == nil || !strings.Contains(err.Error(), "which is memory and has no disk to wait for: name a database on a disk") {
		t.Error(err)
	}
}
