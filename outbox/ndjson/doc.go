// Package ndjson delivers messages of an outbox as newline-delimited JSON, one
// CloudEvent per line: File appends to a file and answers when it is on disk,
// Writer writes to a stream such as standard output.
package ndjson
