//go:build unix

package postgres

import (
	"crypto/tls"
	"errors"
	"net"
	"syscall"
)

// raw is the socket of a connection; nil when it has none.
func raw(nc net.Conn) syscall.RawConn {
	if secured, ok := nc.(*tls.Conn); ok {
		nc = secured.NetConn()
	}
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return nil
	}
	socket, err := sc.SyscallConn()
	if err != nil {
		return nil
	}
	return socket
}

// room is how many bytes the kernel takes in one go although the other side
// reads nothing. Linux reports twice of what it grants, to have some for its
// own records.
func room(nc net.Conn) int {
	socket := raw(nc)
	if socket == nil {
		return leastRoom
	}
	size := 0
	err := socket.Control(func(fd uintptr) {
		if n, err := syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_SNDBUF); err == nil {
			size = n / 2
		}
	})
	if err != nil {
		return leastRoom
	}
	return max(leastRoom, min(size, sendBuffer))
}

// alive reports whether an idle connection still looks open: the server sends
// nothing unasked but its good-bye. It costs a microsecond, and saves a commit
// from being sent into a connection that the server has closed, after which
// nobody would know its outcome.
func alive(nc net.Conn) bool {
	socket := raw(nc)
	if socket == nil {
		return true
	}
	open := false
	// Control and not Read: after a slow write the driver may have left a reader
	// behind, and Read would wait for that until the server speaks.
	err := socket.Control(func(fd uintptr) {
		var one [1]byte
		_, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		open = errors.Is(err, syscall.EAGAIN)
	})
	return err == nil && open
}
