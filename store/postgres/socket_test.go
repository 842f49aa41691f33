package postgres_test

import (
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/ringiflow/ringi/store/postgres"
)

// W31: a message of the size that the pipeline form allows lies in the kernel
// as a whole although the server reads nothing.
func TestTheLargestMessageIsSentInOneGo(t *testing.T) {
	for network, address := range map[string]string{"tcp": "127.0.0.1:0", "unix": filepath.Join(t.TempDir(), "s")} {
		l, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		nc, room, err := postgres.Dial(t.Context(), network, l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if err := nc.SetWriteDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if n, err := nc.Write(make([]byte, room)); err != nil {
			t.Errorf("%s: of a message of %d bytes %d were taken: %v", network, room, n, err)
		}
		if room < 64<<10 {
			t.Errorf("%s: messages of at most %d bytes are too small for a batch", network, room)
		}
		nc.Close()
		l.Close()
	}
}
