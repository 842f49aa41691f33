// Package bench measures what a design must reach, and in the same call the floor:
// the bare work of the same rows on the same disk. A slow design has a slow floor,
// so both numbers count, and the ratio between them.
//
// Milliseconds are measured here and by ringi bench only; no test looks at a clock.
package bench
