//go:build unix

package wire

import (
	"net"
	"syscall"
)

// gone reports whether the peer has closed an idle connection, without
// waiting and without taking a byte. A request on it would be lost, and that
// would be counted as an error of the target.
func gone(conn net.Conn) bool {
	raw, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	control, err := raw.SyscallConn()
	if err != nil {
		return true
	}
	closed := false
	err = control.Read(func(fd uintptr) bool {
		var one [1]byte
		_, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		// Bytes on an idle connection are a farewell: an alert of TLS, a 408.
		closed = err != syscall.EAGAIN && err != syscall.EINTR
		return true
	})
	return closed || err != nil
}
