package destination

import (
	"bytes"
	"encoding/json"
	"maps"
	"strings"

	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/destsim/rpc"
)

// record is one record that the judge made.
type record struct {
	object *object
	id     rpc.Field // the active identifier
	key    json.RawMessage
	values map[string]json.RawMessage // by field, the identifier included
	seed   values.Seed                // what the values are made from
	turn   int                        // how many values of a sequence it has had
	near   bool                       // the key is made to resemble others
	odd    odd                        // what a row of a table put into it
}

// with returns a copy with one value changed.
func (r *record) with(field string, raw json.RawMessage) *record {
	c := *r
	c.values = make(map[string]json.RawMessage, len(r.values)+1)
	maps.Copy(c.values, r.values)
	c.values[field] = raw
	if field == r.id.APIName {
		c.key = raw
	}
	return &c
}

// journalled is the field and the key by which clean-up finds the record: the
// active identifier, or a true one where a check sends another field as active.
func (r *record) journalled() (string, json.RawMessage) {
	field, key := r.id.APIName, r.key
	if !r.id.Identifier {
		for _, f := range r.object.identifiers() {
			if raw, ok := r.values[f.APIName]; ok {
				field, key = f.APIName, raw
				break
			}
		}
	}
	if k := strings.TrimSpace(string(key)); k == "" || k == "null" {
		return field, nil
	}
	return field, key
}

// encode writes the record as an object. A delete record carries its active
// identifier only: no endpoint may need more.
func (r *record) encode(out *bytes.Buffer, operation string, mapped []rpc.Field) {
	out.WriteByte('{')
	n := 0
	for _, f := range mapped {
		raw, ok := r.values[f.APIName]
		if !ok || operation == rpc.OperationDelete && f.APIName != r.id.APIName {
			continue
		}
		if n > 0 {
			out.WriteByte(',')
		}
		out.Write(values.Quote(f.APIName))
		out.WriteByte(':')
		out.Write(raw)
		n++
	}
	out.WriteByte('}')
}

// updateable leaves out what an update may not write.
func (r *record) updateable() *record {
	c := *r
	c.values = map[string]json.RawMessage{}
	for name, raw := range r.values {
		if f, ok := r.object.field(name); !ok || f.Updateable || name == r.id.APIName {
			c.values[name] = raw
		}
	}
	return &c
}

func (r *record) keep(want func(f rpc.Field) bool) *record {
	c := *r
	c.values = map[string]json.RawMessage{}
	for name, raw := range r.values {
		if f, _ := r.object.field(name); name == r.id.APIName || want(f) {
			c.values[name] = raw
		}
	}
	return &c
}

func onlyRequired(_ *scenario, r *record) *record {
	return r.keep(func(f rpc.Field) bool { return f.Required })
}

// everySecond leaves every second list and every second other value, and what is required.
func everySecond(_ *scenario, r *record) *record {
	mapped, turn := map[string]bool{}, map[bool]bool{}
	for _, f := range r.object.Fields {
		if bothWays(f) && !f.Identifier && !f.Required {
			turn[f.Array] = !turn[f.Array]
			mapped[f.APIName] = turn[f.Array]
		}
	}
	return r.keep(func(f rpc.Field) bool { return f.Required || mapped[f.APIName] })
}

func onlyIdentifier(_ *scenario, r *record) *record {
	return r.keep(func(rpc.Field) bool { return false })
}

// mixable leaves the texts and integers of a record, whose values show of which record
// and field they are.
func mixable(r *record) *record {
	return r.keep(func(f rpc.Field) bool {
		return f.Required || !f.Array && (f.Type == rpc.TypeString || f.Type == rpc.TypeInteger)
	})
}

// nullRest sets every mapped field that may be null to null.
func nullRest(_ *scenario, r *record) *record {
	for name := range r.values {
		if f, ok := r.object.field(name); ok && !f.Required && !f.Identifier && name != r.id.APIName && !r.object.noNull(name) {
			r = r.with(name, json.RawMessage("null"))
		}
	}
	return r
}
