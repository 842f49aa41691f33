// Package server holds ringi serve, and wires what a server is made of: engine,
// database, API, keys, relays and metrics come together in node.go and only
// there. ring.go makes the keys that a server needs for itself.
package server
