package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/cmd/ringi/cli"
	"github.com/ringiflow/ringi/store/postgres/pgtest"
)

// A smallDisk is a file system of few megabytes that can be filled to its last
// byte, and emptied again.
type smallDisk struct {
	t       *testing.T
	dir     string
	ballast string
}

// sharedMemory is where Linux programs share memory through files.
const sharedMemory = "/dev/shm"

// smallest is how large a file system may be that a test fills.
const smallest = 128 << 20

// newSmallDisk mounts one in memory. A container whose root may not mount has
// one of its own for shared memory, of 64 MiB.
func newSmallDisk(t *testing.T) *smallDisk {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // the server is another user
		t.Fatal(err)
	}
	if mount := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=32m,mode=0755"); mount == nil {
		t.Cleanup(func() {
			if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
				t.Errorf("unmount: %v", err)
			}
		})
	} else {
		var fs syscall.Statfs_t
		if err := syscall.Statfs(sharedMemory, &fs); err != nil || int64(fs.Blocks)*fs.Bsize > smallest {
			t.Fatalf("this test fills a small file system: run it as root that may mount one (%v), or where %s is one of at most %d MiB (%v)", mount, sharedMemory, smallest>>20, err)
		}
		dir = filepath.Join(sharedMemory, fmt.Sprint("ringi-disk-", os.Getpid()))
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
	}
	return &smallDisk{t, dir, filepath.Join(dir, "ballast")}
}

// fill leaves not one byte.
func (d *smallDisk) fill() {
	d.t.Helper()
	f, err := os.OpenFile(d.ballast, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		d.t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 20; size > 0; {
		if _, err := f.Write(make([]byte, size)); errors.Is(err, syscall.ENOSPC) {
			size /= 2
		} else if err != nil {
			d.t.Fatal(err)
		}
	}
}

// free makes space again.
func (d *smallDisk) free() {
	d.t.Helper()
	if err := os.Remove(d.ballast); err != nil {
		d.t.Fatal(err)
	}
}

// sub makes a directory that the server's user may write.
func (d *smallDisk) sub(name string) string {
	d.t.Helper()
	dir := filepath.Join(d.dir, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		d.t.Fatal(err)
	}
	if os.Geteuid() != 0 {
		return dir
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		d.t.Fatal(err)
	}
	uid, err := strconv.Atoi(u.Uid)
	if err == nil {
		err = os.Chown(dir, uid, -1)
	}
	if err != nil {
		d.t.Fatal(err)
	}
	return dir
}

// W31, TC-28: a database whose tables have no room, or whose log has none, so
// that its server ends: 503 and not ready, nothing acknowledged that is not
// stored, and on again in the same process once there is space.
func TestADatabaseWithoutSpaceIsUnavailableUntilItHas(t *testing.T) {
	for _, full := range []struct {
		what  string
		start func(d *smallDisk) (*pgtest.Server, string)
		over  func(pg *pgtest.Server) error
	}{
		{"tables", tablesOn, func(*pgtest.Server) error { return nil }},
		{"log", logOn, func(pg *pgtest.Server) error {
			// The server ends, and may not come up again by itself.
			return errors.Join(pg.Crash(), pg.Resume(t.Context()))
		}},
	} {
		t.Run(full.what, func(t *testing.T) {
			d := newSmallDisk(t)
			pg, url := full.start(d)
			w := newDesk(t)
			w.env["RINGI_DATABASE"] = url
			r := w.start("serve", "--outbox", "off")
			w.write("paid.yaml", paidDefinition)
			w.ok(nil, "publish", "paid.yaml")
			w.write("large.json", `{"order":"large","rest":"`+strings.Repeat("x", 200_000)+`"}`)
			large := func(n int) []string {
				return []string{"paid", "--input", "@large.json", "--key", fmt.Sprint("large-", n)}
			}
			runs := []ringi.RunID{w.begin("paid", "-i", "order=before").Run}

			d.fill()
			refused := 0
			for n := 0; refused == 0; n++ { // until the room within files is used up
				switch got := w.run(append([]string{"start", "--json"}, large(n)...)...); got.code {
				case cli.ExitOK:
					var started struct{ Run ringi.RunID }
					if err := json.Unmarshal([]byte(got.out), &started); err != nil {
						t.Fatal(err)
					}
					runs = append(runs, started.Run)
				case cli.ExitUnreachable:
					refused = n
				default:
					t.Fatalf("a start on a full disk: %+v", got)
				}
			}
			eventually(t, "a readiness of 503", func() bool { return statusOf(t, r.url+"/readyz") == http.StatusServiceUnavailable })

			d.free()
			if err := full.over(pg); err != nil {
				t.Fatal(err)
			}
			eventually(t, "readiness", func() bool { return statusOf(t, r.url+"/readyz") == http.StatusOK })
			runs = append(runs, w.begin(large(refused)...).Run)
			for _, run := range runs {
				if s := w.show(run); s.Status != ringi.Waiting {
					t.Errorf("run %s: %+v", run, s)
				}
			}
			w.ok(nil, "replay", "--all")
		})
	}
}

// tablesOn starts a server with a database on the disk and everything else not.
func tablesOn(d *smallDisk) (*pgtest.Server, string) {
	d.t.Helper()
	pg := startPostgres(d.t, pgtest.Config{})
	for _, text := range []string{"create tablespace small location '" + d.sub("tables") + "'", "create database small tablespace small"} {
		if err := pg.Exec(d.t.Context(), "postgres", text); err != nil {
			d.t.Fatal(err)
		}
	}
	return pg, pg.URL("small")
}

// logOn starts a server with its write-ahead log on the disk.
func logOn(d *smallDisk) (*pgtest.Server, string) {
	d.t.Helper()
	pg := startPostgres(d.t, pgtest.Config{
		InitArgs: []string{"--wal-segsize=1", "--waldir", filepath.Join(d.sub("log"), "wal")},
		Settings: map[string]string{"min_wal_size": "2MB", "max_wal_size": "8MB"},
	})
	return pg, pg.URL("postgres")
}

func startPostgres(t *testing.T, c pgtest.Config) *pgtest.Server {
	t.Helper()
	pg, err := pgtest.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pg.Close() })
	return pg
}
