package api_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/api"
)

// W31: of servers on one database the first is asked, and for some seconds after
// it did not answer the next, by whoever asks again.
func TestAClientOfSeveralServersGoesToTheNextAndComesBack(t *testing.T) {
	var up [2]bool
	var asked []int
	var addresses [2]string
	for i := range addresses {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked = append(asked, i)
			if !up[i] {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			_, _ = w.Write([]byte(`{}`))
		}))
		defer s.Close()
		addresses[i] = s.URL
	}
	clock := time.Unix(0, 0)
	c, err := api.NewClient(api.ClientConfig{Address: addresses[0] + ", " + addresses[1] + "/", Now: func() time.Time { return clock }})
	if err != nil {
		t.Fatal(err)
	}
	check := func(at int, answers bool) {
		t.Helper()
		asked = nil
		err := c.Check(t.Context())
		if len(asked) != 1 || asked[0] != at || (err == nil) != answers {
			t.Errorf("asked %v, %v, want server %d", asked, err, at)
		}
	}
	up[0], up[1] = true, true
	check(0, true)
	check(0, true)
	up[0] = false
	check(0, false) // it repeats nothing by itself
	check(1, true)
	clock = clock.Add(time.Minute)
	check(0, false) // the first is tried again, and is still away
	check(1, true)
	up[1] = false
	check(1, false)
	up[0] = true
	check(0, true)
}

func TestAListOfServersIsRefusedForOneThatIsNone(t *testing.T) {
	for _, list := range []string{"", "http://a,", "http://a,b:7070", "http://a,ftp://b"} {
		if _, err := api.NewClient(api.ClientConfig{Address: list}); ringi.ErrorCode(err) != ringi.CodeInvalid {
			t.Errorf("%q: %v", list, err)
		}
	}
}
