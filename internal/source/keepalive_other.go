//go:build !linux

package source

import (
	"syscall"
	"time"
)

// unacknowledged has no such option to set.
func unacknowledged(time.Duration) func(network, address string, c syscall.RawConn) error { return nil }
