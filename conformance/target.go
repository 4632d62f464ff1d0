package conformance

import (
	"net/http"
)

// Target is the endpoint under judgement: a URL or a handler.
type Target struct {
	// URL of the endpoint; query and path are kept verbatim (spec 4.2).
	URL string
	// Replicas are the URLs of further processes of the same destination.
	// Consecutive calls go to URL and to each of them in turn (spec 4.2,
	// statelessness rules); they get the token and the headers, too.
	Replicas []string
	// Handler is served over an in-memory listener when URL is empty; the TLS
	// checks are then NOT_RUN.
	Handler http.Handler
	// Token of the connection, sent as bearer with every call (spec 5.2.2).
	Token string
	// Headers are further headers of the connection.
	Headers map[string]string
}
