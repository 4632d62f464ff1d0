package rest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/organizations"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/sources"
	"github.com/destkit/destkit/server/internal/store"
)

// sourceBody is the body of POST and PATCH /sources, with the keys
// that it holds: for some, null means something else than leaving out.
type sourceBody struct {
	api.SourceConnection
	keys map[string]json.RawMessage
}

// connectionIn is what the body holds.
func connectionIn(c *call.Call) (sourceBody, error) {
	var body struct {
		Connection *api.SourceConnection `json:"connection"`
	}
	var keys struct {
		Connection map[string]json.RawMessage `json:"connection"`
	}
	if err := c.Decode(&body); err != nil {
		return sourceBody{}, err
	}
	if body.Connection == nil {
		return sourceBody{}, problem.InvalidField("connection", "is required")
	}
	err := c.Decode(&keys)
	return sourceBody{*body.Connection, keys.Connection}, err
}

// warnTest gives a client the reason of a failed test: a source has no list of
// steps to show it in, as a destination has.
func warnTest(c *call.Call, why string) {
	if why != "" {
		c.Warnings = append(c.Warnings, "the connection test failed at "+strings.Join(strings.Fields(why), " "))
	}
}

// applySource sets what the body holds, for a new source and for a stored one,
// and names all that is wrong with it.
func (h *Handlers) applySource(c *call.Call, b sourceBody, src *store.Source, a *sources.Access) error {
	// Each part adds its problems, so that a client sees all of them at once;
	// parts that depend on the type are checked only where the type is known.
	problems := applyName(b, src)
	described, more := h.applyType(c, b, src)
	problems = append(problems, more...)
	if described.ServiceName != "" {
		problems = append(problems, h.applyEngine(c, b, src, described)...)
		a.Type = src.Type
		sent, twice := h.readCredentials(c, src.Type, b.Credentials)
		a.Credentials = mergeCredentials(a.Credentials, sent)
		// The merged ones: an update has to leave something complete behind.
		for _, p := range append(twice, a.Types.CheckCredentials(src.Type, a.Credentials)...) {
			p.Field = "connection." + p.Field
			problems = append(problems, p)
		}
		problems = append(problems, applyRetention(b, src, described)...)
	}
	if len(problems) > 0 {
		return problem.Invalid(problems)
	}
	src.Details = a.Types.Details(src.Type, a.Credentials)
	return nil
}

// applyName takes the name, or its deprecated form, the label.
func applyName(b sourceBody, src *store.Source) []api.Problem {
	field, name := "connection.name", b.Name
	if name == nil && b.Label != nil {
		field, name = "connection.label", b.Label
	}
	if name != nil {
		src.Name = strings.TrimSpace(*name)
	}
	if name == nil && src.Name == "" {
		return []api.Problem{{Field: field, Message: "is required"}}
	}
	return organizations.CheckName(field, src.Name)
}

// applyType takes the type of a new source; a stored one keeps its own.
func (h *Handlers) applyType(c *call.Call, b sourceBody, src *store.Source) (source.Description, []api.Problem) {
	bad := func(format string, args ...any) (source.Description, []api.Problem) {
		return source.Description{}, []api.Problem{{Field: "connection.type", Message: fmt.Sprintf(format, args...)}}
	}
	known := strings.Join(h.Sources.TypeNames(), ", ")
	switch {
	case src.Type != "" && b.Type != nil && h.Sources.TypeName(*b.Type) != h.Sources.TypeName(src.Type):
		return bad("cannot be changed from %s; create another source", src.Type)
	case src.Type == "" && b.Type == nil:
		return bad("is required: one of %s", known)
	case b.Type != nil:
		src.Type = h.Sources.TypeName(*b.Type)
	}
	described, ok := h.Sources.Types().Type(src.Type)
	if !ok {
		return bad("unknown type %q: must be one of %s", foreign.Clip(src.Type, 64), known)
	}
	return described, nil
}

// readCredentials returns the sent values in stored form. The live dialect reads
// each value as its field means it, and leaves out unknown fields, with a
// warning.
func (h *Handlers) readCredentials(c *call.Call, typ string, sent map[string]json.RawMessage) (map[string]json.RawMessage, []api.Problem) {
	types := h.Sources.Types()
	if h.Shared.Dialect.UnknownFields {
		sent = maps.Clone(sent)
		for _, name := range types.Unknown(typ, sent) {
			delete(sent, name)
			c.Warnings = append(c.Warnings, "unknown field connection.credentials."+foreign.Clip(name, 200)+" was ignored")
		}
	}
	return types.Read(typ, sent, h.Shared.Dialect.CredentialsCoerced)
}

// applyEngine takes the sync engine, which is chosen at creation. A
// client that sends advanced for every type gets it back in the live
// dialect, and a warning where the type has no such engine.
func (h *Handlers) applyEngine(c *call.Call, b sourceBody, src *store.Source, described source.Description) []api.Problem {
	bad := func(format string, args ...any) []api.Problem {
		return []api.Problem{{Field: "connection.sync_engine", Message: fmt.Sprintf(format, args...)}}
	}
	switch {
	case b.SyncEngine == nil:
		if src.Engine == "" {
			src.Engine = described.SupportedSyncEngines[0]
		}
	case src.Engine != "" && *b.SyncEngine != src.Engine:
		return bad("cannot be changed from %s; create another source", src.Engine)
	case !slices.Contains(described.SupportedSyncEngines, *b.SyncEngine):
		if h.Shared.Dialect.EngineOfAnyType {
			src.Engine = *b.SyncEngine
			c.Warnings = append(c.Warnings, fmt.Sprintf("connection.sync_engine: %s sources have no %s engine; the service keeps the state of its syncs", described.ServiceName, src.Engine))
			return nil
		}
		return bad("%s sources support %s, not %q", described.ServiceName, strings.Join(described.SupportedSyncEngines, " and "), foreign.Clip(*b.SyncEngine, 64))
	default:
		src.Engine = *b.SyncEngine
	}
	return nil
}

// maxRetention bounds the days that logs of syncs are kept.
const maxRetention = 3650

// applyRetention takes the days that logs of syncs are kept in the warehouse, null for
// none. It is stored and shown; this service writes no logs there.
func applyRetention(b sourceBody, src *store.Source, described source.Description) []api.Problem {
	const key = "warehouse_writeback_retention_in_days"
	if _, sent := b.keys[key]; !sent {
		return nil
	}
	bad := func(message string) []api.Problem {
		return []api.Problem{{Field: "connection." + key, Message: message}}
	}
	switch days := b.WritebackRetention; {
	case days == nil:
	case !described.SupportsWarehouseWriteback:
		return bad(described.ServiceName + " sources do not support writeback; leave it out")
	case src.Engine != api.EngineAdvanced:
		return bad("needs the sync_engine advanced; leave it out, or create the source with that engine")
	case *days < 1 || *days > maxRetention:
		return bad(fmt.Sprintf("must be from 1 to %d days, or null for no log", maxRetention))
	}
	src.WritebackRetention = b.WritebackRetention
	return nil
}

// mergeCredentials keeps stored values that an update leaves out; null takes a
// value away.
func mergeCredentials(stored, sent map[string]json.RawMessage) map[string]json.RawMessage {
	// A copy: stored describes the source until the update is through.
	merged := maps.Clone(stored)
	if merged == nil {
		merged = map[string]json.RawMessage{}
	}
	for key, value := range sent {
		if string(value) == "null" {
			delete(merged, key)
			continue
		}
		merged[key] = value
	}
	return merged
}
