// Package webhook delivers the messages of an outbox to an HTTP endpoint, signed
// as the Standard Webhooks specification says. It needs the standard library only.
//
// # What arrives
//
// One POST per message with the CloudEvent in structured JSON as its body, so
// that the signature covers all of it, and these headers:
//
//	webhook-id          the message id, the same at every try; receivers drop
//	                    repeats by it
//	webhook-timestamp   when this try was made, in seconds of Unix time
//	webhook-signature   "v1," and the HMAC-SHA256 of "id.timestamp.body" in
//	                    base64, one for each secret, separated by spaces
//	content-type        application/cloudevents+json
//	traceparent, tracestate   as the message has them, not signed
//
// Verify is the receiver's side of it, for receivers in Go.
//
// Secrets rotate without a gap: first send with the new and the old one, then
// let the receiver learn the new one, then drop the old one; see Sink.Rotate.
//
// # What an answer means
//
//	2xx                 delivered
//	429, 503 with Retry-After   later; no message is to blame
//	408, 425, 5xx, 3xx, none    the endpoint's failure; tried again
//	401, 403, 404, 405, 407, 410    the same: a secret, a route or the endpoint
//	                    itself is not what it was, for all messages alike
//	other 4xx           the message is refused
//
// An endpoint that takes other messages of the same batch is not down: then such
// an answer counts as an attempt of the message.
//
// Retry-After is followed up to RetryAfterMost. Redirects are not followed,
// since they would carry a signed message to somebody who was never named.
//
// # The circuit
//
// A sink has one endpoint. After Config.Failures failed requests in a row, or an
// answer that asks for patience, it sends nothing for a while, then one request
// to see, then everything. What is not sent meanwhile costs no attempt.
//
// # Which addresses are reached
//
// Whoever may name an endpoint could name an address inside our network. So
// private, loopback, link-local and other special addresses are refused unless
// Config.AllowNetworks has them. The check is made on the address that is being
// dialled, behind every spelling (decimal, hexadecimal, IPv4 inside IPv6) and
// after every look-up, so that a name cannot change its address in between. No
// proxy is taken from the environment.
package webhook
