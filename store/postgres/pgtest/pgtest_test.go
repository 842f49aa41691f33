//go:build unix

package pgtest_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ringiflow/ringi/store/postgres/pgtest"
)

func number(t *testing.T, url, text string) string {
	t.Helper()
	conn, err := pgconn.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	res := conn.ExecParams(t.Context(), text, nil, nil, nil, nil).Read()
	if res.Err != nil {
		t.Fatal(res.Err)
	}
	return string(res.Rows[0][0])
}

// W31: what was committed outlives a crash of the server, and its address stays.
func TestWhatWasCommittedOutlivesACrash(t *testing.T) {
	s, err := pgtest.Start(t.Context(), pgtest.Config{Settings: map[string]string{"work_mem": "5MB"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		for range 2 {
			if err := s.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		}
	}()
	url := s.URL("postgres")
	if err := s.Exec(t.Context(), "postgres", "create table a (n int); insert into a values (7)"); err != nil {
		t.Fatal(err)
	}
	for name, end := range map[string]func() error{"crash": s.Crash, "stop": s.Stop} {
		if err := end(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if conn, err := pgconn.Connect(t.Context(), url); err == nil {
			conn.Close(context.Background())
			t.Errorf("after a %s it still answers", name)
		}
		if err := s.Resume(t.Context()); err != nil {
			t.Fatalf("start after a %s: %v", name, err)
		}
		if got := number(t, s.SocketURL("postgres"), "select n from a"); got != "7" {
			t.Errorf("after a %s: %s, want 7", name, got)
		}
	}
	for setting, want := range map[string]string{"work_mem": "5MB", "fsync": "on"} {
		if got := number(t, url, "show "+setting); got != want {
			t.Errorf("%s is %s, want %s", setting, got, want)
		}
	}
}
