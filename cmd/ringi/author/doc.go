// Package author holds the commands for people who write definitions. All but
// publish work on files alone and need no server.
package author
