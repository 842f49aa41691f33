// Package httpstep performs http steps: it is the activity that the engine's own
// workers run for each task of the queue workflow.HTTPQueue. It stands on package
// worker, and so has its leases, heartbeats, permission to begin, time-outs and
// draining; to the rest of the system an http step is a call like any other.
//
//	w, err := worker.New(worker.Config{
//		Service: service,
//		Queues:  []worker.Queue{httpstep.New(httpstep.Config{}).Queue()},
//	})
//
// # The request
//
// A task's input is the request as it was frozen in the log: method, url, headers,
// query, body and expect. The key of the task goes along as Idempotency-Key in
// every request that is not GET or HEAD. A body is sent as JSON; where the step
// sets another Content-Type, a text is sent as it is, and an object as a form if
// the type is application/x-www-form-urlencoded.
//
// Each attempt has a connection of its own. A pool is the rejected alternative: a
// kept connection may be closed while the request is on its way, and net/http
// then sends a request with an Idempotency-Key again by itself, which a step that
// must not repeat cannot bear.
//
// # Where it may go
//
// The address of each connection is checked when it is dialled, see package
// egress. Redirects are answers and not followed; no proxy is taken from the
// environment; the only way out is the one that the guard sees.
//
// # A host that is slow
//
// Calls to one host take no more than a quarter of the slots. A task that finds its
// host busy is not handed out at all: the engine asks Later and leaves it in its
// queue, so that it uses up neither slot nor attempt, and those behind it go on.
//
// # What an answer means
//
// A status that the step expects (any 2xx when it names none) is a success, and
// its body the output: JSON as it is, an empty body as null, anything else as
// text. Every other status is the failure http_NNN:
//
//	408, 425, 429, 5xx but 501 and 505   may pass: retryable, Retry-After is followed
//	409 of an idempotent step            the attempt before may still be at work: retryable
//	any other                            definite: not retryable
//
// Whether such a call had its effect follows from who has spoken. 425 and 429 are
// said before anything is done. A definite refusal of a call that was certainly
// made for the first time says that nothing happened. When an attempt under the
// same key may have gone before, only 400, 402 and 422 speak for that one too:
// with 401, 403 or 404 a gateway may have answered that never looked at the key.
// All else is unknown. Without an answer, what was never connected was not
// applied, and what was sent and not answered is unknown.
//
// A probe is answered by status: expected is applied, with the body as the output
// of the step; 404 and 410 are not applied. A body that says itself
// {"applied":"yes"|"no"|"unknown"} is taken at its word.
package httpstep
