// Package feed brings messages of brokers into ringi: it opens sources that are named
// by text, as a person writes them (Opener).
package feed
