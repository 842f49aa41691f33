// Package schema is JSON Schema, draft 2020-12, for definitions: with it an
// editor completes keys, explains them, and marks most mistakes while one types.
//
// It is made of package workflow/grammar, which the parser reads too, so that
// the two cannot drift apart. What the schema refuses, the parser refuses. What
// the parser refuses because of the form of a definition, the schema refuses as
// well; Beyond lists the rules that no schema can express, with the reason for
// each: the parser alone checks those, with ringi check or at publishing.
package schema
