package server

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/source"
	"github.com/destkit/destkit/server/store"
)

// sourceBody is the body of POST and PATCH /sources (facts B3), with the keys
// that it holds: for some, null means something else than leaving out.
type sourceBody struct {
	api.SourceConnection
	keys map[string]json.RawMessage
}

// connection is what the body holds.
func (c *call) connection() (sourceBody, error) {
	var body struct {
		Connection *api.SourceConnection `json:"connection"`
	}
	var keys struct {
		Connection map[string]json.RawMessage `json:"connection"`
	}
	if err := c.decode(&body); err != nil {
		return sourceBody{}, err
	}
	if body.Connection == nil {
		return sourceBody{}, invalidField("connection", "is required")
	}
	err := c.decode(&keys)
	return sourceBody{*body.Connection, keys.Connection}, err
}

// warnTest tells a client why the test failed: a source has no list of steps to
// show it in, as a destination has.
func (c *call) warnTest(why string) {
	if why != "" {
		c.warnings = append(c.warnings, "the connection test failed at "+strings.Join(strings.Fields(why), " "))
	}
}

// applySource sets what the body holds, for a new source and for a stored one,
// and names all that is wrong with it.
func (c *call) applySource(b sourceBody, src *store.Source, a *sourceAccess) error {
	// Each part adds its problems, so that a client sees all of them at once;
	// what depends on the type is looked at only where the type is known.
	problems := applyName(b, src)
	described, more := applyType(b, src)
	problems = append(problems, more...)
	if described.ServiceName != "" {
		if err := c.s.homeless(described.ServiceName); err != nil {
			problems = append(problems, api.Problem{Field: "connection.type", Message: err.Error()})
		}
		problems = append(problems, applyEngine(b, src, described)...)
		a.typ, a.engine = src.Type, src.Engine
		a.options.Advanced = a.keepsState()
		a.credentials = mergeCredentials(a.credentials, b.Credentials)
		// The merged ones: an update has to leave something complete behind.
		for _, p := range source.CheckCredentials(src.Type, a.credentials) {
			p.Field = "connection." + p.Field
			problems = append(problems, p)
		}
		problems = append(problems, applyRetention(b, src, described)...)
	}
	if len(problems) > 0 {
		return invalid(problems)
	}
	src.Details = source.Details(src.Type, a.credentials)
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
	return checkName(field, src.Name)
}

// applyType takes the type of a new source; a stored one keeps its own.
func applyType(b sourceBody, src *store.Source) (source.Description, []api.Problem) {
	bad := func(format string, args ...any) (source.Description, []api.Problem) {
		return source.Description{}, []api.Problem{{Field: "connection.type", Message: fmt.Sprintf(format, args...)}}
	}
	known := strings.Join(sourceTypeNames(), ", ")
	switch {
	case src.Type != "" && b.Type != nil && *b.Type != src.Type:
		return bad("cannot be changed from %s; create another source", src.Type)
	case src.Type == "" && b.Type == nil:
		return bad("is required: one of %s", known)
	case b.Type != nil:
		src.Type = *b.Type
	}
	described, ok := source.Type(src.Type)
	if !ok {
		return bad("unknown type %q: must be one of %s", clipped(src.Type), known)
	}
	return described, nil
}

// applyEngine takes the sync engine, which is chosen at creation (facts B3).
func applyEngine(b sourceBody, src *store.Source, described source.Description) []api.Problem {
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
		return bad("%s sources support %s, not %q", described.ServiceName, strings.Join(described.SupportedSyncEngines, " and "), clipped(*b.SyncEngine))
	default:
		src.Engine = *b.SyncEngine
	}
	return nil
}

// applyRetention takes the days that logs written into the warehouse are kept;
// null takes the limit away.
func applyRetention(b sourceBody, src *store.Source, described source.Description) []api.Problem {
	const key = "warehouse_writeback_retention_in_days"
	if _, sent := b.keys[key]; !sent {
		return nil
	}
	if b.WritebackRetention != nil && !described.SupportsWarehouseWriteback {
		return []api.Problem{{Field: "connection." + key, Message: described.ServiceName + " sources do not support writeback; leave it out"}}
	}
	src.WritebackRetention = b.WritebackRetention
	return nil
}

// mergeCredentials keeps stored values that an update leaves out; null takes a
// value away.
func mergeCredentials(stored, sent map[string]json.RawMessage) map[string]json.RawMessage {
	// A copy: stored still says what the source is until the update is through.
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
