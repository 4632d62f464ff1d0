package destination

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/reach"
	"github.com/destkit/destkit/server/api"
)

// customKind is the custom destination: an endpoint of the user's own that
// speaks JSON-RPC (spec 4.2).
func customKind(g *Gate) *kind {
	return &kind{
		connector: api.Connector{
			DocumentationSlug: "custom-api", Label: "Custom API", ServiceName: api.TypeCustomAPI,
			AuthenticationKind: "credentials", CreatableViaAPI: true,
			ConfigurationFields: api.ConfigFields{Fields: customFields()},
		},
		rules:   customRules,
		details: customDetails,
		secrets: customSecrets,
		safe:    func(credentials Credentials) string { return safeURL(customURL(credentials)) },
		open:    g.openCustom,
	}
}

// openCustom never fails for a URL: the options may have become stricter since
// it was stored, and the connection test is the place to say so.
func (g *Gate) openCustom(id int64, credentials Credentials) (Connection, error) {
	address := customURL(credentials)
	u, problem := checkURL(address, g.options.AllowPlainHTTP)
	if problem != "" { // it was admitted under other options; calls fail and the test gives the reason
		u, problem = &url.URL{}, "the URL "+problem
	}
	token, _ := text(credentials["auth_token"])
	header := http.Header{"User-Agent": {g.options.UserAgent}}
	for name, h := range storedHeaders(credentials) {
		if h.Value == nil {
			return nil, errors.New("custom header " + name + " has no value; set it again")
		}
		header.Set(name, *h.Value)
	}
	header.Set(reach.Outbound, outbound) // after the custom ones: none takes its place
	p, shared := g.pool(id)
	c := &customConnection{url: u, token: token != ""}
	if !shared {
		c.own = p
	}
	var network http.RoundTripper = p
	if g.options.Carry != nil {
		network = g.options.Carry(network)
	}
	c.caller = &caller{
		gate: g, limiter: g.Limiter(id), id: id, typ: api.TypeCustomAPI, endpoint: safeURL(address), host: u.Host, problem: problem,
		clean: newRedactor(g.Secrets(api.TypeCustomAPI, credentials)),
		client: rpc.Client{
			Large: enter,
			URL:   address, Token: token, Header: header, MaxReply: g.options.MaxReply,
			HTTP: &http.Client{Transport: observer{network}, CheckRedirect: noRedirect},
		},
	}
	return c, nil
}

// outbound is the value of reach.Outbound in the calls of the service.
const outbound = "service"

// noRedirect hands a redirect to the caller: following it would give the token
// to another address.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// customConnection is a custom destination that is open.
type customConnection struct {
	*caller
	url   *url.URL
	token bool
	own   *http.Transport // of a connection without an id
}

// Close leaves shared network connections to the next call of the destination.
func (c *customConnection) Close() error {
	if c.own != nil {
		c.own.CloseIdleConnections()
	}
	return nil
}

// customURL is the URL as it was given, "" when there is none.
func customURL(credentials Credentials) string {
	s, _ := text(credentials["webhook_url"])
	return s
}

// safeURL cuts a URL down to what a log may show: path and query may be secrets
// (spec 5.2.3).
func safeURL(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// customDetails are the published keys of connection_details, and the
// account (spec 2.2), which is the host: an endpoint has no other.
func customDetails(credentials Credentials) map[string]any {
	details := shown(credentials, "api_version", "webhook_url")
	host := ""
	if u, err := url.Parse(customURL(credentials)); err == nil {
		host = u.Host
	}
	inAccount(details, host, "Custom API")
	details["custom_headers"] = nil
	headers := storedHeaders(credentials)
	if len(headers) == 0 {
		return details
	}
	list := map[string]any{}
	for name, h := range headers {
		if h.IsSecret {
			h.Value = nil
		}
		list[name] = h
	}
	details["custom_headers"] = list
	return details
}

// leastPath is the length in bytes from which path and query are in no text by chance.
const leastPath = 8

// customSecrets are the token, the secret headers, and the URL with its parts
// (spec 5.2.3).
func customSecrets(credentials Credentials) []string {
	var list []string
	if token, ok := text(credentials["auth_token"]); ok {
		list = append(list, token)
	}
	for _, h := range storedHeaders(credentials) {
		if h.IsSecret && h.Value != nil {
			list = append(list, *h.Value)
		}
	}
	u, err := url.Parse(customURL(credentials))
	if err != nil {
		return list
	}
	if rest := u.RequestURI(); len(rest) >= leastPath {
		list = append(list, customURL(credentials), rest)
	}
	return append(list, foreign.URLSecrets(u)...)
}

// rawObject decodes an object member by member; ok is false for another value.
func rawObject(raw json.RawMessage) (members map[string]json.RawMessage, ok bool) {
	members = map[string]json.RawMessage{}
	err := eachMember(raw, func(name string, value json.RawMessage) error {
		if members[name] = bytes.Clone(value); len(members) > maxMembers {
			return errors.New("too many members")
		}
		return nil
	})
	return members, err == nil
}
