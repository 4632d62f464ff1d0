package destination

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/destsim/rpc"
)

// way sends one call in an unusual way.
type way func(sc *scenario, c request) error

// ways are the ways that feature files name. A function, because some of
// them send through the steps above.
var ways = map[string]way{
	"as configured":                 func(sc *scenario, c request) error { return sc.with(c, nil) },
	"GET with the call in the body": verb(http.MethodGet),
	"PUT":                           verb(http.MethodPut),
	"DELETE":                        verb(http.MethodDelete),
	"GET with the call in the query": func(sc *scenario, c request) error {
		u := *sc.url
		q := url.Values{"jsonrpc": {rpc.Version}, "method": {c.method}, "params": {"{}"}, "id": {sc.newID()}}
		u.RawQuery = strings.TrimPrefix(u.RawQuery+"&"+q.Encode(), "&")
		return sc.with(c, func(c *request) {
			c.httpMethod, c.url, c.body = http.MethodGet, u.String(), []byte{}
			c.header = http.Header{"Content-Type": nil}
		})
	},
	"accepting gzip and deflate": header("Accept-Encoding", "gzip, deflate"),
	"accepting identity only":    header("Accept-Encoding", "identity"),
	"with charset=utf-8":         header("Content-Type", "application/json; charset=utf-8"),
	"with a chunked body":        changed(func(c *request) { c.chunked = true }),
	"with Expect: 100-continue":  changed(func(c *request) { c.expect = true }),
	"twice on one connection":    steadily(twice),
	"on a fresh connection":      changed(func(c *request) { c.fresh = true }),
	"after a body that is no JSON, on the same connection": afterOnConnection(func(request) request {
		return request{method: "garbage", body: []byte("this is no JSON"), odd: true}
	}),
	"after a call without credentials, on the same connection": afterOnConnection(func(c request) request {
		c.header = http.Header{"Authorization": nil}
		return c
	}),
	"after a PUT, on the same connection": afterOnConnection(func(c request) request {
		c.httpMethod = http.MethodPut
		return c
	}),
	"after a call that was cut in its body":      after(func(c *request) { c.cutRequest = 20 }),
	"after a call that was cut before its reply": after(func(c *request) { c.cutAtOnce = true }),
	"over plain http on the probe port":          changed(func(c *request) { c.plain = true }),

	"without credentials":          changed(func(c *request) { c.header = http.Header{"Authorization": nil} }),
	"with a wrong token":           token(func(string) string { return "zz-wrong-token" }),
	"with a truncated token":       token(func(t string) string { return t[:len(t)-1] }),
	"with an extended token":       token(func(t string) string { return t + "x" }),
	"with a token in changed case": token(swapCase),
	"with an empty token":          token(func(string) string { return "" }),
	"with the token before the rotation": func(sc *scenario, c request) error {
		return header("Authorization", "Bearer "+sc.target.Token)(sc, c)
	},
	"with the token by Basic scheme": func(sc *scenario, c request) error {
		pair := base64.StdEncoding.EncodeToString([]byte("bearer:" + sc.token.get()))
		return header("Authorization", "Basic "+pair)(sc, c)
	},

	"with an extended token, if there is one":      ifConfigured(token(func(t string) string { return t + "x" })),
	"with a wrong URL secret, if there is one":     ifConfigured(secret(func(*scenario) []string { return []string{wrongSecret} })),
	"with a wrong URL secret":                      secret(func(*scenario) []string { return []string{wrongSecret} }),
	"without the URL secret":                       secret(func(*scenario) []string { return nil }),
	"with a wrong URL secret before the right one": repeated(func(sc *scenario) []string { return []string{wrongSecret, sc.secret} }),
	"with a wrong URL secret after the right one":  repeated(func(sc *scenario) []string { return []string{sc.secret, wrongSecret} }),
}

const wrongSecret = "zz-wrong-secret"

// with sends a copy of a call after a change.
func (sc *scenario) with(c request, change func(*request)) error {
	if change != nil {
		change(&c)
	}
	_, err := sc.send(c)
	return err
}

// changed sends the call after a change.
func changed(change func(*request)) way {
	return func(sc *scenario, c request) error { return sc.with(c, change) }
}

func verb(method string) way { return changed(func(c *request) { c.httpMethod = method }) }

func header(name, value string) way {
	return changed(func(c *request) { c.header = http.Header{name: {value}} })
}

// token sends another token than the configured one (spec 5.2.2).
func token(change func(string) string) way {
	return func(sc *scenario, c request) error {
		t := sc.token.get()
		if t == "" {
			return notApplicable("no Auth Token is configured: name its variable with --token-env")
		}
		changed := change(t)
		if changed == t {
			return nil // a token without letters has no other case
		}
		return header("Authorization", strings.TrimRight("Bearer "+changed, " "))(sc, c)
	}
}

func swapCase(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return r
	}, s)
}

// secret calls the URL with other values of the secret segment (spec 5.2.3).
func secret(values func(*scenario) []string) way {
	return func(sc *scenario, c request) error {
		changed, err := sc.withSecret(values(sc))
		if err != nil {
			return err
		}
		return sc.with(c, func(c *request) { c.url = changed })
	}
}

// ifConfigured leaves a way out where the credential that it changes is not
// configured.
func ifConfigured(change way) way {
	return func(sc *scenario, c request) error {
		if err := change(sc, c); statusOf(err) != conformance.NotApplicable {
			return err
		}
		return nil
	}
}

// repeated is secret for query parameters, the only segment that can repeat.
func repeated(values func(*scenario) []string) way {
	return func(sc *scenario, c request) error {
		if strings.HasPrefix(sc.opts.URLSecret, "path:") {
			return notApplicable("the URL secret is a path segment: it cannot be repeated")
		}
		return secret(values)(sc, c)
	}
}

// withSecret rebuilds the URL with these values in place of the secret.
func (sc *scenario) withSecret(values []string) (string, error) {
	if sc.secret == "" {
		return "", notApplicable("no URL secret is declared: name it with --url-secret")
	}
	u := *sc.url
	kind, name, _ := strings.Cut(sc.opts.URLSecret, ":")
	if kind == "query" {
		var kept []string
		for part := range strings.SplitSeq(u.RawQuery, "&") {
			key, _, _ := strings.Cut(part, "=")
			if k, err := url.QueryUnescape(key); err != nil || k != name {
				kept = append(kept, part)
			}
		}
		for _, v := range values {
			kept = append(kept, url.QueryEscape(name)+"="+url.QueryEscape(v))
		}
		u.RawQuery = strings.Join(kept, "&")
		return u.String(), nil
	}
	segments := strings.Split(u.EscapedPath(), "/")
	i, err := strconv.Atoi(name)
	if err != nil {
		return "", harness("path segment: %w", err)
	}
	i++ // the path begins with a slash
	if len(values) == 0 {
		segments = slices.Delete(segments, i, i+1)
	} else {
		segments[i] = url.PathEscape(values[0])
	}
	u.RawPath = strings.Join(segments, "/")
	u.Path, _ = url.PathUnescape(u.RawPath)
	return u.String(), nil
}

// twice makes two calls on one connection. A first reply that announces the
// close excuses the endpoint from the second call.
func twice(sc *scenario, c request) error {
	conn, err := sc.client.Open(sc.ctx)
	if err != nil {
		return inconclusive("", "no connection could be opened: %s", sc.redactor.String(err.Error()))
	}
	defer conn.Close()
	c.conn = conn
	first, err := sc.send(c)
	if err != nil {
		return err
	}
	if first.CloseAnnounced {
		sc.Note("the endpoint announces that it closes the connection after each call")
		return nil
	}
	_, err = sc.send(c)
	return err
}

// after sends a disturbed call, then the good one.
func after(disturb func(*request)) way {
	return func(sc *scenario, c request) error {
		bad := c
		bad.fresh = true
		disturb(&bad)
		if _, err := sc.session.send(sc.ctx, sc.Check().ID, bad); err != nil {
			return err
		}
		return sc.with(c, nil)
	}
}

// afterOnConnection sends a bad call and then, on the same connection while it
// lasts, the good one: a refusal that leaves its body unread shows there.
func afterOnConnection(bad func(good request) request) way {
	return steadily(func(sc *scenario, c request) error {
		conn, err := sc.client.Open(sc.ctx)
		if err != nil {
			return inconclusive("", "no connection could be opened: %s", sc.redactor.String(err.Error()))
		}
		defer conn.Close()
		first := bad(c)
		first.conn = conn
		got, err := sc.session.send(sc.ctx, sc.Check().ID, first)
		if err != nil {
			return err
		}
		if got.OK() && !got.CloseAnnounced && !got.ConnClosed {
			c.conn = conn
		}
		return sc.with(c, nil)
	})
}

// steadily goes a way again, from its first call, where a disturbance kept a call from its
// answer: what is bound to a connection cannot be made again by itself.
func steadily(w way) way {
	return func(sc *scenario, c request) error {
		before := len(sc.replies)
		if err := w(sc, c); err != nil {
			return err
		}
		first := slices.Clone(sc.replies[before:])
		at := slices.IndexFunc(first, isDisturbance)
		if at < 0 {
			return nil
		}
		for n := range mostRepeats {
			if err := elapse(sc.ctx, pauseAfter(first[at], n)); err != nil {
				return err
			}
			sc.replies = sc.replies[:before]
			if err := w(sc, c); err != nil {
				return err
			}
			if !slices.ContainsFunc(sc.replies[before:], isDisturbance) {
				sc.disturbed.add(first[at])
				return nil
			}
		}
		sc.replies = append(sc.replies[:before], first...)
		return nil
	}
}
