package source

import (
	"fmt"
	"strings"
	"syscall"
	"time"
)

// userTimeout is TCP_USER_TIMEOUT of tcp(7), which package syscall does not have on
// all machines.
const userTimeout = 18

// unacknowledged bounds how long sent data may be without an acknowledgement. It also replaces
// the number of probes.
func unacknowledged(silence time.Duration) func(network, address string, c syscall.RawConn) error {
	return func(network, _ string, c syscall.RawConn) error {
		if !strings.HasPrefix(network, "tcp") {
			return nil // a socket in a folder loses nothing
		}
		var refused error
		err := c.Control(func(fd uintptr) {
			refused = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, userTimeout, int(silence.Milliseconds()))
		})
		if err == nil {
			err = refused
		}
		if err != nil {
			return fmt.Errorf("limit how long nothing may be acknowledged: %w", err)
		}
		return nil
	}
}
