// Package delivery holds the commands that deliver the messages of an outbox and
// look after them, and those that bring messages of brokers into ringi. It opens the
// relays and the feeds of a server.
package delivery
