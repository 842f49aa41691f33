package expr

import (
	"encoding/json"
	"time"
)

// Env is what an expression may read: the values of its roots. Documents are
// raw JSON as exact.Canonical accepts it, read only where an expression asks
// for them, numbers as exact decimals. An evaluation only reads it.
type Env struct {
	Input   json.RawMessage
	Steps   map[string]StepEnv // only steps that have a record
	Vars    map[string]json.RawMessage
	Run     RunEnv
	Now     time.Time       // the recorded time of the decision
	StepKey string          // step.key: the forward idempotency key; "" where the root does not exist
	Error   *ErrorEnv       // in catch and on_failure; else nil
	Event   json.RawMessage // where it exists; else nil
	Message json.RawMessage // where it exists; else nil
}

// StepEnv is steps.<id>.
type StepEnv struct {
	Output   json.RawMessage // nil when there is none
	Outcome  string          // a step that never ran is "not_run"
	Error    *ErrorEnv
	Attempts int
}

// RunEnv is run.
type RunEnv struct {
	ID        string
	Key       string
	Requester string
	StartedAt time.Time
}

// ErrorEnv is error, and steps.<id>.error.
type ErrorEnv struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Step    string `json:"step,omitempty"`
}
