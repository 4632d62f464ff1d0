//go:build !unix

package wire

import "net"

// gone is unknown here; a request on a closed connection is an error then.
func gone(net.Conn) bool { return false }
