// Package egress holds what every call to somebody else's server must mind:
// which addresses may be dialled, and how long an answer asks to be left alone.
// It stands alone, so that the outbox and the performer of http steps share one
// guard.
//
// A URL that comes from outside (a setting, a definition, the input of a run)
// must not reach what only this machine or its network can reach: a database on
// loopback, a neighbour's admin page, the metadata service of a cloud. Looking at
// the URL is not enough: a name may resolve to a private address, or to another
// one at each look-up, and an address has many spellings. So the check is made on
// the address of the connection itself, in the moment before it is dialled:
//
//	dialer := &net.Dialer{ControlContext: egress.Guard(allowed)}
//	transport := &http.Transport{DialContext: dialer.DialContext} // and no Proxy
//
// Redirects must not be followed, and no proxy be taken from the environment;
// either would dial in the guard's place.
package egress
