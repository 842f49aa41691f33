//go:build race

package sim_test

// raced says that the tests run under the race detector.
const raced = true
