package workflow

import "github.com/ringiflow/ringi/workflow/expr"

// What an expression may read; see package expr for the fields.
type (
	// Env holds the roots of expressions as raw JSON, decoded only where an
	// expression asks for them.
	Env = expr.Env
	// StepEnv is steps.<id>.
	StepEnv = expr.StepEnv
	// RunEnv is run.
	RunEnv = expr.RunEnv
	// ErrorEnv is error, and steps.<id>.error.
	ErrorEnv = expr.ErrorEnv
)
