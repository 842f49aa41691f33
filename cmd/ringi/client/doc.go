// Package client holds the commands that speak to a server about runs: one file
// a noun. They know only ringi.Service.
package client
