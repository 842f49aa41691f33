package access_test

import (
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/access"
)

// clock is a time that a test moves.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time          { return c.now }
func (c *clock) forward(d time.Duration) { c.now = c.now.Add(d) }

// write replaces a file, and makes sure that its time differs from before.
func write(t *testing.T, file, text string, modified time.Time) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(file, modified, modified); err != nil {
		t.Fatal(err)
	}
}

func who(t *testing.T, k *access.Keys, key string) string {
	t.Helper()
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("Authorization", "Bearer "+key)
	p, err := k.Who(r)
	if err != nil {
		if ringi.ErrorCode(err) != ringi.CodeUnauthenticated {
			t.Errorf("error %v", err)
		}
		return ""
	}
	return p.ID
}

func TestAChangedFileIsReadAgain(t *testing.T) { // H-19
	file := filepath.Join(t.TempDir(), "keys")
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	c := &clock{now: start}
	write(t, file, "alice person - read "+sum("a")+"\n", start)
	var trouble []string
	keys, err := access.Open(access.Config{File: file, Now: c.Now, Trouble: func(err error) { trouble = append(trouble, err.Error()) }})
	if err != nil {
		t.Fatal(err)
	}
	if who(t, keys, "a") != "alice" || who(t, keys, "b") != "" {
		t.Error("the first state of the file is not in force")
	}

	write(t, file, "bobby person - read "+sum("b")+"\n", start.Add(time.Second)) // of the same size
	c.forward(time.Second)
	if who(t, keys, "a") != "" || who(t, keys, "b") != "bobby" {
		t.Error("a key that was taken away still works, or a new one does not")
	}

	write(t, file, "bobby person\n", start.Add(2*time.Second))
	c.forward(time.Second)
	if who(t, keys, "b") != "bobby" || len(trouble) != 1 || !strings.Contains(trouble[0], "keys:1: ") {
		t.Errorf("a wrong line must leave the keys in force and be told; told %q", trouble)
	}
	c.forward(time.Second)
	who(t, keys, "b")
	if len(trouble) != 1 {
		t.Errorf("told %d times of one change", len(trouble))
	}

	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		c.forward(time.Second)
		if who(t, keys, "b") != "bobby" {
			t.Error("a file that is gone must leave the keys in force")
		}
	}
	if len(trouble) != 2 {
		t.Errorf("told %q", trouble)
	}

	write(t, file, "carol person - read "+sum("c")+"\n", start.Add(3*time.Second))
	c.forward(time.Second)
	if who(t, keys, "c") != "carol" || who(t, keys, "b") != "" {
		t.Error("a file that is back is not read")
	}
}

func TestAFileWithoutKeysIsSaid(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys")
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	c := &clock{now: start}
	write(t, file, "# nobody\n", start)
	said := 0
	keys, err := access.Open(access.Config{File: file, Now: c.Now, Trouble: func(err error) {
		if errors.Is(err, access.ErrNoKeys) {
			said++
		}
	}})
	if err != nil || said != 1 {
		t.Fatalf("said %d times: %v", said, err)
	}
	write(t, file, "alice person - read "+sum("a")+"\n", start.Add(time.Second))
	c.forward(time.Second)
	if who(t, keys, "a") != "alice" || said != 1 {
		t.Errorf("with a key it was said %d times", said)
	}
	write(t, file, "", start.Add(2*time.Second))
	c.forward(time.Second)
	if who(t, keys, "a") != "" || said != 2 {
		t.Errorf("without it was said %d times", said)
	}
}

func TestAFileThatCannotBeReadIsSaidAtOnce(t *testing.T) {
	dir := t.TempDir()
	if _, err := access.Open(access.Config{File: filepath.Join(dir, "none")}); err == nil {
		t.Error("a missing file: no error")
	}
	file := filepath.Join(dir, "keys")
	write(t, file, "alice\n", time.Unix(1, 0))
	if _, err := access.Open(access.Config{File: file}); err == nil || !strings.Contains(err.Error(), "keys:1: ") {
		t.Errorf("a wrong line: %v", err)
	}
}

func TestOnlyOneBearerKeyIsTaken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys")
	write(t, file, "alice person - read "+sum("a")+"\n", time.Unix(1, 0))
	keys, err := access.Open(access.Config{File: file})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		headers []string
		ok      bool
	}{
		{nil, false},
		{[]string{"Bearer a"}, true},
		{[]string{"bearer  a "}, true},
		{[]string{"Bearer"}, false},
		{[]string{"Bearer "}, false},
		{[]string{"Basic a"}, false},
		{[]string{"a"}, false},
		{[]string{"Bearer b"}, false},
		{[]string{"Bearer b", "Bearer a"}, false},
	} {
		r := httptest.NewRequest("GET", "/?key=a", nil)
		r.Header["Authorization"] = c.headers
		p, err := keys.Who(r)
		if (err == nil) != c.ok || c.ok && p.ID != "alice" {
			t.Errorf("%q: %+v, %v", c.headers, p, err)
		}
		if err != nil && ringi.ErrorCode(err) != ringi.CodeUnauthenticated {
			t.Errorf("%q: code %s", c.headers, ringi.ErrorCode(err))
		}
	}
}
