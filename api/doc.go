// Package api carries a ringi.Service over HTTP: New makes the handler that a
// server mounts, NewClient makes a Service out of a server's address and a
// key. What stands between them is described by the OpenAPI document that the
// server gives at /openapi.json and /openapi.yaml, and for workers, with
// examples, in docs/worker-protocol.md.
//
// # A request
//
//	Guard        the Host and Origin of the request: no web page can act here
//	content type JSON, or YAML to publish; anything else is 415
//	Who          the caller, from the key alone, never from what was sent
//	scope        each route names exactly one
//	door         text that can be kept, each field once and in its own letters,
//	             values of the right kind; unknown fields are refused
//	handler      one call of the Service
//
// A wrong item of begin, complete or fail is refused by itself, since the calls of
// the others were made. What a call answered goes to the rules whatever it is, as
// long as it is JSON: it did happen.
//
// A GET changes nothing. An answer that is not a success is a Refusal: RFC 9457
// with the code, the hint and whether the same request may succeed later.
//
// # One noun, one file
//
// run.go, approval.go, incident.go, task.go, event.go, definition.go and
// queue.go each hold the routes of a noun with the shapes that go over the
// wire. JSON is camelCase, times are RFC 3339 in UTC, durations are whole
// milliseconds in fields whose names end in Ms.
//
// The client lives in client.go (requests), client_do.go (commands) and
// client_task.go (the batched commands of workers).
package api
