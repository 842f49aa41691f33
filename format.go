//go:build !nextformat

package ringi

// Format is the newest format of event bodies, and the format of snapshots, that
// this program knows. It reads this one and all older ones, and leaves a run
// alone whose log holds a newer one.
const Format = 1
