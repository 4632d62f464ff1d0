// Package rawconn reads and writes sockets without waiting and without a word
// to the scheduler, for connections that do nothing else for most of their time.
//
// A read of package net looks first and waits then: where the peer takes its
// turn, every look but one is in vain. Who uses this package waits first, with
// Read of the syscall.RawConn: its function returns false when it is called for
// the first time, and reads when it is called again. That call of Read drops the
// poller's earlier events, so only bytes that come after a write within the
// function are sure to be reported.
package rawconn

import (
	"net"
	"syscall"
)

// Of gives the socket of a plain TCP connection; nil where there is none, or
// where the system does not reliably report every byte that comes.
func Of(conn net.Conn) syscall.RawConn {
	if !known {
		return nil
	}
	plain, ok := conn.(*net.TCPConn)
	if !ok {
		return nil
	}
	raw, err := plain.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}
