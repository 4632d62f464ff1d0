//go:build !linux

package rawconn

import "syscall"

// The ways of other pollers are not known so well.
const known = false

// Read is never called: there is no socket.
func Read(uintptr, []byte) (n int, err error) { return 0, syscall.ENOTSUP }

// Write is never called: there is no socket.
func Write(uintptr, []byte) (n int, err error) { return 0, syscall.ENOTSUP }
