package destination

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/destkit/destkit/internal/connector"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/rawjson"
	"github.com/destkit/destkit/internal/reach"
	"github.com/destkit/destkit/server/api"
)

const maxHeaders = 100

// protectedHeaders belong to the protocol or to the connection itself.
var protectedHeaders = []string{
	"Host", "Content-Length", "Content-Type", "Content-Encoding", "Transfer-Encoding", "Accept-Encoding",
	reach.Outbound, "Connection", "Keep-Alive", "Proxy-Connection", "Upgrade", "Te", "Trailer", "Expect",
}

// headerMembers are the fields of one custom header. A value may be empty.
var headerMembers = []api.ConfigField{
	{ID: "value", Type: connector.String, Rules: api.Rules{Words: []string{connector.Required}}},
	{ID: "is_secret", Type: connector.Boolean},
}

// coerceHeaders reads the members of each custom header as they are meant; others
// stay for the check to refuse.
func coerceHeaders(credentials Credentials) {
	const name = "custom_headers"
	var entries map[string]json.RawMessage
	if json.Unmarshal(credentials[name], &entries) != nil || entries == nil {
		return
	}
	for header, raw := range entries {
		var members map[string]json.RawMessage
		if json.Unmarshal(raw, &members) == nil && members != nil {
			entries[header] = api.Raw(connector.Coerce(headerMembers, members))
		}
	}
	credentials[name] = api.Raw(entries)
}

// headers checks custom_headers and replaces the stored ones as a whole. A
// secret header with the value null keeps the stored value.
func (c *check) headers() {
	const name = "custom_headers"
	raw, given := c.given[name]
	if given && !rawjson.IsNull(raw) && !c.failed(name) {
		var entries map[string]json.RawMessage
		if err := json.Unmarshal(raw, &entries); err != nil {
			c.bad(name, "must be an object")
			return
		}
		c.setHeaders(entries)
	}
	if _, token := c.merged["auth_token"]; !token {
		return
	}
	for header := range storedHeaders(c.merged) { // a stored header and a new token meet here
		if strings.EqualFold(header, "Authorization") {
			c.bad(headerPlace(header), "the token is sent in this header; leave out one of the two")
		}
	}
}

// setHeaders replaces the headers as a whole, so that one can be taken away by
// leaving it out.
func (c *check) setHeaders(entries map[string]json.RawMessage) {
	if len(entries) > maxHeaders {
		c.bad("custom_headers", "must hold at most %d headers", maxHeaders)
		return
	}
	old := storedHeaders(c.previous)
	result, seen := map[string]api.CustomHeader{}, map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		before := len(c.problems)
		c.headerName(name, seen)
		header := c.header(name, entries[name], old)
		if len(c.problems) == before {
			result[name] = header
		}
	}
	if len(result) == 0 {
		delete(c.merged, "custom_headers")
		return
	}
	c.merged["custom_headers"] = api.Raw(result)
}

// headerName refuses names that HTTP does not admit, that the service sets by
// itself, or that differ from another only in case.
func (c *check) headerName(name string, seen map[string]string) {
	canonical := http.CanonicalHeaderKey(name)
	switch {
	case !isToken(name) || len(name) > 256:
		c.bad(headerPlace(name), "is not a valid header name; use letters, digits and hyphens")
	case slices.Contains(protectedHeaders, canonical):
		c.bad(headerPlace(name), "is set by the service itself and cannot be a custom header")
	case seen[canonical] != "":
		c.bad(headerPlace(name), "is the header %s in other letters", seen[canonical])
	}
	seen[canonical] = name
}

// header reads one entry; is_secret left out is that of the stored header.
func (c *check) header(name string, raw json.RawMessage, old map[string]api.CustomHeader) api.CustomHeader {
	var members map[string]json.RawMessage
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || raw[0] != '{' || json.Unmarshal(raw, &members) != nil {
		c.bad(headerPlace(name), `must be an object such as {"value": "…", "is_secret": true}`)
		return api.CustomHeader{}
	}
	stored, had := findHeader(old, name)
	h := api.CustomHeader{IsSecret: had && stored.IsSecret}
	for _, key := range slices.Sorted(maps.Keys(members)) {
		if key != "value" && key != "is_secret" {
			c.bad(headerPlace(name)+"."+foreign.Clip(key, 64), "unknown member; a header has value and is_secret")
		}
	}
	if secret, given := members["is_secret"]; given && !rawjson.IsNull(secret) {
		if json.Unmarshal(secret, &h.IsSecret) != nil {
			c.bad(headerPlace(name)+".is_secret", "must be true or false")
		}
	}
	value, given := text(members["value"])
	switch {
	case given && !validHeaderValue(value):
		c.bad(headerPlace(name)+".value", "is not a valid header value; use visible characters, at most %d bytes", maxText)
	case given:
		h.Value = &value
	case !rawjson.IsNull(members["value"]):
		c.bad(headerPlace(name)+".value", "must be a string")
	case had && stored.IsSecret && h.IsSecret: // replies show null, so a client echoes null
		h.Value = stored.Value
	default:
		c.bad(headerPlace(name)+".value", "is required; null keeps the value of a stored secret header only")
	}
	return h
}

// headerPlace names a header in a problem; an invalid name is quoted.
func headerPlace(name string) string {
	if isToken(name) {
		return "custom_headers." + foreign.Clip(name, 64)
	}
	return fmt.Sprintf("custom_headers[%q]", foreign.Clip(name, 64))
}

// findHeader looks a header up in any case.
func findHeader(headers map[string]api.CustomHeader, name string) (api.CustomHeader, bool) {
	for stored, h := range headers {
		if strings.EqualFold(stored, name) {
			return h, true
		}
	}
	return api.CustomHeader{}, false
}

// storedHeaders decodes checked credentials.
func storedHeaders(credentials Credentials) map[string]api.CustomHeader {
	headers := map[string]api.CustomHeader{}
	if raw := credentials["custom_headers"]; raw != nil {
		_ = json.Unmarshal(raw, &headers) // problems were reported before it was stored
	}
	return headers
}

// isToken reports a valid header name (RFC 9110 section 5.6.2).
func isToken(name string) bool {
	for _, b := range []byte(name) {
		if b <= ' ' || b >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, b) >= 0 {
			return false
		}
	}
	return name != ""
}

// validHeaderValue admits printable text with inner spaces and tabs.
func validHeaderValue(value string) bool {
	return len(value) <= maxText && strings.TrimSpace(value) == value &&
		!strings.ContainsFunc(value, func(r rune) bool { return isControl(r) && r != '\t' })
}
