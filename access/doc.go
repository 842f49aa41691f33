// Package access tells who a request comes from: keys are lines of a file, and
// a request names one as its bearer token.
//
//	# name kind groups scopes sha256
//	alice  person  finance,board decide,read 5e88…
//	shop   machine -             start       0b14…
//
// The file holds only the SHA-256 of each key in hex. NewKey draws a key of 256
// random bits, which is why a plain hash is enough: there is nothing to guess.
// Keys reads the file again when it has changed, so that a key can be added or
// taken away without a restart; a file that has become unreadable or wrong keeps
// what was read last, and the operator is told.
package access
