// Package reach decides where the service may go for a user of its
// API: which addresses its calls connect to, and which files its sources and
// local_files destinations open. Both are checked on the thing itself, on the
// address that is dialled and on the file that is open, and not on its name
// alone: a name may mean something else a moment later.
//
// It knows nothing of sources, destinations and HTTP.
package reach

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Network selects the addresses that may be connected to. The zero value admits all.
type Network struct {
	// Hosts admit an address each; without any all are admitted.
	Hosts []Host
	// DenyLoopback refuses this machine by its loopback addresses and by sockets in
	// the file system, also where a host admits it.
	DenyLoopback bool
	// Own are the listeners of the service itself. It never calls itself: it would
	// be a caller on loopback.
	Own []netip.AddrPort
}

// Error is a connection that is not made. It names the address as it was given,
// and the flag.
type Error struct{ Address, Why string }

func (e *Error) Error() string { return e.Address + " " + e.Why }

// Refused reports whether a connection or a file was refused here.
func Refused(err error) bool {
	var network *Error
	var file *FileError
	return errors.As(err, &network) || errors.As(err, &file)
}

const (
	whyOwn      = "is the service itself, which does not call itself"
	whyLoopback = "is this machine, and loopback is not open to sources and destinations (--deny-loopback)"
	whyHosts    = "is none of the hosts that are open to sources and destinations (--allow-hosts)"
)

// Dial connects with a dialer for a user of the API. host is the name or
// address that was requested, address the one to dial, which may be a name
// still: every address that is really dialled is checked.
func (n *Network) Dial(ctx context.Context, with *net.Dialer, host, network, address string) (net.Conn, error) {
	dialer := *with
	before, beforeContext := dialer.Control, dialer.ControlContext
	dialer.Control = nil
	dialer.ControlContext = func(ctx context.Context, network, address string, raw syscall.RawConn) error {
		if err := n.Check(host, network, address); err != nil {
			return err
		}
		if beforeContext != nil {
			return beforeContext(ctx, network, address, raw)
		}
		if before != nil {
			return before(network, address, raw)
		}
		return nil
	}
	conn, err := dialer.DialContext(ctx, network, address)
	if refused, ok := errors.AsType[*Error](err); ok { // without net's prefix
		return nil, refused
	}
	return conn, err
}

// Check returns why an address, IP and port or the path of a socket, must not
// be dialled for host; nil when it may.
func (n *Network) Check(host, network, address string) error {
	refuse := func(why string) error { return &Error{host, why} }
	if strings.HasPrefix(network, "unix") {
		switch {
		case n.DenyLoopback:
			return refuse(whyLoopback)
		case len(n.Hosts) > 0 && !n.admits(host, netip.AddrPort{}):
			return refuse(whyHosts)
		}
		return nil
	}
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return refuse("is no address of the network")
	}
	to = netip.AddrPortFrom(to.Addr().Unmap().WithZone(""), to.Port())
	switch {
	case ListensAt(n.Own, to):
		return refuse(whyOwn)
	case n.DenyLoopback && local(to.Addr()):
		return refuse(whyLoopback)
	case len(n.Hosts) > 0 && !n.admits(host, to):
		return refuse(whyHosts)
	}
	return nil
}

// local reports whether an address never leaves this machine. The unspecified one
// is connected to as loopback.
func local(addr netip.Addr) bool { return addr.IsLoopback() || addr.IsUnspecified() }

// ListensAt reports whether an address leads to one of these listeners. The unspecified address
// is connected to as loopback, and takes connections to any address of this machine.
func ListensAt(own []netip.AddrPort, to netip.AddrPort) bool {
	ip := to.Addr().Unmap().WithZone("")
	for _, at := range own {
		addr := at.Addr().Unmap().WithZone("")
		switch {
		case at.Port() != to.Port():
		case addr == ip, ip.IsUnspecified() && local(addr):
			return true
		case addr.IsUnspecified() && (local(ip) || ofThisMachine(ip)):
			return true
		}
	}
	return false
}

// ofThisMachine reports whether a network card has an address.
func ofThisMachine(addr netip.Addr) bool {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, a := range all {
		if one, err := netip.ParsePrefix(a.String()); err == nil && one.Addr().Unmap() == addr {
			return true
		}
	}
	return false
}

func (n *Network) admits(host string, to netip.AddrPort) bool {
	return slices.ContainsFunc(n.Hosts, func(h Host) bool { return h.admits(host, to) })
}

// Host admits a name, an address or a range of addresses, at one port or at all.
type Host struct {
	name   string // lower case; "" for a range, ".example.com" for all names below it
	prefix netip.Prefix
	any    bool // all hosts at one port
	port   uint16
}

// ParseHost reads a name (example.com), all names below one (*.example.com), an
// address, a range (10.0.0.0/8), or * for all, each with or without :PORT. An IPv6
// one with a port needs brackets: [fd00::/8]:443.
func ParseHost(text string) (Host, error) {
	var h Host
	rest := text
	if _, host, url := strings.Cut(text, "://"); url {
		return h, fmt.Errorf("%q is a URL: give its host alone: %s", text, strings.TrimRight(host, "/"))
	}
	// Whatever has more than one colon and no bracket is IPv6 without a port.
	bracket := strings.HasPrefix(rest, "[")
	if at := strings.LastIndexByte(rest, ':'); at >= 0 && (bracket && strings.HasSuffix(rest[:at], "]") || !bracket && strings.Count(rest, ":") == 1) {
		port, err := strconv.ParseUint(rest[at+1:], 10, 16)
		if err != nil || port == 0 {
			return h, fmt.Errorf("%q has a port outside 1 to 65535", text)
		}
		h.port, rest = uint16(port), rest[:at]
	}
	if strings.HasPrefix(rest, "[") && strings.HasSuffix(rest, "]") {
		rest = rest[1 : len(rest)-1]
	}
	if addr, err := netip.ParseAddr(rest); err == nil {
		addr = addr.Unmap().WithZone("")
		h.prefix = netip.PrefixFrom(addr, addr.BitLen())
		return h, nil
	}
	if prefix, err := netip.ParsePrefix(rest); err == nil {
		if prefix.Addr().Is4In6() && prefix.Bits() >= 96 {
			prefix = netip.PrefixFrom(prefix.Addr().Unmap(), prefix.Bits()-96)
		}
		h.prefix = prefix.Masked()
		return h, nil
	}
	switch name := plainName(rest); {
	case rest == "*" || rest == "" && h.port != 0:
		h.any = true
	case validName(strings.TrimPrefix(name, "*.")):
		h.name = strings.TrimPrefix(name, "*")
	default:
		return h, fmt.Errorf("%q is no host: write a name, *.NAME, an address or a range such as 10.0.0.0/8, with or without :PORT", text)
	}
	return h, nil
}

// admits compares the address with a range, and the requested name with a name.
// localhost is its addresses, however they are named.
func (h Host) admits(host string, to netip.AddrPort) bool {
	if h.port != 0 && h.port != to.Port() {
		return false
	}
	name := plainName(host)
	switch {
	case h.any:
		return true
	case h.prefix.IsValid():
		return h.prefix.Contains(to.Addr())
	case h.name == "localhost" && to.IsValid() && to.Addr().IsLoopback():
		return true
	case strings.HasPrefix(h.name, "."):
		return strings.HasSuffix(name, h.name)
	}
	return name == h.name
}

// plainName is a name as it is compared: without case and the dot at its end.
func plainName(name string) string { return strings.TrimSuffix(strings.ToLower(name), ".") }

// validName admits the names that a resolver may look up. A number alone is none:
// some resolvers take 2130706433 for 127.0.0.1.
func validName(name string) bool {
	if name == "" || len(name) > 253 || strings.Trim(name, "0123456789.") == "" {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	return true
}
