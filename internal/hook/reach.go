package hook

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"time"
)

// Reach reports what keeps the hook from being called at all: a command that
// is no executable, a URL on which nothing accepts a connection. It does not
// call the hook, which may change the destination. name says which hook it is;
// client may be nil. Every error is an *Error.
func (s Spec) Reach(ctx context.Context, client *http.Client, timeout time.Duration, name string) error {
	switch {
	case s.URL != "" && len(s.Command) > 0:
		return &Error{Kind: KindSetup, Hook: name, Message: "both a url and a command are set", Fix: "give one of the two"}
	case len(s.Command) > 0:
		if _, err := exec.LookPath(s.Command[0]); err != nil {
			return &Error{Kind: KindSetup, Hook: name, Message: "cannot be started", Err: err,
				Fix: "give the path of the program, and make it executable"}
		}
		return nil
	case s.URL == "":
		return &Error{Kind: KindSetup, Hook: name, Message: "neither a url nor a command is set"}
	}
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := connect(limited, client, s.URL); err != nil {
		broken := unreachable(limited, ctx, name, hostOf(s.URL), timeout, err)
		broken.Fix = cmp.Or(broken.Fix, "start it, or look at the host and the port of its URL")
		return broken
	}
	return nil
}

// connect opens a connection in the way of the client and closes it again. The
// URL may hold a secret, so no error carries it.
func connect(ctx context.Context, client *http.Client, address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return withoutURL(err)
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443"}[u.Scheme]
	}
	if port == "" {
		port = "80"
	}
	dial, cfg := (&net.Dialer{}).DialContext, &tls.Config{}
	if client != nil {
		if t, ok := client.Transport.(*http.Transport); ok {
			if t.DialContext != nil {
				dial = t.DialContext
			}
			if t.TLSClientConfig != nil {
				cfg = t.TLSClientConfig.Clone()
			}
		}
	}
	conn, err := dial(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return err
	}
	defer conn.Close()
	if u.Scheme != "https" {
		return nil
	}
	if cfg.ServerName == "" {
		cfg.ServerName = u.Hostname()
	}
	return tls.Client(conn, cfg).HandshakeContext(ctx)
}

// hostOf is host and port of a URL, as far as it can be read.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}
