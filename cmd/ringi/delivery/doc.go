// Package delivery holds the commands that deliver the messages of an outbox and
// look after them, and opens the relays of a server.
package delivery
