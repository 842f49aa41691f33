// Package exact reads, computes and writes JSON without losing anything: a
// document has one reading or is refused, numbers are decimals of up to 34
// digits and never pass through a float, and equal documents have one
// canonical form and one digest.
//
// A document is a tree of nil, bool, string, Number, []any and *Object. The
// package is pure and keeps no state; its values may be shared by any number
// of goroutines as long as nobody changes them.
package exact
