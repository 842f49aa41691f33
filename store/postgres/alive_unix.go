//go:build unix

package postgres

import (
	"crypto/tls"
	"errors"
	"net"
	"syscall"
)

// alive reports whether an idle connection still looks open: the server sends
// nothing unasked but its good-bye. It costs a microsecond, and saves a commit
// from being sent into a connection that the server has closed, after which
// nobody would know its outcome.
func alive(nc net.Conn) bool {
	if secured, ok := nc.(*tls.Conn); ok {
		nc = secured.NetConn()
	}
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return true
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return false
	}
	open := false
	// Control and not Read: after a slow write the driver may have left a reader
	// behind, and Read would wait for that until the server speaks.
	err = raw.Control(func(fd uintptr) {
		var one [1]byte
		_, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		open = errors.Is(err, syscall.EAGAIN)
	})
	return err == nil && open
}
