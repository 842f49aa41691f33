package main

import (
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/cmd/ringi/cli"
)

// A disk on which nothing more can be written: 503 and not ready, nothing
// answered that is not durable, and on again in the same process.
func TestADiskThatTakesNothingMoreIsUnavailableUntilItDoes(t *testing.T) {
	w := newDesk(t)
	r := w.start("serve", "--outbox", "off")
	w.write("paid.yaml", paidDefinition)
	w.ok(nil, "publish", "paid.yaml")
	before := w.begin("paid", "-i", "order=before")
	w.write("large.json", `{"order":"`+strings.Repeat("A", 200)+`","rest":"`+strings.Repeat("x", 200_000)+`"}`)
	for i := range 8 { // the limit is this process's too: below it what go test itself writes has room
		w.begin("paid", "--input", "@large.json", "--key", fmt.Sprint("room ", i))
	}
	large := []string{"paid", "--input", "@large.json", "--key", "large"}

	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	wal, err := os.Stat(filepath.Join(w.dir, "ringi.db-wal"))
	if err != nil {
		t.Fatal(err)
	}
	var unlimited syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &unlimited); err != nil {
		t.Fatal(err)
	}
	limit := func(l syscall.Rlimit) {
		t.Helper()
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &l); err != nil {
			t.Fatal(err)
		}
	}
	defer limit(unlimited)
	limit(syscall.Rlimit{Cur: uint64(wal.Size()) + 100, Max: unlimited.Max})
	w.exits(cli.ExitUnreachable, nil, append([]string{"start"}, large...)...)
	eventually(t, "a readiness of 503", func() bool { return statusOf(t, r.url+"/readyz") == http.StatusServiceUnavailable })
	if s := w.show(before.Run); s.Status != ringi.Waiting {
		t.Errorf("what was answered before is %+v", s)
	}

	limit(unlimited)
	eventually(t, "readiness", func() bool { return statusOf(t, r.url+"/readyz") == http.StatusOK })
	if run := w.begin(large...); run.Status != ringi.Waiting {
		t.Errorf("afterwards: %+v", run)
	}
	w.ok(nil, "replay", "--all")
}
