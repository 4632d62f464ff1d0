// Package loadgen is the hammer: it sends batches of a custom destination
// protocol (spec 4.2) as fast as asked or as fast as the target takes them, by a
// schedule or in a closed loop, and checks every record's result on the way.
//
// It owns the run: what is sent (objects, mixes, keys), by which connections and phases,
// the figures, their limits and how they are written. Records, batches, connections and
// the schedule are packages below; pages are made of its results elsewhere. It refuses
// to know the judge, the simulator and the service; it never listens, prints or reads
// the environment.
package loadgen

import (
	"context"
	"crypto/x509"
	"net"
	"strings"
	"time"

	"github.com/destkit/destkit/loadgen/internal/records"
	"github.com/destkit/destkit/loadgen/internal/wire"
)

// UsageError is a mistake of the caller, in words: nothing was sent.
type UsageError = wire.UsageError

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

// DefaultKeyTemplate of string identifiers; {n} has twelve digits.
const DefaultKeyTemplate = records.DefaultTemplate

// Keys says which identifiers a run uses, so that no one mistakes them for data
// and clean-up can name them one by one: the n-th key of the run, from 0.
type Keys struct {
	// Template of string identifiers; {run} and {n} are filled in. All keys of a
	// run have the same length.
	Template string `json:"template"`
	// From and To are the closed range of integer identifiers.
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// RunKeys are the keys of a run that is known by its id, as Clean takes them. template
// is "" and from and to are 0 for a run without keys of its own.
func RunKeys(run, template string, from, to int64) (Keys, error) {
	if run == "" || strings.ContainsAny(run, "{}") {
		return Keys{}, wire.Usagef("%q is no id of a run: it is in the keys, such as e9e7dc in zz-load-e9e7dc-000000000000", run)
	}
	k, err := records.NewKeys(template, run, from, to)
	return Keys(k), err
}
