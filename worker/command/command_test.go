//go:build unix

package command_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/worker"
	"github.com/ringiflow/ringi/worker/command"
)

// patience is how long a test waits for what must come at once.
const patience = 20 * time.Second

// shell is a configuration whose program is a script.
func shell(script string) command.Config {
	return command.Config{Program: []string{"sh", "-c", script}, Activities: []string{"a"}}
}

func run(t *testing.T, ctx context.Context, config command.Config, input string) (string, *worker.Failure) {
	t.Helper()
	r, err := command.New(config)
	if err != nil {
		t.Fatal(err)
	}
	out, err := r.Queue().Activities[0].Call(ctx, ringi.Task{
		Run: "r1", CallRef: ringi.CallRef{Step: "pay", Attempt: 2, Token: 65537}, Activity: "a", Queue: "q", Definition: "order", Version: 3,
		Key: "r1/pay", Effect: "idempotent", Timeout: time.Minute, Input: json.RawMessage(input),
	})
	var f *worker.Failure
	if err != nil && !errors.As(err, &f) {
		t.Fatalf("not a failure: %v", err)
	}
	return string(out), f
}

func shown(f *worker.Failure) string {
	if f == nil {
		return "none"
	}
	return fmt.Sprintf("%s retryable=%v applied=%q after=%s", f.Code, f.Retryable, f.Applied, f.RetryAfter)
}

func TestAProgramGetsItsInputAndTask(t *testing.T) { // W10 W16
	out, f := run(t, t.Context(), shell(`read -r input; printf '{"input":%s,"env":"%s"}' "$input" "$RINGI_TASK_RUN $RINGI_TASK_STEP $RINGI_TASK_DIRECTION $RINGI_TASK_ATTEMPT $RINGI_TASK_KEY $RINGI_TASK_ACTIVITY $RINGI_TASK_QUEUE $RINGI_TASK_DEFINITION $RINGI_TASK_VERSION $RINGI_TASK_EFFECT $RINGI_TASK_TIMEOUT_MS"`), `{"n":9007199254740993}`)
	if want := `{"input":{"n":9007199254740993},"env":"r1 pay forward 2 r1/pay a q order 3 idempotent 60000"}`; f != nil || out != want {
		t.Errorf("got %s %v, want %s", out, f, want)
	}
}

func TestOutputsAndExitCodes(t *testing.T) { // W14 W16
	text := func(script string) command.Config {
		c := shell(script)
		c.Text = true
		return c
	}
	const tooMuch = `head -c 300000 /dev/zero | tr '\0' 'a'`
	for _, c := range []struct {
		name   string
		config command.Config
		want   string // of the output, else of the failure
	}{
		{"a value", shell(`echo '{"a": 1}'`), `{"a":1}`},
		{"a value over several lines", shell(`printf '[1,\n2]\n\n'`), `[1,2]`},
		{"nothing", shell(`exit 0`), `null`},
		{"a blank line", shell(`echo`), `null`},
		{"an input that nobody reads", shell(`exec <&-; echo 1`), `1`},
		{"no JSON", shell(`echo done`), `bad_output_value retryable=false applied="unknown" after=0s`},
		{"two values", shell(`echo 1; echo 2`), `bad_output_value retryable=false applied="unknown" after=0s`},
		{"half a value", shell(`printf '{"a":'`), `bad_output_value retryable=false applied="unknown" after=0s`},
		{"invalid UTF-8", shell(`printf '"\377"'`), `bad_output_value retryable=false applied="unknown" after=0s`},
		{"a NUL", shell(`printf '1\000'`), `bad_output_value retryable=false applied="unknown" after=0s`},
		{"text", text(`printf 'a "b"\nc\n'`), `"a \"b\"\nc"`},
		{"text that is none", text(`printf '\377'`), `bad_output_value retryable=false applied="unknown" after=0s`},
		{"too much", shell(tooMuch), `output_too_large retryable=false applied="unknown" after=0s`},
		{"output without end", shell(`yes`), `output_too_large retryable=false applied="unknown" after=0s`},
		{"output without end that ignores SIGTERM", shell(`trap '' TERM; yes`), `output_too_large retryable=false applied="unknown" after=0s`},
		{"a failure", shell(`exit 1`), `exit_1 retryable=true applied="" after=0s`},
		{"a refusal", shell(`exit 65`), `exit_65 retryable=false applied="no" after=0s`},
		{"not now", shell(`exit 75`), `exit_75 retryable=true applied="no" after=0s`},
		{"no such command in the script", shell(`nosuchcommand`), `exit_127 retryable=true applied="" after=0s`},
		{"a signal", shell(`kill -KILL $$`), `signal_KILL retryable=true applied="" after=0s`},
		{"a crash", shell(`kill -SEGV $$`), `signal_SEGV retryable=true applied="" after=0s`},
		{"a word", shell(`echo '::ringi {"code":"card_declined","message":"no money","retryable":false,"applied":"no"}' >&2; exit 1`), `card_declined retryable=false applied="no" after=0s`},
		{"a word without the rest", shell(`echo '::ringi {"code":"card_declined"}' >&2; exit 65`), `card_declined retryable=false applied="no" after=0s`},
		{"the last word", shell(`echo '::ringi {"code":"a"}' >&2; echo '::ringi {"code":"b","retryAfterMs":1500}' >&2; echo '::ringi {}' >&2; exit 1`), `b retryable=true applied="" after=1.5s`},
		{"a word without a line break", shell(`printf '::ringi {"code":"b"}' >&2; exit 1`), `b retryable=true applied="" after=0s`},
		{"a word that cannot be read", shell(`echo '::ringi code=b' >&2; exit 1`), `exit_1 retryable=true applied="" after=0s`},
		{"a word in the middle of a line", shell(`echo 'x ::ringi {"code":"b"}' >&2; exit 1`), `exit_1 retryable=true applied="" after=0s`},
		{"a word that says what only a probe may", shell(`echo '::ringi {"applied":"yes"}' >&2; exit 1`), `exit_1 retryable=true applied="" after=0s`},
		{"a word and a success", shell(`echo '::ringi {"code":"b"}' >&2; echo 1`), `1`},
		{"a wish beyond bounds", shell(`echo '::ringi {"retryAfterMs":99999999999999}' >&2; exit 75`), `exit_75 retryable=true applied="no" after=24h0m0s`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, f := run(t, t.Context(), c.config, `{}`)
			if f != nil {
				got = shown(f)
			}
			if got != c.want {
				t.Errorf("got %s, want %s (%v)", got, c.want, f)
			}
		})
	}
}

func TestStandardErrorGoesToTheLogAndExplainsFailures(t *testing.T) {
	var log lockedBuffer
	config := shell(`echo first >&2; printf 'sec\377ond\r\n' >&2; echo '::ringi {"code":"x"}' >&2; head -c 20000 /dev/zero | tr '\0' 'b' >&2; printf '\nlast' >&2; exit 3`)
	config.Log = slog.New(slog.NewTextHandler(&log, nil))
	_, f := run(t, t.Context(), config, `{}`)
	if f == nil || f.Code != "x" || !strings.HasPrefix(f.Message, "exit status 3\n") || !strings.HasSuffix(f.Message, "\nlast") || len(f.Message) > 4000 {
		t.Errorf("failed with %v", f)
	}
	got := log.String()
	for _, want := range []string{`msg=first run=r1 step=pay attempt=2`, `msg="sec`, "bbb …", "msg=last "} {
		if !strings.Contains(got, want) {
			t.Errorf("the log lacks %s:\n%.2000s", want, got)
		}
	}
	if strings.Contains(got, "::ringi") || len(got) > 12_000 {
		t.Errorf("the log has %d bytes, or a word to the worker", len(got))
	}
}

func TestAFloodOfStandardErrorCostsLittle(t *testing.T) {
	var log lockedBuffer
	config := shell(`head -c 20000000 /dev/zero | tr '\0' 'c' | fold -w 100 >&2; echo >&2; echo '::ringi {"code":"end"}' >&2; exit 1`)
	config.Log = slog.New(slog.NewTextHandler(&log, nil))
	_, f := run(t, t.Context(), config, `{}`)
	if f == nil || f.Code != "end" {
		t.Errorf("failed with %v", shown(f))
	}
	if got := log.String(); len(got) > 4<<20 || !strings.Contains(got, "more to standard error than is logged") {
		t.Errorf("%d bytes of log", len(got))
	}
}

// A program is asked to end, and then made to, with all that it started.
func TestAProgramIsEndedWithItsGroup(t *testing.T) {
	for _, c := range []struct {
		name, script string
		cause        error
		want         string
	}{
		{"its time is up", `sleep 1000`, worker.ErrTimeout, `timed_out retryable=true applied="" after=0s`},
		{"its lease is lost", `sleep 1000`, worker.ErrLeaseLost, `interrupted retryable=true applied="" after=0s`},
		{"it will not end", `trap '' TERM; echo ready > ready; while :; do sleep 1000; done`, worker.ErrCancelled, `interrupted retryable=true applied="" after=0s`},
		{"it says how far it got", `trap 'echo "::ringi {\"code\":\"stopped\",\"applied\":\"no\"}" >&2; exit 1' TERM; echo ready > ready; while :; do sleep 0.1; done`, worker.ErrStopping, `stopped retryable=true applied="no" after=0s`},
		{"it finishes all the same", `trap 'echo 5; exit 0' TERM; echo ready > ready; while :; do sleep 0.1; done`, worker.ErrTimeout, `5`},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			config := shell(`sleep 1000 & echo $! > child; ` + c.script)
			config.Dir, config.Grace = dir, 500*time.Millisecond
			ctx, end := context.WithCancelCause(t.Context())
			go func() {
				child := pidIn(dir, "child")
				if child > 0 && strings.Contains(c.script, "ready") {
					await(func() bool { _, err := os.Stat(filepath.Join(dir, "ready")); return err == nil })
				}
				end(c.cause)
			}()
			got, f := run(t, ctx, config, `{}`)
			if f != nil {
				got = shown(f)
			}
			if got != c.want {
				t.Errorf("got %s, want %s: %v", got, c.want, f)
			}
			if child := pidIn(dir, "child"); !await(func() bool { return gone(child) }) {
				t.Errorf("process %d, which the program started, lives on", child)
			}
		})
	}
}

// What a program leaves behind does not hold its attempt up, and is ended.
func TestAGrandchildDoesNotHoldTheAttemptUp(t *testing.T) {
	dir := t.TempDir()
	config := shell(`sleep 1000 & echo $! > child; echo 7`)
	config.Dir = dir
	out, f := run(t, t.Context(), config, `{}`)
	if f != nil || out != `7` {
		t.Errorf("got %s %v", out, f)
	}
	if child := pidIn(dir, "child"); !await(func() bool { return gone(child) }) {
		t.Errorf("process %d lives on", child)
	}
}

func TestAProgramThatSaysNothingIsEnded(t *testing.T) {
	config := shell(`sleep 1000`)
	config.Silence = 200 * time.Millisecond
	if _, f := run(t, t.Context(), config, `{}`); shown(f) != `silent retryable=true applied="" after=0s` {
		t.Errorf("silence: %s", shown(f))
	}
	config = shell(`for i in 1 2 3 4 5 6 7 8; do echo '::ringi {}' >&2; sleep 0.1; done; echo 1`)
	config.Silence = 5 * time.Second
	if out, f := run(t, t.Context(), config, `{}`); f != nil || out != `1` {
		t.Errorf("signs of life: %s %v", out, f)
	}
}

func TestWhatCannotWorkIsRefused(t *testing.T) {
	for _, config := range []command.Config{{}, {Program: []string{"no-such-program-anywhere"}}, {Program: []string{"/dev/null"}}} {
		if _, err := command.New(config); err == nil {
			t.Errorf("%v was taken", config.Program)
		}
	}
}

// pidIn waits for a file with the id of a process and reads it; 0 when none comes.
func pidIn(dir, name string) (pid int) {
	await(func() bool {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil {
			pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
		}
		return pid > 0
	})
	return pid
}

// gone reports whether a process has ended, also when nobody has asked how.
func gone(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && bytes.Contains(stat, []byte(") Z "))
}

// await polls a condition, for as long as patience.
func await(holds func() bool) bool {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(patience)
	for !holds() {
		select {
		case <-tick.C:
		case <-limit:
			return false
		}
	}
	return true
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
