// Package promise holds the log of a run to what the design promises about it:
// contracts of effects, budgets of tries and of time, the order of undoing,
// pauses, approvals, incidents and ends. Its checks are written from the events
// alone; they call none of the rules that made the events, and where these keep
// a state, it keeps books of its own. It draws nothing and reads no clock.
package promise
