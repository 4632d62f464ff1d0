package destination

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/destkit/destkit/server/api"
)

// kind is one connection type: what a client is told about it, and what it does.
type kind struct {
	connector  api.Connector
	fileSystem bool
	emulated   *entry // of the catalogue; nil: the type is real

	// rules adds problems that the connector's fields cannot express.
	rules func(c *check)
	// details gives connection_details: nothing secret.
	details func(Credentials) map[string]any
	// secrets lists every text that must not appear anywhere.
	secrets func(Credentials) []string
	// safe gives scheme and host of the endpoint; "" where there is none.
	safe func(Credentials) string
	open func(id int64, credentials Credentials) (Connection, error)
}

// kinds lists the types in the order in which clients see them.
func kinds(g *Gate) (map[string]*kind, []string) {
	all := []*kind{customKind(g), filesKind(g)}
	for _, e := range catalogue() {
		all = append(all, emulatedKind(g, e))
	}
	byName, order := map[string]*kind{}, []string{}
	for _, k := range all {
		byName[k.connector.ServiceName] = k
		order = append(order, k.connector.ServiceName)
	}
	return byName, order
}

// Details gives connection_details of a destination (spec 2.2): what is not
// secret, secret custom headers as null. The webhook_url of a custom_api
// stands in it, as published (facts B6).
func (g *Gate) Details(typ string, credentials Credentials) map[string]any {
	if k := g.kinds[typ]; k != nil {
		return k.details(credentials)
	}
	return map[string]any{}
}

// Secrets lists the texts of the credentials that must appear in no log, no
// journal and no message: tokens, secret headers, passwords, and for a
// custom_api the URL with its path segments and query values (spec 5.2.3).
func (g *Gate) Secrets(typ string, credentials Credentials) []string {
	k := g.kinds[typ]
	if k == nil {
		return nil
	}
	list := slices.DeleteFunc(k.secrets(credentials), func(s string) bool { return s == "" })
	slices.Sort(list)
	return slices.Compact(list)
}

// SafeURL is what a log may show of the endpoint: scheme and host, "" for a
// type without an endpoint.
func (g *Gate) SafeURL(typ string, credentials Credentials) string {
	if k := g.kinds[typ]; k != nil && k.safe != nil {
		return k.safe(credentials)
	}
	return ""
}

// shown gives the credentials of the named fields as they are, for details.
func shown(credentials Credentials, names ...string) map[string]any {
	details := map[string]any{}
	for _, name := range names {
		if raw, ok := credentials[name]; ok && !isNull(raw) {
			details[name] = raw
		}
	}
	return details
}

// text decodes a JSON string; ok is false for anything else.
func text(raw json.RawMessage) (s string, ok bool) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		return "", false
	}
	return s, true
}

// isNull tells null and an absent value, which mean the same in credentials.
func isNull(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) == 0 || string(raw) == "null"
}

// clip shortens foreign text for a message.
func clip(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
