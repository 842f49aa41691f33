package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ringiflow/ringi/cmd/ringi/cli"
)

// asProgram makes the test binary behave as ringi, for tests of real processes.
const asProgram = "RINGI_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) == "1" {
		main()
		return
	}
	os.Exit(m.Run())
}

// output is what a call of the program left behind.
type output struct {
	code     int
	out, err string
}

// desk is a working directory with an environment, where commands are called.
type desk struct {
	t   *testing.T
	dir string
	env map[string]string
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	return &desk{t: t, dir: t.TempDir(), env: map[string]string{}}
}

// write writes a file of the place.
func (w *desk) write(name, text string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// program is a call that is not under way yet.
func (w *desk) program(args ...string) *cli.Program {
	return &cli.Program{Args: args, Dir: w.dir, Env: func(name string) string { return w.env[name] }}
}

// run calls the program and waits for its end.
func (w *desk) run(args ...string) output {
	w.t.Helper()
	return w.runWith("", args...)
}

// runWith is run with text on standard input.
func (w *desk) runWith(stdin string, args ...string) output {
	w.t.Helper()
	var out, err bytes.Buffer
	p := w.program(args...)
	p.Stdin, p.Stdout, p.Stderr = strings.NewReader(stdin), &out, &err
	code := p.Run(w.t.Context(), rootCommand)
	return output{code, out.String(), err.String()}
}

// ok calls the program, which must exit with 0, and decodes the JSON it printed.
func (w *desk) ok(into any, args ...string) {
	w.t.Helper()
	w.exits(cli.ExitOK, into, args...)
}

// exits calls the program, which must exit with code, and decodes the one
// object that it printed.
func (w *desk) exits(code int, into any, args ...string) {
	w.t.Helper()
	got := w.run(append(args, "--json")...)
	if got.code != code {
		w.t.Fatalf("ringi %s exits with %d, want %d\n%s%s", strings.Join(args, " "), got.code, code, got.out, got.err)
	}
	if into == nil {
		return
	}
	if strings.Count(got.out, "\n") != 1 {
		w.t.Fatalf("ringi %s prints more or less than one object: %s", strings.Join(args, " "), got.out)
	}
	dec := json.NewDecoder(strings.NewReader(got.out))
	dec.DisallowUnknownFields() // the shapes are exact
	if err := dec.Decode(into); err != nil {
		w.t.Fatalf("ringi %s: %v in %s", strings.Join(args, " "), err, got.out)
	}
}

// running is a server under way.
type running struct {
	t    *testing.T
	url  string
	stop context.CancelFunc
	out  *safeBuffer
	err  *safeBuffer
	done chan int
}

// safeBuffer may be read while a program writes.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// start starts a server of the place on a free port, and makes it the one that
// the place's commands speak to.
func (w *desk) start(args ...string) *running {
	w.t.Helper()
	return w.startAt("127.0.0.1:0", args...)
}

// startAt is start on another address.
func (w *desk) startAt(listen string, args ...string) *running {
	w.t.Helper()
	ctx, stop := context.WithCancel(w.t.Context())
	r := &running{t: w.t, stop: stop, out: &safeBuffer{}, err: &safeBuffer{}, done: make(chan int, 1)}
	listening := make(chan string, 1)
	p := w.program(append(args, "--listen", listen)...)
	p.Stdout, p.Stderr = r.out, r.err
	p.Listening = func(url string) { listening <- url }
	go func() { r.done <- p.Run(ctx, rootCommand) }()
	select {
	case r.url = <-listening:
	case code := <-r.done:
		w.t.Fatalf("the server ended with %d: %s", code, r.err)
	case <-time.After(patience):
		w.t.Fatalf("the server does not listen: %s", r.err)
	}
	w.env["RINGI_SERVER"] = r.url
	w.t.Cleanup(func() { r.end() })
	return r
}

// end drains the server and returns its exit code.
func (r *running) end() int {
	r.t.Helper()
	r.stop()
	select {
	case code := <-r.done:
		r.done <- code // for a second end
		return code
	case <-time.After(patience):
		r.t.Fatalf("the server does not end: %s", r.err)
		return -1
	}
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(patience)
	for !holds() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("%s does not happen", what)
		}
	}
}

func TestCallsThatCannotWorkExitWith2(t *testing.T) {
	w := newDesk(t)
	w.write("bad.json", "{\n  \"a\": nope}\n")
	for _, args := range [][]string{
		{"nonsense"},
		{"runs", "--nonsense"},
		{"runs", "extra"},
		{"runs", "--status", "asleep"},
		{"runs", "--limit", "0"},
		{"show"},
		{"show", "a", "b"},
		{"start"},
		{"start", "hello", "-i", "novalue"},
		{"start", "hello", "--input", "@missing.json"},
		{"start", "hello", "--input", "@bad.json"},
		{"start", "hello", "--input", "[1]", "-i", "a=1"},
		{"start", "hello", "--timeout", "1s"},
		{"start", "hello", "--version", "one"},
		{"start", "hello", "--version", "-1"},
		{"help", "nosuch"},
		{"help", "keys", "nosuch"},
		{"completion", "tcsh"},
		{"check", "."},
		{"serve", "--database", "sqlite:."},
		{"serve", "--database", "sqlite:missing/ringi.db"},
		{"serve", "--database", "sqlite:bad.json/ringi.db"},
		{"cancel", "01a22ccb-9bd7-76c4-83b7-b3a944c13ad1"},
		{"cancel", "01a22ccb-9bd7-76c4-83b7-b3a944c13ad1", "--reason", " "},
		{"terminate", "01a22ccb-9bd7-76c4-83b7-b3a944c13ad1"},
		{"resolve", "01a22ccb-9bd7-76c4-83b7-b3a944c13ad1", "1", "--how", "retry"},
		{"resolve", "01a22ccb-9bd7-76c4-83b7-b3a944c13ad1", "1", "--how", "magic", "--reason", "r"},
		{"approve", "01a22ccb-9bd7-76c4-83b7-b3a944c13ad1", "approve"},
		{"send"},
		{"send", "paid", "--data", "{"},
		{"replay"},
		{"replay", "--all", "01a22ccb-9bd7-76c4-83b7-b3a944c13ad1"},
		{"replay", "--all", "--database", "postgres://a b/%zz"},
		{"serve", "--database", "mysql:x"},
		{"serve", "--listen", "nowhere"},
		{"keys", "new", "alice"},
		{"keys", "new", "alice", "--scope", "everything"},
		{"keys", "new", "al,ice", "--scope", "read"},
		{"runs", "-o", "xml"},
		{"runs", "--server", "ftp://somewhere"},
		{"runs", "--key-file", "missing"},
		{"runs", "--as", "alice"},
		{"runs", "--config", "missing.yaml"},
		{"check"},
		{"publish"},
	} {
		if got := w.run(args...); got.code != cli.ExitUsage || got.out != "" || got.err == "" {
			t.Errorf("ringi %s exits with %d and says %q on stderr, %q on stdout", strings.Join(args, " "), got.code, got.err, got.out)
		}
	}
}

func TestAnErrorSaysWhatToDoNext(t *testing.T) {
	w := newDesk(t)
	w.write("bad.json", "{\n  \"a\": nope}\n")
	for _, c := range []struct{ args, want string }{
		{"nonsense", `unknown command "nonsense"`},
		{"show", "as in: ringi show RUN"},
		{"cancel 01a22ccb-9bd7-76c4-83b7-b3a944c13ad1", "--reason"},
		{"start hello --input @bad.json", "line 2, column 9"},
		{"replay --all --database postgres://db/%zz", "%XX for odd characters"},
		{"replay --all", "--database sqlite:PATH"},
		{"approve", "as in: ringi approve RUN [STEP]"},
		{"resolve", "as in: ringi resolve RUN [INCIDENT]"},
		{"help nosuch", "nosuch"},
		{"completion tcsh", "bash, fish"},
		{"check .", ". is a directory"},
		{"serve --database sqlite:missing/ringi.db", "there is no directory"},
		{"serve --database sqlite:.", "name a file in it"},
	} {
		if got := w.run(strings.Fields(c.args)...); !strings.Contains(got.err, c.want) {
			t.Errorf("ringi %s says %q, without %q", c.args, got.err, c.want)
		}
	}
}

func TestAServerThatCannotBeReachedIsExit10(t *testing.T) {
	w := newDesk(t)
	w.env["RINGI_SERVER"] = "http://127.0.0.1:1"
	for _, args := range []string{"runs", "approvals", "incidents", "send paid", "show 01a22ccb-9bd7-76c4-83b7-b3a944c13ad1", "start hello"} {
		if got := w.run(strings.Fields(args)...); got.code != cli.ExitUnreachable || got.out != "" {
			t.Errorf("ringi %s exits with %d: %s", args, got.code, got.err)
		}
	}
	got := w.run("runs", "--json")
	var said struct {
		Code      string `json:"code"`
		Message   string `json:"message"`
		Hint      string `json:"hint"`
		Retryable bool   `json:"retryable"`
		Exit      int    `json:"exit"`
	}
	if err := json.Unmarshal([]byte(got.err), &said); err != nil || said.Code != "unavailable" || said.Exit != cli.ExitUnreachable || !said.Retryable {
		t.Errorf("with --json stderr is %q, %v", got.err, err)
	}
}

func TestHelpVersionAndCompletionAreData(t *testing.T) {
	w := newDesk(t)
	for args, want := range map[string]string{
		"":                "Usage:",
		"help":            "ringi dev",
		"help start":      "--on-behalf-of",
		"help exit-codes": "130",
		"completion bash": "bash completion",
		"version":         "ringi ",
		"keys":            "ringi keys",
	} {
		if got := w.run(strings.Fields(args)...); got.code != cli.ExitOK || !strings.Contains(got.out, want) || got.err != "" {
			t.Errorf("ringi %s exits with %d, prints %q and says %q", args, got.code, got.out, got.err)
		}
	}
	var v cli.Build
	w.ok(&v, "version")
	if v.Version == "" || v.Go == "" {
		t.Errorf("version is %+v", v)
	}
}

func TestEveryCommandOfTheSurfaceIsThere(t *testing.T) {
	w := newDesk(t)
	help := w.run("help").out
	for _, name := range strings.Fields("serve dev demo check publish start send runs show history cancel pause resume terminate " +
		"incidents resolve approvals approve reject replay keys explain graph fmt schema init version completion relay outbox bench sim") {
		if !strings.Contains(help, "\n  "+name+" ") {
			t.Errorf("help does not name %s", name)
		}
	}
}

func TestASignalEndsACommandWith130(t *testing.T) {
	w := newDesk(t)
	signals := make(chan os.Signal, 1)
	p := w.program("start", "hello", "--input", "-")
	block := make(chan struct{})
	defer close(block)
	p.Stdin, p.Signals = blocked{block}, signals
	signals <- os.Interrupt
	if code := p.Run(t.Context(), rootCommand); code != cli.ExitInterrupted {
		t.Errorf("exits with %d, want %d", code, cli.ExitInterrupted)
	}
}

// blocked is a standard input on which nobody types.
type blocked struct{ until <-chan struct{} }

func (b blocked) Read([]byte) (int, error) {
	<-b.until
	return 0, os.ErrClosed
}
