package wire

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

// RoundTripper is a transport of net/http to the endpoint: of planning calls, and
// of the standard client.
func (e *Endpoint) RoundTripper() (http.RoundTripper, func()) {
	t := &http.Transport{
		DialContext: e.Transport.Dial, TLSClientConfig: e.tls.Clone(), ForceAttemptHTTP2: e.Transport.HTTP2, DisableCompression: true, MaxResponseHeaderBytes: longestHead,
		DisableKeepAlives: e.Transport.Reconnect, MaxIdleConnsPerHost: 1 << 16, MaxIdleConns: 0, IdleConnTimeout: 90 * time.Second,
	}
	if e.Transport.HTTP2 {
		t.TLSClientConfig.NextProtos = nil // net/http puts h2 first by itself
	}
	if e.Transport.Proxy != "" {
		// Checked in newStandard; a URL that does not parse proxies nothing.
		if proxy, err := url.Parse(e.Transport.Proxy); err == nil {
			t.Proxy = http.ProxyURL(proxy)
		}
	}
	return t, t.CloseIdleConnections
}

// CheckProxy refuses the URL of a proxy that net/http would not take.
func CheckProxy(raw string) error {
	if raw == "" {
		return nil
	}
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "socks5" && u.Scheme != "socks5h" {
		return Usagef("the proxy must be a URL such as http://HOST:PORT or socks5://HOST:PORT")
	}
	return nil
}

// Standard carries calls with net/http, for HTTP/2 and proxies. All connections
// of a run share the transport, as they would in a program.
type Standard struct {
	end    *Endpoint
	client *http.Client
	ctx    context.Context
	cancel atomic.Pointer[context.CancelFunc]
	late   atomic.Bool
	buf    []byte // holds a reply
	plain  []byte // … and what it was, where it came encoded
}

func NewStandard(ctx context.Context, end *Endpoint, shared http.RoundTripper) *Standard {
	return &Standard{end: end, ctx: ctx, client: &http.Client{
		Transport:     shared,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Call sends one request as that of a Link does, with net/http.
func (s *Standard) Call(r Request, _ int64) (rep Reply, err error) {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	s.late.Store(false)
	s.cancel.Store(&cancel)
	method, address := http.MethodPost, s.end.URL.String()
	if r.Method != "" {
		method, address = r.Method, s.end.Shown()+r.Target
	}
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(r.Body))
	if err != nil {
		return rep, Newf(KindHTTP, "the request cannot be made")
	}
	req.Header = s.end.Header.Clone()
	req.Host = s.end.host
	resp, err := s.client.Do(req)
	if err != nil {
		return rep, s.failure(err, false)
	}
	defer resp.Body.Close()
	most := s.end.Transport.MaxReply
	var body []byte
	var own *Failure
	switch s.buf, body, err = s.end.memory.read(s.buf, resp.Body, most); {
	case errors.As(err, &own):
		s.release()
		return rep, own
	case err != nil:
		s.release()
		return rep, s.failure(err, true)
	}
	h := head{length: -1}
	for _, name := range []string{"content-encoding", "x-ratelimit-limit", "retry-after"} {
		if value := resp.Header.Get(name); value != "" {
			_ = h.field([]byte(name), []byte(value)) // none of these can be wrong
		}
	}
	rep = Reply{Status: resp.StatusCode, Body: body, Limit: h.limit, Retry: h.retry}
	if h.encoding != "" && h.encoding != "identity" {
		if s.plain, rep.Body, err = s.end.memory.decode(s.plain, h.encoding, rep.Body, most); err != nil {
			s.release()
		}
	}
	return rep, err
}

// release gives large buffers back, after a call whose reply is not needed.
func (s *Standard) release() {
	s.end.memory.give(s.buf)
	s.end.memory.give(s.plain)
	s.buf, s.plain = nil, nil
}

// failure sorts an error of net/http like one of a link.
func (s *Standard) failure(err error, begun bool) *Failure {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // the URL may be secret
	}
	var op *net.OpError
	switch {
	case s.late.Load():
		return Newf(KindTimeout, "no whole reply in time")
	case errors.As(err, &op) && op.Op == "dial":
		return Dial(err)
	case strings.Contains(err.Error(), "tls: "), strings.Contains(err.Error(), "x509: "):
		return TLS(err)
	case strings.Contains(err.Error(), "malformed HTTP"):
		return Newf(KindHTTP, "the reply is not HTTP")
	}
	return Call(err, begun)
}

// Interrupt breaks the call that is under way, from another goroutine.
func (s *Standard) Interrupt() {
	s.late.Store(true)
	if cancel := s.cancel.Load(); cancel != nil {
		(*cancel)()
	}
}

// Close has nothing to close: the transport is closed by whoever made it.
func (s *Standard) Close() {}
