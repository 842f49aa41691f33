// Package graph draws a definition: as SVG for pages and documents, as Mermaid
// for text that is rendered elsewhere, and as text for a terminal. All three
// show the same: the steps in their order, what each calls and what its effect
// can bear, branches and conditions, approvals with their quorum, how each step
// is undone, from which step on there is no way back, and what is done when a
// step fails.
//
// A definition is a tree, so that its drawing needs no search for a layout: a
// list of steps runs down, branches stand side by side, what handles a failure
// stands to the right of its step, what undoes it to the left. The same
// definition gives the same bytes, on any machine.
//
//	chart := graph.Of(definition)
//	os.Stdout.Write(chart.SVG())
package graph
