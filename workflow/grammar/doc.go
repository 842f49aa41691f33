// Package grammar is the form of a definition as data: every mapping of the
// language with its keys in their usual order, what each may hold, which need
// each other and which exclude each other, and what they are for.
//
// It is the only place where this is written down. The parser reads it to tell
// known keys from unknown ones and to know words, bounds and what is missing;
// package workflow/schema makes the JSON Schema for editors of it, and package
// workflow/format the order of keys. What a form cannot say (that ids are
// unique, that an expression has the right type, that a step was reached
// before) is the parser's alone.
//
// To add a key, add it here, and read it in the parser: a key that is read as
// something else than it is here, or not at all, fails the tests.
package grammar
