// Package workflow is the process language: a definition in YAML or JSON goes
// in, a checked and compiled tree of steps comes out, or every problem at once
// with file:line:column, a stable id and a suggestion. It is a pure leaf: no
// clock, no I/O, no goroutine, nothing of the engine.
package workflow
