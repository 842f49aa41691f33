//go:build nextformat

package ringi

// Format is one more than that of the program without this tag, and its bodies
// differ in nothing but the number: with this tag a program is built that stands
// for the next release, to try an upgrade of servers one after the other.
const Format = 2
