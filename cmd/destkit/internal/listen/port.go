// Package listen opens the ports of commands and serves them until a context ends:
// errors name the flag to change, and calls in flight get time to finish. Signals
// and what is served belong to the commands.
package listen

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
	"syscall"
	"time"

	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/destsim"
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
	ln, err := net.Listen("tcp", s.Addr)
	if err != nil {
		var op *net.OpError // it repeats the address
		if errors.As(err, &op) {
			err = op.Err
		}
		if _, port, _ := net.SplitHostPort(s.Addr); inUse(err) {
			flag := cmp.Or(s.Flag, "--addr")
			return nil, "", exit.Untested(fmt.Errorf("listen on %s: port %s is in use: pass %s 127.0.0.1:0 or another port", s.Addr, port, flag))
		}
		if bare := strings.Trim(s.Addr, "0123456789") == ""; bare && s.Addr != "" {
			return nil, "", exit.Usagef("%s %s is not HOST:PORT: did you mean 127.0.0.1:%s?", cmp.Or(s.Flag, "--addr"), s.Addr, s.Addr)
		}
		err = fmt.Errorf("listen on %s: %w", s.Addr, err)
		var refused *os.SyscallError
		if errors.As(err, &refused) {
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

// inUse reports whether another program listens at the address; Windows has a
// number of its own for it, WSAEADDRINUSE.
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
	return &http.Server{Handler: handler, ErrorLog: logger, ReadHeaderTimeout: head, IdleTimeout: idle}
}

// Serve answers on ln until ctx ends, then lets calls in flight finish.
func (s *Port) Serve(ctx context.Context, ln net.Listener) error {
	server := newFrontEnd(s.Handler)
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
