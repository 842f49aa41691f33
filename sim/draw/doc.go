// Package draw draws what a simulated world is made of from a seed: chance
// itself, in streams that do not shift each other, and definitions from the
// grammar, with every verb and every contract. The same seed draws the same on
// every machine. A Dice must not be used concurrently; there is no other state.
package draw
