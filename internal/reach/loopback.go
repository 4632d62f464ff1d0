package reach

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/destkit/destkit/internal/foreign"
)

// ErrPeer means that the peer is not on this machine, or that a proxy on
// this machine passes on another's request.
var ErrPeer = errors.New("the request does not come from this machine")

// Outbound is the header that the service sends with each call to an address that
// a user of its API has chosen: of destinations and webhooks. No control
// endpoint answers a call that has it.
const Outbound = "Destkit-Outbound"

// ErrOutbound means that a service makes the request, for a user of
// its API, and for no one on this machine.
var ErrOutbound = errors.New("a call of a service to a destination or webhook may not come here")

// shown bounds what a message repeats of a header.
const shown = 100

// passedOn are the headers by which proxies and tunnels say for whom they ask.
var passedOn = []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip"}

// OwnOrigin reports whether a request has the header Outbound, with or without a value.
func OwnOrigin(r *http.Request) bool { return len(r.Header.Values(Outbound)) > 0 }

// AdmitLoopback returns why a request is not one of this machine. It must not be an outbound call of
// a service (ErrOutbound). The peer must be on loopback (ErrPeer), must not be a proxy (ErrPeer),
// must have used a name of loopback, since a page of another site whose name resolves to 127.0.0.1
// has not, and must not be a page of another origin. A peer without a network address (a Unix socket,
// a listener in memory) has no name to use.
func AdmitLoopback(r *http.Request) error {
	if OwnOrigin(r) {
		return ErrOutbound
	}
	if !LoopbackAddress(r.RemoteAddr) {
		return ErrPeer
	}
	for _, name := range passedOn {
		if r.Header.Get(name) != "" {
			return ErrPeer
		}
	}
	if onNetwork(r.RemoteAddr) && !LoopbackName(r.Host) {
		return fmt.Errorf("the host %q is no name of loopback; call 127.0.0.1 or localhost", foreign.Clip(r.Host, shown))
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return errors.New("a page of another site may not call here")
	}
	if origin := r.Header.Get("Origin"); origin != "" && origin != "http://"+r.Host && origin != "https://"+r.Host {
		return fmt.Errorf("a page of the origin %q may not call here", foreign.Clip(origin, shown))
	}
	return nil
}

// LoopbackAddress reports whether the address of a peer, with or without its port, is on
// this machine. One that is no network address is.
func LoopbackAddress(remote string) bool {
	address, err := parse(remote)
	return err != nil || address.Unmap().IsLoopback()
}

// onNetwork reports whether a peer has a network address at all.
func onNetwork(remote string) bool {
	_, err := parse(remote)
	return err == nil
}

// LoopbackName reports whether a host, with or without its port, names this machine
// without asking a resolver: a name of another site may lead here too.
func LoopbackName(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), ".")
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.Unmap().IsLoopback()
}

// PrivateHost reports whether a host, without its port, is a name of loopback, or an
// address that does not leave this machine or its network.
func PrivateHost(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && (ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast())
}

// parse takes an address with or without its port.
func parse(remote string) (netip.Addr, error) {
	if host, _, err := net.SplitHostPort(remote); err == nil {
		remote = host
	}
	return netip.ParseAddr(strings.Trim(remote, "[]"))
}
