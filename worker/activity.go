package worker

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/ringiflow/ringi"
)

// An Activity is a function under the name that definitions call it by. Make
// one with Func.
type Activity struct {
	name string
	call func(context.Context, json.RawMessage) (json.RawMessage, error)
}

// Func makes an activity of a function. Its input is decoded into In and its
// output encoded from Out by encoding/json; json.RawMessage passes either
// through as it is. f may be called by many goroutines at once. It must end soon
// after its context does.
//
// An input that does not fit In is a failure that no further attempt can mend;
// f is then not called. An output that cannot be encoded is one too, but the
// call may have had its effect.
func Func[In, Out any](name string, f func(context.Context, In) (Out, error)) Activity {
	return Activity{name: name, call: func(ctx context.Context, raw json.RawMessage) (json.RawMessage, error) {
		var in In
		if len(raw) > 0 {
			if err := json.Unmarshal(raw, &in); err != nil {
				return nil, &Failure{
					Code: CodeBadInput, Message: fmt.Sprintf("the input does not fit %s: %v", name, err), Applied: ringi.AppliedNo,
				}
			}
		}
		out, err := f(ctx, in)
		if err != nil {
			return nil, err
		}
		encoded, err := json.Marshal(out)
		if err != nil {
			return nil, &Failure{
				Code: CodeBadOutput, Message: fmt.Sprintf("the output of %s is not JSON: %v", name, err), Applied: ringi.AppliedUnknown,
			}
		}
		return encoded, nil
	}}
}

// Name is the name that definitions call the activity by.
func (a Activity) Name() string { return a.name }

// Call runs the activity for a task, as a worker does but without lease,
// time-out or report: for tests of activities.
func (a Activity) Call(ctx context.Context, task ringi.Task) (json.RawMessage, error) {
	return a.call(context.WithValue(ctx, taskKey{}, task), task.Input)
}

type taskKey struct{}

// Task returns the task that a function was called for, from its context; the
// zero Task outside of one.
func Task(ctx context.Context) ringi.Task {
	task, _ := ctx.Value(taskKey{}).(ringi.Task)
	return task
}

// Key returns the idempotency key of the call, from the function's context: the
// same for every attempt. Hand it to the outside service. "" outside of a call.
func Key(ctx context.Context) string { return Task(ctx).Key }
