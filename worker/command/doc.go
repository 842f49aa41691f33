// Package command makes an activity of a program: one process per attempt, with
// the input on its standard input and the output on its standard output. So a
// shell script, a file of Python or a container runtime's client can be a step of
// a process without a line of code that knows ringi. It stands on package worker,
// which sees to leases, heartbeats, permission to begin, and draining.
//
//	r, err := command.New(command.Config{Program: []string{"./charge.sh"}, Activities: []string{"payment.charge"}})
//	w, err := worker.New(worker.Config{Service: service, Queues: []worker.Queue{r.Queue()}})
//
// # What a program gets
//
// The input as JSON on standard input, and in its environment RINGI_TASK_RUN,
// _STEP, _DIRECTION (forward, undo or probe), _ATTEMPT, _KEY (the idempotency key
// for the outside service), _ACTIVITY, _QUEUE, _DEFINITION, _VERSION, _EFFECT and
// _TIMEOUT_MS.
//
// # What it says
//
// Exit code 0 is a success, and standard output the output: one JSON value, or
// nothing for null; with Config.Text it is a text. Any other code is a failure:
//
//	65      a definite no: nothing happened, and trying again will not help
//	75      nothing happened; try again later
//	other   try again, as the effect of the step allows; it may have had its effect
//
// The failure has the code exit_N, or signal_NAME. A line on standard error that
// begins with Marker says more, before the program ends with another code than 0:
//
//	::ringi {"code":"card_declined","message":"the bank said no","retryable":false,"applied":"no"}
//
// A file descriptor of its own for this is the rejected alternative: it does not
// pass through docker run. All other lines go to the log, and the last of them are
// the message of a failure that has none.
//
// # How it ends
//
// When the attempt's time is up, its lease is lost, the run is being undone or the
// worker stops, the program's whole process group gets SIGTERM, and SIGKILL after
// Config.Grace. What it left behind in its group is killed when it has ended by
// itself, too. When the worker's own process is killed, a guard, a shell that
// waits beside each program, kills the program's whole group; on Linux the kernel
// kills the program itself even if there is no sh for that. Only what has left the
// group lives on, and should notice that its pipes are closed. A program that
// writes more than MaxOutput is killed at once.
package command
