package destsim

import (
	"net"
	"syscall"
	"unsafe"
)

// rawOf gives the socket of a plain connection.
func rawOf(conn net.Conn) syscall.RawConn {
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

// readNow reads from a socket that does not block; later says that nothing is
// there. n is 0 at the end and -1 after a fault.
func readNow(fd uintptr, b []byte) (n int, later bool) {
	for {
		n, _, errno := syscall.RawSyscall(syscall.SYS_READ, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
		switch errno {
		case 0:
			return int(n), false
		case syscall.EAGAIN:
			return 0, true
		case syscall.EINTR:
		default:
			return -1, false
		}
	}
}

// writeNow writes what the socket takes. It tells of no fault: the next write
// will.
func writeNow(fd uintptr, b []byte) int {
	n, _, errno := syscall.RawSyscall(syscall.SYS_WRITE, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
	if errno != 0 {
		return 0
	}
	return int(n)
}
