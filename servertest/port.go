//go:build unix

package servertest

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
)

const (
	// firstPort and portsUpTo bound the ports of servers. They lie below those that
	// Linux (32768) and others (49152) give to whoever asks for any, so that no
	// connection of another program sits on a server's port while that is down.
	firstPort = 12000
	portsUpTo = 32000
)

// reservePort finds a port on which nothing listens, and keeps every other caller
// of this function away from it, in this process and in others, until hold is
// closed or the process ends.
//
// The reservation is a UDP socket of the same number: the kernel lets nobody have
// it twice and takes it back also from who was killed, and the server, which
// listens on TCP, does not mind.
func reservePort() (port int, hold io.Closer, err error) {
	begin := rand.IntN(portsUpTo - firstPort)
	for i := range portsUpTo - firstPort {
		port := firstPort + (begin+i)%(portsUpTo-firstPort)
		address := fmt.Sprintf("127.0.0.1:%d", port)
		hold, err := net.ListenPacket("udp4", address)
		if err != nil {
			continue
		}
		l, err := net.Listen("tcp4", address)
		if err == nil && l.Close() == nil {
			return port, hold, nil
		}
		_ = hold.Close() // some other program listens there
	}
	return 0, nil, errors.New("no port is free on 127.0.0.1")
}
