//go:build !race

package rawconn

import (
	"syscall"
	"unsafe"
)

// Read reads at most len(b) bytes from a socket that does not block. Without an
// error n is 0 at the end of what the peer sends; the error is syscall.EAGAIN
// where nothing is there, or another syscall.Errno.
func Read(fd uintptr, b []byte) (n int, err error) {
	return call(syscall.SYS_READ, fd, b)
}

// Write writes as many of b as the socket takes at once. The error is
// syscall.EAGAIN where it takes none, or another syscall.Errno.
func Write(fd uintptr, b []byte) (n int, err error) {
	return call(syscall.SYS_WRITE, fd, b)
}

func call(trap, fd uintptr, b []byte) (int, error) {
	for {
		n, _, errno := syscall.RawSyscall(trap, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
		switch errno {
		case 0:
			return int(n), nil
		case syscall.EINTR:
		default:
			return 0, errno
		}
	}
}
