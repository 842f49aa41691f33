package conformance_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/api"
	"github.com/ringiflow/ringi/worker"
	"github.com/ringiflow/ringi/worker/command"
)

// goWorker is the row of package worker, and of worker/command: the test binary as
// a process of its own. It returns the exit code.
func goWorker(activities []worker.Activity, err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	key, err := os.ReadFile(os.Getenv("RINGI_KEY_FILE"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	client, err := api.NewClient(api.ClientConfig{Address: os.Getenv("RINGI_SERVER"), Key: strings.TrimSpace(string(key))})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	slots, _ := strconv.Atoi(os.Getenv("CONCURRENCY")) // absent: 0, the default
	w, err := worker.New(worker.Config{
		Service: client,
		Queues: []worker.Queue{
			{Name: os.Getenv("RINGI_QUEUE"), Slots: slots, Activities: activities},
			{Name: os.Getenv("RINGI_QUEUE") + "-aside", Slots: 1, Activities: slices.DeleteFunc(slices.Clone(activities), func(a worker.Activity) bool { return a.Name() != "echo" })},
		},
		Trouble: func(err error) { fmt.Fprintln(os.Stderr, err) },
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := w.Run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

type failInput struct {
	Code, Message string
	Retryable     bool
	Applied       ringi.Applied
	RetryAfterMS  int64
	Until         int
}

// commandActivities are those of workers/task.py, a process per task.
func commandActivities() ([]worker.Activity, error) {
	r, err := command.New(command.Config{
		Program:    []string{"python3", "workers/task.py"},
		Activities: []string{"echo", "fail", "crash", "grow", "hold", "find"},
		Log:        slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		return nil, err
	}
	return r.Queue().Activities, nil
}

func goActivities() ([]worker.Activity, error) {
	return []worker.Activity{
		worker.Func("echo", func(_ context.Context, in json.RawMessage) (json.RawMessage, error) { return in, nil }),
		worker.Func("fail", func(ctx context.Context, in failInput) (map[string]int, error) {
			attempt := worker.Task(ctx).Attempt
			if in.Until > 0 && attempt >= in.Until {
				return map[string]int{"attempt": attempt}, nil
			}
			return nil, &worker.Failure{Code: in.Code, Message: in.Message, Retryable: in.Retryable, Applied: in.Applied, RetryAfter: time.Duration(in.RetryAfterMS) * time.Millisecond}
		}),
		worker.Func("crash", func(context.Context, json.RawMessage) (any, error) { return nil, errors.New("nobody thought of it") }),
		worker.Func("grow", func(_ context.Context, in struct{ Bytes int }) (map[string]string, error) {
			return map[string]string{"text": strings.Repeat("x", in.Bytes)}, nil
		}),
		worker.Func("hold", goHold),
		worker.Func("find", func(_ context.Context, in struct{ Key string }) (map[string]any, error) {
			var effect struct{ Count int }
			_, body, err := tell("/effect/"+url.PathEscape(in.Key), nil)
			if err == nil {
				err = json.Unmarshal(body, &effect)
			}
			if effect.Count == 0 {
				return map[string]any{"applied": "no"}, err
			}
			return map[string]any{"applied": "yes", "output": map[string]string{"key": in.Key}}, err
		}),
	}, nil
}

func goHold(ctx context.Context, in struct{ Gate string }) (map[string]string, error) {
	task := worker.Task(ctx)
	if _, _, err := tell("/began", map[string]any{"gate": in.Gate, "key": task.Key, "attempt": task.Attempt, "by": "go"}); err != nil {
		return nil, err
	}
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for {
		if status, _, err := tell("/gate/"+in.Gate, nil); err == nil && status == http.StatusOK {
			return map[string]string{"key": task.Key}, nil
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			reasons := map[error]string{
				worker.ErrTimeout: "timed_out", worker.ErrLeaseLost: "lease_lost", worker.ErrCancelled: "cancelled", worker.ErrStopping: "stopping",
			}
			_, _, err := tell("/ended", map[string]any{"gate": in.Gate, "key": task.Key, "reason": reasons[context.Cause(ctx)]})
			return nil, errors.Join(ctx.Err(), err)
		}
	}
}

// tell asks the ledger: a POST with a body, else a GET.
func tell(path string, body any) (status int, answer []byte, err error) {
	method, reader := http.MethodGet, io.Reader(nil)
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return 0, nil, err
		}
		method, reader = http.MethodPost, bytes.NewReader(encoded)
	}
	req, err := http.NewRequest(method, os.Getenv("LEDGER")+path, reader)
	if err != nil {
		return 0, nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err = io.ReadAll(resp.Body)
	return resp.StatusCode, answer, err
}
