package destination

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/destkit/destkit/server/api"
)

const maxURL = 4096

// customFields describe the credentials of a custom destination.
func customFields() []api.ConfigField {
	return []api.ConfigField{
		{
			ID: "api_version", Label: "API version", Type: "integer", PossibleValues: []string{"1"}, InputType: "dropdown",
			Hint: "The version of the custom destination protocol; 1 when left out.",
		},
		{
			ID: "webhook_url", Rules: api.Rules{Words: []string{"required"}}, Label: "URL", Type: "string", InputType: "text",
			Placeholder: "https://destination.example/rpc", Matches: "^https?://",
			Hint: "Every call is a POST to this URL. Path and query may hold secrets and are treated as such.",
		},
		{
			ID: "auth_token", Label: "Auth Token", Type: "string", InputType: "password", IsPasswordTypeField: true,
			Hint: "Sent as Authorization: Bearer with every call. It can be changed later, and not removed.",
		},
		{
			ID: "custom_headers", Label: "Custom headers", Type: "object", InputType: "key_value",
			Hint: `Sent with every call, as {"Name": {"value": "…", "is_secret": true}}.`,
		},
	}
}

// customRules are the rules of a custom destination beyond its fields.
func customRules(c *check) {
	if _, has := c.merged["api_version"]; !has && !c.failed("api_version") { // spec 9: v1 is current
		c.merged["api_version"] = []byte("1")
	}
	if raw, has := c.merged["webhook_url"]; has && !c.failed("webhook_url") {
		s, _ := text(raw)
		u, problem := checkURL(s, c.gate.options.AllowPlainHTTP)
		if problem == "" {
			problem = c.gate.unreachable(u)
		}
		if problem != "" {
			c.bad("webhook_url", "%s", problem)
		}
	}
	c.token()
	c.headers()
}

// token holds the rule that a token, once set, stays (spec 5.2.2).
func (c *check) token() {
	const name = "auth_token"
	raw, given := c.given[name]
	if !given || c.failed(name) {
		return
	}
	s, _ := text(raw)
	_, had := c.previous[name]
	switch {
	case s == "" && had:
		c.bad(name, "can be changed, not removed; leave it out to keep it")
	case s == "":
		delete(c.merged, name)
	case strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }):
		c.bad(name, "must be visible ASCII characters without spaces")
	}
}

// checkURL parses the URL of a custom destination (spec 5.2.1, 5.2.3) or
// returns what is wrong with it, without a word of it: it may hold secrets.
func checkURL(s string, allowPlain bool) (u *url.URL, problem string) {
	if len(s) > maxURL {
		return nil, "is longer than " + strconv.Itoa(maxURL) + " bytes"
	}
	if strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return nil, "must not hold spaces or control characters; write them percent-encoded"
	}
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return nil, "is not a URL; write https://host/path"
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, "must be an absolute URL that starts with https://"
	case u.Host == "" || u.Hostname() == "" || u.Opaque != "":
		return nil, "names no host; write https://host/path"
	case u.User != nil:
		return nil, "must not hold a user or password; use auth_token or a custom header"
	case strings.Contains(s, "#"):
		return nil, "must not hold a fragment"
	case !validHost(u.Hostname()):
		return nil, "names no valid host; write a name in ASCII letters, digits, dots and hyphens, or an address"
	case u.Port() == "" && strings.HasSuffix(u.Host, ":"):
		return nil, "has a colon without a port"
	}
	if p := u.Port(); p != "" {
		if n, err := strconv.Atoi(p); err != nil || n < 1 || n > 65535 {
			return nil, "has a port outside 1 to 65535"
		}
	}
	if u.Scheme == "http" && !allowPlain && !isLoopback(u.Hostname()) {
		return nil, "must start with https://; plain http is for loopback addresses, unless the service allows it"
	}
	return u, ""
}

// validHost admits addresses without zone and names of at most 253 bytes.
func validHost(host string) bool {
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.Zone() == ""
	}
	if len(host) > 253 {
		return false
	}
	for label := range strings.SplitSeq(strings.TrimSuffix(host, "."), ".") {
		if label == "" || len(label) > 63 {
			return false
		}
		for _, b := range []byte(label) {
			if b != '-' && b != '_' && (b < '0' || b > '9') && (b < 'a' || b > 'z') && (b < 'A' || b > 'Z') {
				return false
			}
		}
	}
	return true
}

// isLoopback reports whether a host is this machine, without asking anybody.
func isLoopback(host string) bool {
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.Unmap().IsLoopback()
	}
	return isLocalName(host)
}

// isLocalName reports names that always mean this machine (RFC 6761 section 6.3).
func isLocalName(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}
