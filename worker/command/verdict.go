package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ringiflow/ringi"
	"github.com/ringiflow/ringi/worker"
)

// verdict is what became of an attempt whose program has ended. What it had to
// say counts even when it was asked to end: it may have finished all the same.
func (p *process) verdict(ctx context.Context) (json.RawMessage, error) {
	switch {
	case p.out.over:
		return nil, &worker.Failure{
			Code: worker.CodeTooLarge, Applied: ringi.AppliedUnknown,
			Message: fmt.Sprintf("the program wrote more than %d bytes to standard output", MaxOutput),
		}
	case p.cmd.ProcessState.Success():
		return p.output()
	}
	return nil, p.failure(ctx)
}

// output is what the program wrote, as a value.
func (p *process) output() (json.RawMessage, error) {
	text := p.out.kept
	problem := ""
	switch {
	case !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0:
		problem = "not text in UTF-8"
	case p.config.Text:
		return json.Marshal(strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r"))
	case len(bytes.TrimSpace(text)) == 0:
		return json.RawMessage("null"), nil
	case !json.Valid(text):
		problem = "not one JSON value"
	default:
		return bytes.TrimSpace(text), nil
	}
	begin := text[:min(len(text), 100)]
	return nil, &worker.Failure{
		Code: worker.CodeBadOutput, Applied: ringi.AppliedUnknown,
		Message: fmt.Sprintf("the program ended with 0, and what it wrote to standard output is %s: it begins with %q", problem, begin),
	}
}

// failure is how the program failed, by its exit code, by why it was ended, and
// by its own word, which goes before both.
func (p *process) failure(ctx context.Context) *worker.Failure {
	f := &worker.Failure{Code: codeOf(p.cmd), Retryable: true}
	switch p.cmd.ProcessState.ExitCode() {
	case ExitRefused:
		f.Retryable, f.Applied = false, ringi.AppliedNo
	case ExitTryAgain:
		f.Applied = ringi.AppliedNo
	}
	how := p.cmd.ProcessState.String()
	switch cause := context.Cause(ctx); {
	case p.silent:
		f.Code, how = CodeSilent, fmt.Sprintf("nothing was heard of it for %s: %s", p.config.Silence, how)
	case errors.Is(cause, worker.ErrTimeout):
		f.Code, how = worker.CodeTimedOut, cause.Error()+": "+how
	case cause != nil:
		f.Code, how = worker.CodeInterrupted, cause.Error()+": "+how
	}
	w, tail := p.err.said()
	f.Message = how
	if w.Message != "" {
		f.Message = w.Message
	} else if tail != "" {
		f.Message += "\n" + tail
	}
	if w.Code != "" {
		f.Code = w.Code
	}
	if w.Retryable != nil {
		f.Retryable = *w.Retryable
	}
	if a := ringi.Applied(w.Applied); a == ringi.AppliedNo || a == ringi.AppliedUnknown {
		f.Applied = a
	}
	f.RetryAfter = time.Duration(min(max(w.RetryAfterMS, 0), ringi.MaxRetryAfter.Milliseconds())) * time.Millisecond
	return f
}
