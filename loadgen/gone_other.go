//go:build !unix

package loadgen

import "net"

// gone cannot be told here; a request on a closed connection is an error then.
func gone(net.Conn) bool { return false }
