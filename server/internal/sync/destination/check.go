package destination

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/internal/connector"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/rawjson"
	"github.com/destkit/destkit/server/api"
)

const (
	credentialsField = "service_connection.credentials"
	// maxText bounds one credential in bytes.
	maxText = 16 << 10
)

// check is one look at the credentials of a connection.
type check struct {
	gate     *Gate
	kind     *kind
	given    Credentials
	previous Credentials // nil at creation
	merged   Credentials
	problems []api.Problem
}

// CheckConnection checks credentials against the rules of a type and merges
// them with the previous ones of an update (nil at creation): fields that an
// update leaves out stay. All problems are reported together, each with its
// place, such as service_connection.credentials.webhook_url; no message holds a
// value. merged counts only without problems.
func (g *Gate) CheckConnection(typ string, credentials, previous Credentials) (merged Credentials, problems []api.Problem) {
	k, err := g.kindOf(typ)
	if err != nil {
		return nil, []api.Problem{{Field: "service_connection.type", Message: err.Error()}}
	}
	if k.emulated != nil && g.options.Emulate == nil {
		return nil, []api.Problem{{
			Field:   "service_connection.type",
			Message: fmt.Sprintf("%s is emulated, and this service has no simulator for it; use custom_api or local_files", typ),
		}}
	}
	c := &check{gate: g, kind: k, given: credentials, previous: previous, merged: maps.Clone(previous)}
	if c.merged == nil {
		c.merged = Credentials{}
	}
	c.unknown()
	if k.emulated != nil {
		var twice []api.Problem
		c.given, twice = k.emulated.Canonical(credentials)
		for _, p := range twice {
			c.bad(p.Field, "%s", p.Message)
		}
	}
	for i := range k.connector.ConfigurationFields.Fields {
		c.field(&k.connector.ConfigurationFields.Fields[i])
	}
	if k.rules != nil {
		k.rules(c)
	}
	return c.merged, c.problems
}

// Coerce reads credentials as the fields of a type mean them, for a lenient
// caller; those of an unknown type stay as they are.
func (g *Gate) Coerce(typ string, credentials Credentials) Credentials {
	k := g.kind(typ)
	if k == nil {
		return credentials
	}
	read := connector.Coerce(k.connector.ConfigurationFields.Fields, credentials)
	if typ == api.TypeCustomAPI {
		coerceHeaders(read)
	}
	return read
}

// Unknown lists the credentials that a type does not know, sorted, so that a
// lenient caller can drop them before CheckConnection, which refuses them.
func (g *Gate) Unknown(typ string, credentials Credentials) []string {
	k := g.kind(typ)
	if k == nil {
		return nil
	}
	var names []string
	for name := range credentials {
		if !slices.Contains(k.names(), name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// names lists the credentials of a type in the order in which clients see them.
func (k *kind) names() []string {
	names := []string{}
	for _, f := range k.connector.ConfigurationFields.Fields {
		names = append(names, f.ID)
	}
	return names
}

// bad notes a problem of one credential. Callers never put a value into the
// message: problems go into replies and logs.
func (c *check) bad(name, format string, args ...any) {
	field := credentialsField
	if name != "" {
		field += "." + name
	}
	c.problems = append(c.problems, api.Problem{Field: field, Message: fmt.Sprintf(format, args...)})
}

// failed reports whether a credential already has a problem.
func (c *check) failed(name string) bool {
	return slices.ContainsFunc(c.problems, func(p api.Problem) bool { return p.Field == credentialsField+"."+name })
}

// unknown refuses what the type does not know: a misspelt auth_token would
// otherwise be an open endpoint.
func (c *check) unknown() {
	for _, name := range c.gate.Unknown(c.kind.connector.ServiceName, c.given) {
		c.bad(foreign.Clip(name, 64), "unknown credential; %s takes %s", c.kind.connector.ServiceName, strings.Join(c.kind.names(), ", "))
	}
}

// field checks one declared credential and merges it. In an update null takes
// an optional one away.
func (c *check) field(f *api.ConfigField) {
	raw, given := c.given[f.ID]
	switch {
	case given && !rawjson.IsNull(raw):
		if problem := checkValue(f, raw); problem != "" {
			c.bad(f.ID, "%s", problem)
			return
		}
		c.merged[f.ID] = compact(raw)
	case given:
		delete(c.merged, f.ID)
	}
	if _, has := c.merged[f.ID]; !has && slices.Contains(f.Rules.Words, "required") {
		c.bad(f.ID, "is required")
	}
}

// checkValue gives "" or what is wrong with a value that is not null.
func checkValue(f *api.ConfigField, raw json.RawMessage) string {
	raw = bytes.TrimSpace(raw)
	switch f.Type {
	case "integer":
		if _, err := strconv.ParseInt(string(raw), 10, 64); err != nil {
			return "must be an integer"
		}
		return oneOf(f, string(raw))
	case "boolean":
		if s := string(raw); s != "true" && s != "false" {
			return "must be true or false"
		}
		return ""
	case "object":
		if raw[0] != '{' {
			return "must be an object"
		}
		return ""
	}
	s, ok := text(raw)
	switch {
	case !ok:
		return "must be a string"
	case len(s) > maxText:
		return fmt.Sprintf("is longer than %d bytes", maxText)
	case s == "" && slices.Contains(f.Rules.Words, "required"):
		return "must not be empty"
	case f.InputType != "textarea" && strings.ContainsFunc(s, isControl):
		return "must not hold control characters"
	case f.Matches != "" && s != "":
		if ok, err := regexp.MatchString(f.Matches, s); err != nil || !ok {
			return "must match " + f.Matches
		}
	}
	return oneOf(f, s)
}

// oneOf gives "" or lists the values that a field takes.
func oneOf(f *api.ConfigField, value string) string {
	if len(f.PossibleValues) > 0 && !slices.Contains(f.PossibleValues, value) {
		return "must be " + strings.Join(f.PossibleValues, " or ")
	}
	return ""
}

// isControl reports characters that would break a header or a line of a log.
func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// compact gives a copy of a JSON value without white space.
func compact(raw json.RawMessage) json.RawMessage {
	var buf bytes.Buffer
	if json.Compact(&buf, raw) != nil {
		return bytes.Clone(raw)
	}
	return buf.Bytes()
}
