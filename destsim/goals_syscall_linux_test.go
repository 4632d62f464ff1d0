package destsim

import (
	"syscall"
	"unsafe"
)

// rawRead and rawWrite do not tell the scheduler of Go: the descriptors never
// block, and the telling is most of the cost.
func rawRead(fd int, b []byte) int {
	n, _, errno := syscall.RawSyscall(syscall.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
	if errno != 0 {
		return -1
	}
	return int(n)
}

func rawWrite(fd int, b []byte) int {
	n, _, errno := syscall.RawSyscall(syscall.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
	if errno != 0 {
		return -1
	}
	return int(n)
}
