package loadgen

import (
	"context"
	"crypto/x509"
	"net"
	"time"
)

// Target is the custom destination to be loaded.
type Target struct {
	// URL of the endpoint; its path and query may be secret and are never shown
	// (spec 5.2.3).
	URL string
	// Replicas are the URLs of further processes of the same destination: connections
	// are spread over all of them. The planning calls go to URL.
	Replicas []string
	// Token is sent as Authorization: Bearer (spec 5.2.2); "" sends none.
	Token string
	// Headers are further headers of every request, by name.
	Headers map[string]string
	// Roots replace the public certificate authorities.
	Roots *x509.CertPool
	// Development is auto (or ""), on or off: whether plain http and chains that
	// do not verify are accepted. auto: on loopback and private addresses.
	Development string
}

// Transport says how the target is reached. The zero value is the client of
// this package: HTTP/1.1, connections kept.
type Transport struct {
	// Standard uses net/http instead; HTTP2 and Proxy need it and imply it.
	Standard bool
	// HTTP2 offers HTTP/2, over https only.
	HTTP2 bool
	// Proxy is the URL of an http or socks5 proxy.
	Proxy string
	// Reconnect makes a new connection for every request.
	Reconnect bool
	// Compress offers gzip and deflate as the service does.
	Compress bool
	// Timeout of a batch with its connecting, 30 s when 0; PlanningTimeout of a
	// planning call before the load, 10 s when 0.
	Timeout, PlanningTimeout time.Duration
	// Dial connects instead of a net.Dialer, address being host:port; planning calls
	// are connected by it as well. The end of ctx ends dialling.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// MaxReply bounds the reply to a batch in bytes, as received and as decoded. When 0
	// it is 512 KiB and 4 KiB for each record of a batch, 32 MiB at the most.
	MaxReply int64
}
