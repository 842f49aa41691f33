// Package trial holds the commands for trying ringi out: dev, a server with an
// example on this machine, and demo, which kills one again and again. What demo
// does is in examples/demo.
package trial
