package expr

// The limits of an expression by name, for whoever shows them to an operator.
// Each has its reason where it is used.
const (
	MaxLength = maxExpression // in bytes
	MaxDepth  = maxDepth      // of nesting
	MaxCost   = maxCost       // steps of work in one evaluation
)
