package rules

import (
	"bytes"
	"cmp"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance/internal/wire"
)

// httpGroup judges the HTTP responses that carried the replies.
func httpGroup(g ruleset) map[string]Claim {
	g.on(answers, "HTTP-001", "HTTP-011")
	g.on(called, "HTTP-002")
	g.on(good, "HTTP-003")
	g.on(func(c *Call) bool { return good(c) && c.Status/100 != 3 }, "HTTP-010")
	g.on(begun, "HTTP-004", "HTTP-006")
	g.on(func(c *Call) bool { return c.Ended() && c.httpMethod == http.MethodPost }, "HTTP-007")
	g.on(func(c *Call) bool {
		return answers(c) && c.httpMethod != http.MethodPost && c.httpMethod != http.MethodOptions
	}, "HTTP-005")
	return map[string]Claim{
		"every HTTP response that holds a result has a 2xx status": each(func(r *reply) (string, string) {
			if r.Result() != nil && r.Status/100 != 2 {
				return "status 200 for a result", fmt.Sprintf("status %d with a result", r.Status)
			}
			return "", ""
		}),
		"every HTTP response that holds an envelope says that it is JSON": each(contentType),
		"every HTTP response holds its answer":                            each(holdsAnswer),
		"every HTTP response is no redirect":                              noRedirects,
		"every HTTP response is complete":                                 each(complete),
		"every HTTP response is encoded as offered and labelled": each(func(r *reply) (string, string) {
			if r.Kind == wire.KindEncoding {
				return "a body that is encoded as its Content-Encoding says, in a coding that was offered", r.Failure()
			}
			return "", ""
		}),
		"every HTTP response holds an envelope": each(expects("a JSON-RPC envelope, whatever the status",
			func(r *reply) bool { return !r.OK() || r.Member("error") != nil || r.Member("result") != nil })),
		"every HTTP response is fresh": each(fresh),
	}
}

func contentType(r *reply) (string, string) {
	value := r.Header.Get("Content-Type")
	kind, _, err := mime.ParseMediaType(value)
	// The last two label JSON-RPC.
	labelled := err == nil && slices.Contains([]string{"application/json", "application/json-rpc", "application/jsonrequest"}, kind)
	if labelled || !r.Doc().Is(wire.Object) {
		return "", ""
	}
	return "Content-Type: application/json", cmp.Or(value, "no Content-Type")
}

// holdsAnswer: the service waits for the answer in the same exchange (spec 4.2).
func holdsAnswer(r *reply) (string, string) {
	const expected = "the answer in the body of the same response"
	switch {
	case !r.OK() || r.Status >= 300:
		return "", ""
	case len(bytes.TrimSpace(r.Body)) == 0:
		return expected, fmt.Sprintf("status %d with an empty body", r.Status)
	case r.Status == http.StatusAccepted && r.Member("result") == nil && r.Member("error") == nil:
		return expected, r.Short()
	}
	return "", ""
}

// noRedirects shows the call that was redirected, not the one behind it.
func noRedirects(l *Look) error {
	sent := slices.Clone(l.Replies)
	for i, r := range sent {
		if len(r.Redirected) > 0 {
			sent[i] = r.Redirected[0]
		}
	}
	return l.every(sent, func(r *reply) (string, string) {
		if r.Status/100 != 3 {
			return "", ""
		}
		return "an answer at the configured URL", fmt.Sprintf("status %d to %s", r.Status, r.Header.Get("Location"))
	})
}

func complete(r *reply) (string, string) {
	switch r.Kind {
	case wire.KindTruncated, wire.KindMalformed:
		return "a response whose length and chunks are as announced", r.Failure()
	case wire.KindTooLarge:
		return fmt.Sprintf("a response that a client can hold, of less than %d MiB", wire.DefaultMaxBody>>20), r.Failure()
	case wire.KindTimeout:
		if r.Received > 0 { // one that never began is a matter of time
			return "a response that comes to its end once it has begun", fmt.Sprintf("%s: it began, and %s", r.What(), r.Failure())
		}
	}
	return "", ""
}

// fresh: a reply must not come from a cache (spec 4.2.1).
func fresh(r *reply) (string, string) {
	const expected = "a response made for this request"
	if age := r.Header.Get("Age"); age != "" {
		return expected, "Age: " + age
	}
	for _, name := range []string{"X-Cache", "Cf-Cache-Status", "X-Cache-Status"} {
		if v := r.Header.Get(name); strings.HasPrefix(strings.ToUpper(v), "HIT") {
			return expected, name + ": " + v
		}
	}
	return "", ""
}
