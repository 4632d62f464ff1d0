package destination

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/destkit/destkit/internal/rawjson"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sync/destination/catalogue"
)

// kind is one connection type: what a client sees of it, and what it does.
type kind struct {
	connector  api.Connector
	fileSystem bool
	emulated   *catalogue.Entry // of the catalogue; nil: the type is real

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

// kindSet are the types that a gate knows at a moment.
type kindSet struct {
	byName map[string]*kind
	order  []string // as Types lists them
}

// Declare makes the gate know its own types and these, whose entries have passed
// Check, in the order in which clients see them. Destinations that are open stay
// so.
func (g *Gate) Declare(declared []*catalogue.Entry) {
	all := []*kind{customKind(g), filesKind(g)}
	for _, e := range slices.Concat(catalogue.BuiltIn(), declared) {
		all = append(all, emulatedKind(g, e))
	}
	set := &kindSet{byName: map[string]*kind{}}
	for _, k := range all {
		set.byName[k.connector.ServiceName] = k
		set.order = append(set.order, k.connector.ServiceName)
	}
	g.kinds.Store(set)
}

// Known reports whether a name is one of the types of this package.
func Known(typ string) bool {
	return typ == api.TypeCustomAPI || typ == api.TypeLocalFiles ||
		slices.ContainsFunc(catalogue.BuiltIn(), func(e *catalogue.Entry) bool { return e.ServiceName == typ })
}

// kind is a type by its name; nil when there is none.
func (g *Gate) kind(typ string) *kind { return g.kinds.Load().byName[typ] }

// Details gives connection_details of a destination (spec 2.2): what is not
// secret, secret custom headers as null. It includes the webhook_url of a
// custom_api, as published.
func (g *Gate) Details(typ string, credentials Credentials) map[string]any {
	if k := g.kind(typ); k != nil {
		return k.details(credentials)
	}
	return map[string]any{}
}

// Secrets lists the texts of the credentials that must appear in no log, no
// journal and no message: tokens, secret headers, passwords, and for a
// custom_api the URL with its path segments and query values (spec 5.2.3).
func (g *Gate) Secrets(typ string, credentials Credentials) []string {
	k := g.kind(typ)
	if k == nil {
		return nil
	}
	list := slices.DeleteFunc(k.secrets(credentials), func(s string) bool { return s == "" })
	slices.Sort(list)
	return slices.Compact(list)
}

// Cleaner takes the secrets of a connection out of texts.
func (g *Gate) Cleaner(typ string, credentials Credentials) func(text string) string {
	return newRedactor(g.Secrets(typ, credentials)).String
}

// SafeURL is what a log may show of the endpoint: scheme and host, "" for a
// type without an endpoint.
func (g *Gate) SafeURL(typ string, credentials Credentials) string {
	if k := g.kind(typ); k != nil && k.safe != nil {
		return k.safe(credentials)
	}
	return ""
}

// shown gives the credentials of the named fields as they are, for details.
func shown(credentials Credentials, names ...string) map[string]any {
	details := map[string]any{}
	for _, name := range names {
		if raw, ok := credentials[name]; ok && !rawjson.IsNull(raw) {
			details[name] = raw
		}
	}
	return details
}

// inAccount adds account_id and account_name (spec 2.2): the id of its account, and
// the same after the name of its type.
func inAccount(details map[string]any, id, name string) {
	details["account_id"], details["account_name"] = id, strings.TrimSpace(name+" "+id)
}

// text decodes a JSON string; ok is false for anything else.
func text(raw json.RawMessage) (s string, ok bool) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		return "", false
	}
	return s, true
}
