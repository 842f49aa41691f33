package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ringiflow/ringi/cmd/ringi/cli"
)

// A server that others can reach must not take keys in clear text, nor be without.
func TestAServerThatOthersReachNeedsKeysAndTLS(t *testing.T) {
	w := newDesk(t)
	w.people(principal{"alice", "person", "", []string{"read"}})
	w.write("cert.pem", "not a certificate")
	for _, args := range []string{
		"--listen 0.0.0.0:0",
		"--listen :0",
		"--listen [::]:0",
		"--listen 0.0.0.0:0 --behind-proxy",
		"--listen 0.0.0.0:0 --keys keys",
		"--tls-cert cert.pem",
		"--tls-cert cert.pem --tls-key cert.pem",
		"--public-url ringi.example.com",
		"--keys missing",
		"--database sqlite:",
		"--outbox pigeon",
	} {
		if got := w.run(append([]string{"serve"}, strings.Fields(args)...)...); got.code != cli.ExitUsage || got.err == "" {
			t.Errorf("serve %s exits with %d: %s", args, got.code, got.err)
		}
	}
	if _, err := os.Stat(filepath.Join(w.dir, "ringi.db")); err == nil {
		t.Error("a refused server made a database")
	}
	w.write("broken", "alice person finance\n")
	if got := w.run("serve", "--keys", "broken"); got.code != cli.ExitUsage || !strings.Contains(got.err, "broken:1:") {
		t.Errorf("a broken file of keys: %+v", got)
	}
}

func TestAServerWithoutKeysMakesOneThatTheCommandsFind(t *testing.T) {
	w := newDesk(t)
	first := w.start("serve")
	key := filepath.Join(w.dir, "ringi.db.key")
	info, err := os.Stat(key)
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode().Perm(); mode != 0o600 && runtime.GOOS != "windows" {
		t.Errorf("the key has mode %o", mode)
	}
	w.ok(nil, "runs")
	before, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	if keys, err := os.ReadFile(key + "s"); err != nil || strings.Contains(string(keys), strings.TrimSpace(string(before))) {
		t.Errorf("the file of lines holds the key, or is not there: %v", err)
	}
	first.end()
	w.start("serve")
	if after, err := os.ReadFile(key); err != nil || string(after) != string(before) {
		t.Errorf("another start made another key: %v", err)
	}
	w.ok(nil, "runs")
}

// Keys: none, an unknown one, and one without the scope.
func TestWhoMayDoWhatFollowsFromTheKey(t *testing.T) {
	w := newDesk(t)
	w.people(
		principal{"reader", "person", "", []string{"read"}},
		principal{"starter", "machine", "", []string{"start"}},
		principal{"worker", "machine", "", []string{"work"}},
	)
	w.start("serve", "--keys", "keys")
	w.write("stranger", "rg_nobody\n")
	w.write("hello.yaml", helloDefinition)
	id := "01a22ccb-9bd7-76c4-83b7-b3a944c13ad1"
	for _, c := range []struct {
		key, args string
		want      int
	}{
		{"", "runs", cli.ExitNotAllowed},
		{"stranger", "runs", cli.ExitNotAllowed},
		{"reader", "runs", cli.ExitOK},
		{"reader", "start hello", cli.ExitNotAllowed},
		{"reader", "publish hello.yaml", cli.ExitNotAllowed},
		{"reader", "cancel " + id + " --reason r", cli.ExitNotAllowed},
		{"reader", "approve " + id + " s --digest d", cli.ExitNotAllowed},
		{"starter", "start hello", cli.ExitNotFound},
		{"starter", "runs", cli.ExitNotAllowed},
		{"worker", "send paid", cli.ExitNotAllowed},
		{"worker", "runs", cli.ExitNotAllowed},
	} {
		args := strings.Fields(c.args)
		if c.key != "" {
			args = append(args, "--key-file", c.key)
		}
		if got := w.run(args...); got.code != c.want {
			t.Errorf("ringi %s with the key of %q exits with %d, want %d: %s", c.args, c.key, got.code, c.want, got.err)
		}
	}
}

// H-14, H-17: a page in somebody's browser cannot act here.
func TestAWebPageCannotAct(t *testing.T) {
	w := newDesk(t)
	r := w.start("serve")
	key, err := cli.ReadKey(filepath.Join(w.dir, "ringi.db.key"))
	if err != nil {
		t.Fatal(err)
	}
	body := `{"definition":"hello"}`
	for _, c := range []struct {
		what        string
		method      string
		path        string
		change      func(*http.Request)
		want        int
		contentType string
	}{
		{"a foreign host", "GET", "/v1/runs", func(r *http.Request) { r.Host = "evil.example" }, http.StatusMisdirectedRequest, ""},
		{"a foreign host at the metrics", "GET", "/metrics", func(r *http.Request) { r.Host = "evil.example" }, http.StatusMisdirectedRequest, ""},
		{"a foreign origin", "POST", "/v1/runs", func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }, http.StatusForbidden, "application/json"},
		{"a form", "POST", "/v1/runs", func(*http.Request) {}, http.StatusUnsupportedMediaType, "application/x-www-form-urlencoded"},
		{"plain text", "POST", "/v1/runs", func(*http.Request) {}, http.StatusUnsupportedMediaType, "text/plain"},
		{"no key", "GET", "/v1/runs", func(r *http.Request) { r.Header.Del("Authorization") }, http.StatusUnauthorized, ""},
		{"an honest request", "GET", "/v1/runs", func(*http.Request) {}, http.StatusOK, ""},
		{"a look at its health", "GET", "/healthz", func(r *http.Request) { r.Header.Del("Authorization") }, http.StatusOK, ""},
		{"a look at its readiness", "GET", "/readyz", func(r *http.Request) { r.Header.Del("Authorization") }, http.StatusOK, ""},
	} {
		req, err := http.NewRequestWithContext(t.Context(), c.method, r.url+c.path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+key)
		if c.contentType != "" {
			req.Header.Set("Content-Type", c.contentType)
		}
		c.change(req)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != c.want {
			t.Errorf("%s is answered %d, want %d", c.what, resp.StatusCode, c.want)
		}
	}
}

func TestTheMetricsCountRunsAndCommits(t *testing.T) {
	w := newDesk(t)
	r := w.start("serve")
	w.write("hello.yaml", helloDefinition)
	w.write("broken.yaml", failDefinition)
	w.ok(nil, "publish", "hello.yaml", "broken.yaml")
	w.begin("hello", "-i", "who=you")
	w.begin("hello", "-i", "who=me", "--key", "K")
	w.begin("hello", "-i", "who=me", "--key", "K")
	w.begin("broken")
	text := fetch(t, r.url+"/metrics")
	for _, want := range []string{
		"ringi_runs_started_total 3\n", `ringi_runs_ended_total{status="completed"} 2`, `ringi_runs_ended_total{status="failed"} 1`,
		`ringi_attempts_expired_total{why="lease"} 0`, `ringi_outbox_messages{destination="",state="pending",tenant="0"} 0`, "ringi_commit_writes_bucket", "go_goroutines",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the metrics have no %s:\n%s", want, text)
		}
	}
}

func fetch(t *testing.T, url string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d, %v", url, resp.StatusCode, err)
	}
	return string(text)
}

const emitDefinition = `ringi: v1
name: tell
input: { type: object, required: [id], properties: { id: { type: string } } }
steps:
  - id: tell
    emit: { type: thing.done, aggregate: { type: Thing, id: "${ input.id }" }, data: { id: "${ input.id }" } }
`

// O1, O7: a message is written with its run and read by the relay.
func TestMessagesGoToTheFileBesideTheDatabase(t *testing.T) {
	w := newDesk(t)
	w.start("serve")
	w.write("tell.yaml", emitDefinition)
	w.ok(nil, "publish", "tell.yaml")
	w.begin("tell", "-i", "id=T-1")
	file := filepath.Join(w.dir, "ringi.db.events.ndjson")
	eventually(t, "the message", func() bool {
		text, err := os.ReadFile(file)
		return err == nil && strings.Contains(string(text), `"type":"thing.done"`) && strings.Count(string(text), "\n") == 1
	})
}

func TestMessagesGoWhereTheSettingSays(t *testing.T) {
	w := newDesk(t)
	r := w.start("serve", "--outbox", "stdout")
	w.write("tell.yaml", emitDefinition)
	w.ok(nil, "publish", "tell.yaml")
	w.begin("tell", "-i", "id=T-1")
	eventually(t, "the message", func() bool { return strings.Contains(r.out.String(), `"subject":"T-1"`) })
	r.end()
	off := w.start("serve", "--outbox", "off")
	w.begin("tell", "-i", "id=T-2")
	if text := fetch(t, off.url+"/metrics"); !strings.Contains(text, `ringi_outbox_messages{destination="",state="pending",tenant="1"} 1`) {
		t.Error("nothing waits although nobody reads")
	}
	off.end()
	w.start("serve", "--outbox", "file:later.ndjson")
	eventually(t, "the message that waited", func() bool {
		text, err := os.ReadFile(filepath.Join(w.dir, "later.ndjson"))
		return err == nil && strings.Contains(string(text), `"subject":"T-2"`)
	})
}

// certificate writes a certificate for this machine and its private key.
func (w *desk) certificate() {
	w.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		w.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"ringi.example.com"},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		w.t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		w.t.Fatal(err)
	}
	w.write("cert.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})))
	w.write("cert.key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
}

func TestAServerForOthersSpeaksTLSAndAnswersForItsPublicAddress(t *testing.T) {
	w := newDesk(t)
	w.certificate()
	w.people(principal{"alice", "person", "", []string{"read"}})
	r := w.startAt("0.0.0.0:0", "serve", "--keys", "keys", "--tls-cert", "cert.pem", "--tls-key", "cert.key", "--public-url", "https://ringi.example.com")
	_, port, err := net.SplitHostPort(strings.TrimPrefix(r.url, "https://"))
	if err != nil {
		t.Fatalf("it listens on %s: %v", r.url, err)
	}
	roots := x509.NewCertPool()
	pemText, err := os.ReadFile(filepath.Join(w.dir, "cert.pem"))
	if err != nil || !roots.AppendCertsFromPEM(pemText) {
		t.Fatal("no certificate")
	}
	key, err := cli.ReadKey(filepath.Join(w.dir, "alice"))
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	defer client.CloseIdleConnections()
	for host, want := range map[string]int{"ringi.example.com": http.StatusOK, "other.example.com": http.StatusMisdirectedRequest} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://127.0.0.1:"+port+"/v1/runs", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		req.Header.Set("Authorization", "Bearer "+key)
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("as %s it answers %d, want %d", host, resp.StatusCode, want)
		}
	}
}

func TestAServerBehindAProxyMayListenForOthers(t *testing.T) {
	w := newDesk(t)
	w.people(principal{"alice", "person", "", []string{"read"}})
	r := w.startAt("0.0.0.0:0", "serve", "--keys", "keys", "--behind-proxy")
	if code := r.end(); code != cli.ExitOK {
		t.Errorf("exits with %d: %s", code, r.err)
	}
}

func TestASecondServerOnOneDatabaseIsRefused(t *testing.T) {
	w := newDesk(t)
	w.start("serve")
	got := w.run("serve", "--listen", "127.0.0.1:0")
	if got.code != cli.ExitFailed || !strings.Contains(got.err, "in use by process") {
		t.Errorf("%+v", got)
	}
}

// A server that is refused leaves nothing behind: beside ringi dev it would
// otherwise take the keys of its people away.
func TestAServerThatIsRefusedWritesNothing(t *testing.T) {
	w := newDesk(t)
	w.start("dev")
	keys := filepath.Join(w.dir, ".ringi", "ringi.db.keys")
	before, err := os.ReadFile(keys)
	if err != nil {
		t.Fatal(err)
	}
	key, err := os.Stat(filepath.Join(w.dir, ".ringi", "ringi.db.key"))
	if err != nil {
		t.Fatal(err)
	}
	if got := w.run("serve", "--database", "sqlite:.ringi/ringi.db", "--listen", "127.0.0.1:0"); got.code != cli.ExitFailed || !strings.Contains(got.err, "in use by process") {
		t.Errorf("%+v", got)
	}
	after, err := os.ReadFile(keys)
	if err != nil || string(after) != string(before) {
		t.Errorf("the keys of dev became %s, %v", after, err)
	}
	if now, err := os.Stat(filepath.Join(w.dir, ".ringi", "ringi.db.key")); err != nil || !now.ModTime().Equal(key.ModTime()) {
		t.Errorf("the key of dev was touched: %v", err)
	}
	w.ok(nil, "runs", "--as", "alice")

	w.write("foreign.db", "this is a text and no database, and longer than the header of one would be: one hundred bytes.......")
	for _, database := range []string{"foreign.db", ".", "missing/ringi.db"} {
		if got := w.run("serve", "--database", "sqlite:"+database, "--listen", "127.0.0.1:0"); got.code == cli.ExitOK {
			t.Errorf("%s: %+v", database, got)
		}
	}
	left, err := filepath.Glob(filepath.Join(w.dir, "*.key*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestAServerWhoseMessagesHaveNowhereToGoSaysSo(t *testing.T) {
	for _, outbox := range []string{"file:missing/events", "file:."} {
		w := newDesk(t)
		got := w.run("serve", "--listen", "127.0.0.1:0", "--outbox", outbox)
		if got.code != cli.ExitFailed && got.code != cli.ExitNotFound || got.err == "" || strings.Contains(got.err, "panic") {
			t.Errorf("--outbox %s: %+v", outbox, got)
		}
		if again := w.start("serve"); again.url == "" { // what was opened was closed
			t.Error("the database is still open")
		}
	}
}

func TestAFileWithoutKeysIsNotSilent(t *testing.T) {
	w := newDesk(t)
	w.write("keys", "# nobody yet\n")
	r := w.start("serve", "--keys", "keys")
	if !strings.Contains(r.err.String(), "level=WARN") || !strings.Contains(r.err.String(), "ringi keys new") {
		t.Errorf("the log is %s", r.err)
	}
}

func TestAnAddressThatIsTakenIsNamed(t *testing.T) {
	w := newDesk(t)
	r := w.start("serve")
	other := newDesk(t)
	got := other.run("serve", "--listen", strings.TrimPrefix(r.url, "http://"))
	if got.code != cli.ExitFailed || !strings.Contains(got.err, "--listen") {
		t.Errorf("%+v", got)
	}
}

func TestLogsAreJSONWhenAsked(t *testing.T) {
	w := newDesk(t)
	r := w.start("serve", "--log-format", "json")
	r.end()
	for line := range strings.Lines(r.err.String()) {
		if !strings.HasPrefix(line, `{"time":`) {
			t.Errorf("the log has the line %q", line)
		}
	}
	if !strings.Contains(r.err.String(), `"msg":"draining"`) {
		t.Errorf("the log is %s", r.err)
	}
}
