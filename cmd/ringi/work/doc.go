// Package work has the commands around workers: run a program as one, and look at
// queues and at who serves them.
package work
