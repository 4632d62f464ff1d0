package command

import (
	"net"

	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/internal/reach"
)

// OpenToOthers refuses an address for pages that others reach and may not use: without
// a token they answer this machine alone.
func OpenToOthers(flag, addr string, token TokenFlag) error {
	host, _, err := net.SplitHostPort(addr)
	if err == nil && token.Variable == "" && !reach.LoopbackName(host) {
		return exit.Usagef("%s %s is open to other machines: add --control-token-env NAME, with the token of the page in that variable, or use 127.0.0.1", flag, addr)
	}
	return nil
}
