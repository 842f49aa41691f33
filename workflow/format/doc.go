// Package format lays definitions out in the usual way: keys in the order of
// the grammar, blocks indented by two, brackets where they fit on a line,
// quotes where YAML would misread a value without them. Comments stay with what
// they stand above or behind, and single blank lines stay where they are.
//
// The layout never changes what a definition says: File compares the document
// before and after, and its comments too, and rather refuses.
package format
