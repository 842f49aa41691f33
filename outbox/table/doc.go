// Package table is what every outbox that is a table does alike, whatever the
// database: which rows a claim takes (Choose), in which order the messages of an
// insert get their numbers (Arrange), and how headers and times are kept. Those who
// write an outbox.Source for another database build on it.
package table
