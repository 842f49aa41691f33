// Package build writes definitions in Go: the same document and the same digest
// as the YAML file that says the same, for programs that make definitions, and
// for people who want their compiler to look at them.
//
//	def, problems := build.Definition{
//		Name: "hello",
//		Input: build.Object(build.Need("who", build.String())),
//		Steps: []build.Step{
//			{ID: "greet", Do: build.Activity{
//				Name: "hello.greet", With: build.Fields{"who": build.Expr("input.who")},
//				Contract: build.Pure{},
//			}},
//		},
//	}.Build()
//
// What the types of Go can hold, they hold: a step has one verb, since Do is
// one; what needs a probe has one; a pure call has nothing to undo; an
// irreversible one has no undo; a wait is for one thing. Everything else, and
// every expression, is checked by Build like a file: it calls workflow.Parse.
//
// All values are plain data. Nothing is remembered between calls, and a value
// may be used in as many definitions as one likes.
package build
