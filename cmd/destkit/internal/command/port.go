package command

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/internal/callers"
	"github.com/destkit/destkit/internal/reach"
)

// Grace is how long calls in flight may take after SIGINT or SIGTERM.
const Grace = 5 * time.Second

// Port is one port that a command serves.
type Port struct {
	Addr    string // HOST:PORT; port 0 lets the system choose
	Flag    string // that gave the address, "" for --addr
	Handler http.Handler
	TLS     *tls.Config // nil: plain http
	// AlsoPlain answers plain http on the TLS port with the same handler.
	// Without it net/http answers 400 there.
	AlsoPlain bool
}

// Open opens the port. The URL has the address that was really taken.
func (s *Port) Open() (net.Listener, string, error) {
	flag := cmp.Or(s.Flag, "--addr")
	if err := checkAddress(flag, s.Addr); err != nil {
		return nil, "", err
	}
	ln, err := net.Listen("tcp", s.Addr)
	if err != nil {
		if op, ok := errors.AsType[*net.OpError](err); ok { // it repeats the address
			err = op.Err
		}
		host, port, _ := net.SplitHostPort(s.Addr)
		if inUse(err) {
			return nil, "", exit.Untested(fmt.Errorf("listen on %s: port %s is in use: pass %s 127.0.0.1:0 or another port", s.Addr, port, flag))
		}
		if dns := new(net.DNSError); errors.As(err, &dns) {
			return nil, "", exit.Usagef("%s: there is no host %s; give an address of this machine, such as 127.0.0.1:%s", flag+" "+s.Addr, host, port)
		}
		if notOurs(err) {
			return nil, "", exit.Untested(fmt.Errorf("listen on %s: %s is no address of this machine: pass %s 127.0.0.1:%s, or 0.0.0.0:%s for all that it has", s.Addr, host, flag, port, port))
		}
		err = fmt.Errorf("listen on %s: %w", s.Addr, err)
		if _, ok := errors.AsType[*os.SyscallError](err); ok {
			return nil, "", exit.Untested(err) // the address is well formed, and taken, or not ours
		}
		return nil, "", exit.Usage(err)
	}
	scheme := "http"
	if s.TLS != nil {
		scheme = "https"
	}
	return ln, scheme + "://" + reachable(ln.Addr()), nil
}

// checkAddress refuses anything but HOST:PORT, and suggests a correction.
func checkAddress(flag, addr string) error {
	if addr == "" {
		return nil
	}
	named := flag + " " + addr
	if strings.Trim(addr, "0123456789") == "" {
		return exit.Usagef("%s is not HOST:PORT: did you mean 127.0.0.1:%s?", named, addr)
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		bare := strings.Trim(addr, "[]")
		switch at := strings.LastIndexByte(addr, ':'); {
		case net.ParseIP(bare) != nil && strings.Contains(bare, ":"), !strings.Contains(addr, ":"):
			return exit.Usagef("%s is not HOST:PORT: give it a port, such as %s", named, net.JoinHostPort(bare, "8080"))
		case at > 0 && net.ParseIP(addr[:at]) != nil:
			return exit.Usagef("%s is not HOST:PORT: an IPv6 address stands in brackets: did you mean %s?", named, "["+addr[:at]+"]"+addr[at:])
		}
		return exit.Usagef("%s is not HOST:PORT, such as 127.0.0.1:8080", named)
	}
	if _, err := net.LookupPort("tcp", port); err != nil {
		return exit.Usagef("%s: the port %q is no number from 0 to 65535", named, port)
	}
	return nil
}

// notOurs reports whether the address is that of another machine; Windows has a
// separate number for it, WSAEADDRNOTAVAIL.
func notOurs(err error) bool {
	var number syscall.Errno
	return errors.As(err, &number) && (number == syscall.EADDRNOTAVAIL || number == 10049)
}

// inUse reports whether another program listens at the address; Windows has a
// separate number for it, WSAEADDRINUSE.
func inUse(err error) bool {
	var number syscall.Errno
	return errors.As(err, &number) && (number == syscall.EADDRINUSE || number == 10048)
}

// reachable is the address with which this machine gets there: a port that is
// open on every address is shown with the loopback one.
func reachable(addr net.Addr) string {
	if tcp, ok := addr.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return fmt.Sprintf("127.0.0.1:%d", tcp.Port)
	}
	return addr.String()
}

// frontEnd is what http.Server and destsim.Server have in common here.
type frontEnd interface {
	Serve(net.Listener) error
	Shutdown(context.Context) error
	Close() error
}

// newFrontEnd puts a simulator on its fast path; everything else is net/http's. The
// complaints of both about their clients are dropped.
func newFrontEnd(handler http.Handler) frontEnd {
	logger := log.New(io.Discard, "", 0)
	const head, idle = 30 * time.Second, 2 * time.Minute
	if sim, ok := handler.(*destsim.Sim); ok {
		return &destsim.Server{Sim: sim, ErrorLog: logger, ReadHeaderTimeout: head, IdleTimeout: idle}
	}
	return &http.Server{Handler: handler, ErrorLog: logger, ReadHeaderTimeout: head, IdleTimeout: idle, MaxHeaderBytes: callers.MaxHead, ConnState: callers.State}
}

// Serve answers on ln until ctx ends, then lets calls in flight finish.
func (s *Port) Serve(ctx context.Context, ln net.Listener) error {
	server := newFrontEnd(s.Handler)
	ln = callers.Listen(ln, 0)
	if s.TLS != nil {
		ln = destsim.TLSListener(ln, s.TLS, s.AlsoPlain)
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(ln) }()
	select {
	case err := <-failed:
		return exit.Untested(fmt.Errorf("serve %s: %w", ln.Addr(), err))
	case <-ctx.Done():
	}
	// Open pages of a console would hold the end up: their updates never end.
	if pages, ok := s.Handler.(interface{ CloseConsole() }); ok {
		pages.CloseConsole()
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), Grace)
	defer cancel()
	if err := server.Shutdown(grace); err != nil {
		server.Close() // a client that never ends its call does not hold us
	}
	return nil
}

// Background is a port that is served during the work of a command.
type Background struct {
	URL string
	// Stop ends it once calls in flight are over, and lets go of what is behind the port.
	// Further calls return what the first did.
	Stop func() error
}

// StartPort opens a port and serves it; closing lets go of what is behind it, nil where
// there is nothing.
func StartPort(ctx context.Context, port *Port, closing func() error) (*Background, error) {
	if closing == nil {
		closing = func() error { return nil }
	}
	ln, url, err := port.Open()
	if err != nil {
		return nil, errors.Join(err, closing())
	}
	return StartPortOn(ctx, port, ln, url, closing), nil
}

// StartPortOn serves a port that is open.
func StartPortOn(ctx context.Context, port *Port, ln net.Listener, url string, closing func() error) *Background {
	ctx, end := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- port.Serve(ctx, ln) }()
	return &Background{URL: url, Stop: sync.OnceValue(func() error {
		end()
		if err := errors.Join(<-done, closing()); err != nil {
			return exit.Untested(err)
		}
		return nil
	})}
}

// OpenToOthers refuses an address for pages that others reach and may not use: without
// a token they answer this machine alone.
func OpenToOthers(flag, addr string, token TokenFlag) error {
	host, _, err := net.SplitHostPort(addr)
	if err == nil && token.Variable == "" && !reach.LoopbackName(host) {
		return exit.Usagef("%s %s is open to other machines: add --control-token-env NAME, with the token of the page in that variable, or use 127.0.0.1", flag, addr)
	}
	return nil
}
