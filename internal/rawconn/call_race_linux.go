//go:build race

package rawconn

import "syscall"

// The race detector takes traffic over a socket for an order of events only
// where package syscall reads and writes.

func Read(fd uintptr, b []byte) (n int, err error) {
	for {
		if n, err = syscall.Read(int(fd), b); err != syscall.EINTR {
			return max(n, 0), err
		}
	}
}

func Write(fd uintptr, b []byte) (n int, err error) {
	for {
		if n, err = syscall.Write(int(fd), b); err != syscall.EINTR {
			return max(n, 0), err
		}
	}
}
