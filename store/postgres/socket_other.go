//go:build !unix

package postgres

import "net"

// alive is not known here without reading; the first use of a connection tells.
func alive(net.Conn) bool { return true }

// room is not known here; so much every system has.
func room(net.Conn) int { return leastRoom }
