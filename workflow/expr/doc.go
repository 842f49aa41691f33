// Package expr is the language of expressions inside definitions: CEL, typed
// from JSON Schema, with exact decimals for numbers.
//
// CompileText and CompileCondition take the text of a definition and a Scope
// that says which names exist there, and answer a compiled value or every
// problem with its place and a suggestion. Value.Eval and Condition.Eval
// compute it for the data of one run, an Env.
//
// What differs from CEL as others run it:
//
//   - There is one kind of number, an exact decimal of up to 34 digits, whatever
//     the numeral looks like: 0.1 + 0.2 == 0.3, and 9007199254740993 differs
//     from 9007199254740992. Sums, differences and products that would have to
//     be rounded are an error; quotients are rounded half to even.
//   - A field that the schema does not name, or that may be missing, is found
//     when the definition is checked. The null of a declared field counts as
//     absent. At run time a missing field is an error, never a silent null.
//   - The keys of an object are walked in order, so that an evaluation is the
//     same everywhere.
//   - One evaluation does at most 10,000 units of work.
//
// Only the files cel*.go, check*.go, compile.go and render.go know the library;
// the rest of the system sees Value and Condition. The package is pure; all its
// values are immutable and may be used by any number of goroutines.
package expr
