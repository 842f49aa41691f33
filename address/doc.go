// Package address reads addresses of servers as people write them on a command
// line, SCHEME://PLACE?PARAMETERS: destinations of a relay and sources of a feed.
//
// Passwords, secrets and keys are named by files, since every user of a machine can
// read the arguments of all processes.
package address

import "strings"

// WithoutSecrets is an address as it may be printed: without the user and the
// password that stand before its host, and without its parameters.
func WithoutSecrets(text string) string {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		return text
	}
	rest, _, _ = strings.Cut(rest, "?")
	hosts, path, slash := strings.Cut(rest, "/")
	list := strings.Split(hosts, ",")
	for i, host := range list {
		if at := strings.LastIndex(host, "@"); at >= 0 {
			list[i] = host[at+1:]
		}
	}
	text = scheme + "://" + strings.Join(list, ",")
	if slash {
		text += "/" + path
	}
	return text
}
