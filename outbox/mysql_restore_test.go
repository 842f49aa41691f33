package outbox_test

import (
	"bytes"
	"errors"
	"net"
	"os/exec"
	"strings"
	"testing"

	"github.com/ringiflow/ringi/outbox"
)

// nameOf returns the database of an address.
func nameOf(url string) string {
	_, name, _ := strings.Cut(url, "/")
	name, _, _ = strings.Cut(name, "?")
	return name
}

// A dump by the database's own tool goes on in another database.
func TestADumpOfMariaDBGoesOnInAnother(t *testing.T) { // O-4
	old, oldURL := dialectMySQL.empty(t)
	f := dialectMySQL.fixture(old)
	f.put(t, order(1, "a"), order(2, "a"), order(3, "b"))
	for i, m := range f.claim(t, begin, 3) { // one delivered, one failed, one under way
		switch i {
		case 0:
			f.mark(t, begin, m, outbox.MarkDelivered, begin)
		case 1:
			f.mark(t, begin, m, outbox.MarkFailed, begin)
		}
	}
	host, port, err := net.SplitHostPort(maria.server.Address())
	if err != nil {
		t.Fatal(err)
	}
	client := []string{"--no-defaults", "--host=" + host, "--port=" + port, "--protocol=tcp", "--user=root"}
	text, err := exec.Command("mariadb-dump", append(client, nameOf(oldURL))...).Output()
	if err != nil {
		t.Fatal(err)
	}
	newURL := newMySQL(t, maria.server)
	restore := exec.Command("mariadb", append(client, nameOf(newURL))...)
	restore.Stdin = bytes.NewReader(text)
	if out, err := restore.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	db := openMySQL(t, newURL) // with the tables that are there
	w := newWorld(t, dialectMySQL.fixture(db), nil)
	w.put(t, order(4, "a"), order(5, "b"))
	w.pass(t, 10*outbox.DefaultLease, outbox.DefaultLease/3)
	if got := w.taken(); got != "a/2 a/3 b/1 b/2" {
		t.Errorf("got %q", got)
	}
	const parts = `select group_concat(part order by id) from outbox where id <= ?`
	var before, after string
	err = errors.Join(old.QueryRow(parts, id(3)).Scan(&before), db.QueryRow(parts, id(3)).Scan(&after))
	if err != nil || before != after {
		t.Errorf("partitions were %s and are %s, %v", before, after, err)
	}
}
