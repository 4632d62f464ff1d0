package write

import (
	"cmp"
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/lists"
)

// way sends one call in an unusual way.
type way func(sc *Scenario, c line.Request) error

// Ways are the ways that feature files name.
var Ways = map[string]way{
	"as configured":                 changed(func(*line.Request) {}),
	"GET with the call in the body": verb(http.MethodGet),
	"PUT":                           verb(http.MethodPut),
	"DELETE":                        verb(http.MethodDelete),
	"GET with the call in the query": func(sc *Scenario, c line.Request) error {
		u := *sc.URL
		q := url.Values{"jsonrpc": {rpc.Version}, "method": {c.Method}, "params": {"{}"}, "id": {sc.NewID()}}
		u.RawQuery = strings.TrimPrefix(u.RawQuery+"&"+q.Encode(), "&")
		c.HTTPMethod, c.URL, c.Body, c.Header = http.MethodGet, u.String(), []byte{}, http.Header{"Content-Type": nil}
		_, err := sc.Send(c)
		return err
	},
	"accepting gzip and deflate": header("Accept-Encoding", "gzip, deflate"),
	"accepting identity only":    header("Accept-Encoding", "identity"),
	"with charset=utf-8":         header("Content-Type", "application/json; charset=utf-8"),
	"with a chunked body":        changed(func(c *line.Request) { c.Chunked = true }),
	"with Expect: 100-continue":  changed(func(c *line.Request) { c.Expect = true }),
	"twice on one connection":    onConnection(twice),
	"on a fresh connection":      changed(func(c *line.Request) { c.Fresh = true }),
	"after a body that is no JSON, on the same connection": afterOnConnection(func(line.Request) line.Request {
		return line.Request{Method: "garbage", Body: []byte("this is no JSON"), Odd: true}
	}),
	"after a call without credentials, on the same connection": afterOnConnection(func(c line.Request) line.Request {
		c.Header = http.Header{"Authorization": nil}
		return c
	}),
	"after a PUT, on the same connection": afterOnConnection(func(c line.Request) line.Request {
		c.HTTPMethod = http.MethodPut
		return c
	}),
	"after a call that was cut in its body":      after(func(c *line.Request) { c.CutRequest = 20 }),
	"after a call that was cut before its reply": after(func(c *line.Request) { c.CutAtOnce = true }),
	"over plain http on the probe port":          changed(func(c *line.Request) { c.Plain = true }),

	"without credentials":          changed(func(c *line.Request) { c.Header = http.Header{"Authorization": nil} }),
	"with a wrong token":           token(func(string) string { return "zz-wrong-token" }),
	"with a truncated token":       token(func(t string) string { return t[:len(t)-1] }),
	"with an extended token":       token(func(t string) string { return t + "x" }),
	"with a token in changed case": token(SwapCase),
	"with an empty token":          token(func(string) string { return "" }),
	"with the token before the rotation": func(sc *Scenario, c line.Request) error {
		return header("Authorization", "Bearer "+sc.Target.Token)(sc, c)
	},
	"with the token by Basic scheme": func(sc *Scenario, c line.Request) error {
		pair := base64.StdEncoding.EncodeToString([]byte("bearer:" + sc.Token.Get()))
		return header("Authorization", "Basic "+pair)(sc, c)
	},

	"with an extended token, if there is one":      ifConfigured(token(func(t string) string { return t + "x" })),
	"with a wrong URL secret, if there is one":     ifConfigured(secret(WrongSecret)),
	"with a wrong URL secret":                      secret(WrongSecret),
	"without the URL secret":                       secret(),
	"with a wrong URL secret before the right one": secret(WrongSecret, rightSecret),
	"with a wrong URL secret after the right one":  secret(rightSecret, WrongSecret),
}

// WrongSecret is no endpoint's; rightSecret means the one that is configured.
const WrongSecret, rightSecret = "zz-wrong-secret", ""

// changed sends the call after a change.
func changed(change func(*line.Request)) way {
	return func(sc *Scenario, c line.Request) error {
		change(&c)
		_, err := sc.Send(c)
		return err
	}
}

func verb(method string) way { return changed(func(c *line.Request) { c.HTTPMethod = method }) }

func header(name, value string) way {
	return changed(func(c *line.Request) { c.Header = http.Header{name: {value}} })
}

// token sends another token than the configured one (spec 5.2.2).
func token(change func(string) string) way {
	return func(sc *Scenario, c line.Request) error {
		t := sc.Token.Get()
		if t == "" {
			return line.NotApplicable("no Auth Token is configured: name its variable with --token-env")
		}
		changed := change(t)
		if changed == t {
			return nil // a token without letters has no other case
		}
		return header("Authorization", strings.TrimRight("Bearer "+changed, " "))(sc, c)
	}
}

// SwapCase turns the case of ASCII letters round.
func SwapCase(s string) string {
	return strings.Map(func(r rune) rune {
		if r <= unicode.MaxASCII && unicode.IsLetter(r) {
			return r ^ ('a' - 'A')
		}
		return r
	}, s)
}

// secret calls the URL with other values of the secret segment (spec 5.2.3).
func secret(values ...string) way {
	return func(sc *Scenario, c line.Request) (err error) {
		if len(values) > 1 && strings.HasPrefix(sc.Opts.URLSecret, "path:") {
			return line.NotApplicable("the URL secret is a path segment: it cannot be repeated")
		}
		if c.URL, err = sc.WithSecret(lists.Of(values, func(v string) string { return cmp.Or(v, sc.Secret) })); err == nil {
			_, err = sc.Send(c)
		}
		return err
	}
}

// ifConfigured leaves a way out where the credential that it changes is not configured.
func ifConfigured(change way) way {
	return func(sc *Scenario, c line.Request) error {
		err := change(sc, c)
		if status, _, _ := engine.Decided(err); status == conformance.NotApplicable {
			return nil
		}
		return err
	}
}

// WithSecret rebuilds the URL with these values in place of the secret.
func (sc *Scenario) WithSecret(values []string) (string, error) {
	if sc.Secret == "" {
		return "", line.NotApplicable("no URL secret is declared: name it with --url-secret")
	}
	u := *sc.URL
	kind, name, _ := strings.Cut(sc.Opts.URLSecret, ":")
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
		return "", line.Harness("path segment: %w", err)
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

// onConnection opens a connection for calls that are bound to one.
func onConnection(do func(sc *Scenario, c line.Request, conn *wire.Conn) error) way {
	return steadily(func(sc *Scenario, c line.Request) error {
		conn, err := sc.Client.Open(sc.Ctx)
		if err != nil {
			return engine.Inconclusive("", "no connection could be opened: %s", sc.Redactor.String(err.Error()))
		}
		defer conn.Close()
		return do(sc, c, conn)
	})
}

// twice makes two calls on one connection, unless the first reply announces its end.
func twice(sc *Scenario, c line.Request, conn *wire.Conn) error {
	c.Conn = conn
	first, err := sc.Send(c)
	if err != nil {
		return err
	}
	if first.CloseAnnounced {
		sc.Note("the endpoint announces that it closes the connection after each call")
		return nil
	}
	_, err = sc.Send(c)
	return err
}

// after sends a disturbed call, then the good one.
func after(disturb func(*line.Request)) way {
	return func(sc *Scenario, c line.Request) error {
		bad := c
		bad.Fresh = true
		disturb(&bad)
		_, err := sc.Session.Send(sc.Ctx, sc.Check().ID, bad)
		if err == nil {
			_, err = sc.Send(c)
		}
		return err
	}
}

// afterOnConnection sends a bad call before the good one: a refusal that leaves its body unread shows there.
func afterOnConnection(bad func(good line.Request) line.Request) way {
	return onConnection(func(sc *Scenario, c line.Request, conn *wire.Conn) error {
		first := bad(c)
		first.Conn = conn
		got, err := sc.Session.Send(sc.Ctx, sc.Check().ID, first)
		if err != nil {
			return err
		}
		if got.OK() && !got.CloseAnnounced && !got.ConnClosed {
			c.Conn = conn
		}
		_, err = sc.Send(c)
		return err
	})
}

// steadily goes a way again where a disturbance kept a call on its connection from its answer.
func steadily(w way) way {
	return func(sc *Scenario, c line.Request) error {
		before := len(sc.Replies)
		if err := w(sc, c); err != nil {
			return err
		}
		first := slices.Clone(sc.Replies[before:])
		at := slices.IndexFunc(first, line.IsDisturbance)
		if at < 0 {
			return nil
		}
		for n := range line.MostRepeats {
			if err := line.Elapse(sc.Ctx, line.PauseAfter(first[at], n)); err != nil {
				return err
			}
			sc.Replies = sc.Replies[:before]
			if err := w(sc, c); err != nil {
				return err
			}
			if !slices.ContainsFunc(sc.Replies[before:], line.IsDisturbance) {
				sc.Disturbed.Add(first[at])
				return nil
			}
		}
		sc.Replies = append(sc.Replies[:before], first...)
		return nil
	}
}
