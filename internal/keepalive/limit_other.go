//go:build !linux

package keepalive

import (
	"syscall"
	"time"
)

// limit has no such option to set.
func limit(time.Duration) func(network, address string, c syscall.RawConn) error { return nil }
