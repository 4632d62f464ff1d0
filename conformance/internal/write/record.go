package write

import (
	"bytes"
	"encoding/json"
	"maps"
	"strings"

	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/destsim/rpc"
)

// Record is one record that the judge made.
type Record struct {
	Object *Object
	ID     rpc.Field // the active identifier
	Key    json.RawMessage
	Values map[string]json.RawMessage // by field, the identifier included
	Seed   values.Seed                // what the values are made from
	Turn   int                        // how many values of a sequence it has had
	Near   bool                       // the key is made to resemble others
	Odd    Odd                        // what a row of a table put into it
}

// With returns a copy with one value changed.
func (r *Record) With(field string, raw json.RawMessage) *Record {
	c := *r
	c.Values = make(map[string]json.RawMessage, len(r.Values)+1)
	maps.Copy(c.Values, r.Values)
	c.Values[field] = raw
	if field == r.ID.APIName {
		c.Key = raw
	}
	return &c
}

// journalled is the field and the key by which clean-up finds the record: the
// active identifier, or a true one where a check sends another field as active.
func (r *Record) journalled() (string, json.RawMessage) {
	field, key := r.ID.APIName, r.Key
	if !r.ID.Identifier {
		for _, f := range r.Object.Identifiers() {
			if raw, ok := r.Values[f.APIName]; ok {
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
func (r *Record) encode(out *bytes.Buffer, operation string, mapped []rpc.Field) {
	out.WriteByte('{')
	n := 0
	for _, f := range mapped {
		raw, ok := r.Values[f.APIName]
		if !ok || operation == rpc.OperationDelete && f.APIName != r.ID.APIName {
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

// Updateable leaves out what an update may not write.
func (r *Record) Updateable() *Record {
	c := *r
	c.Values = map[string]json.RawMessage{}
	for name, raw := range r.Values {
		if f, ok := r.Object.Field(name); !ok || f.Updateable || name == r.ID.APIName {
			c.Values[name] = raw
		}
	}
	return &c
}

func (r *Record) keep(want func(f rpc.Field) bool) *Record {
	c := *r
	c.Values = map[string]json.RawMessage{}
	for name, raw := range r.Values {
		if f, _ := r.Object.Field(name); name == r.ID.APIName || want(f) {
			c.Values[name] = raw
		}
	}
	return &c
}

func OnlyRequired(_ *Scenario, r *Record) *Record {
	return r.keep(func(f rpc.Field) bool { return f.Required })
}

// everySecond leaves every second list and every second other value, and what is required.
func everySecond(_ *Scenario, r *Record) *Record {
	mapped, turn := map[string]bool{}, map[bool]bool{}
	for _, f := range r.Object.Fields {
		if BothWays(f) && !f.Identifier && !f.Required {
			turn[f.Array] = !turn[f.Array]
			mapped[f.APIName] = turn[f.Array]
		}
	}
	return r.keep(func(f rpc.Field) bool { return f.Required || mapped[f.APIName] })
}

func onlyIdentifier(_ *Scenario, r *Record) *Record {
	return r.keep(func(rpc.Field) bool { return false })
}

// mixable leaves the texts and integers of a record, whose values show of which record
// and field they are.
func mixable(r *Record) *Record {
	return r.keep(func(f rpc.Field) bool {
		return f.Required || !f.Array && (f.Type == rpc.TypeString || f.Type == rpc.TypeInteger)
	})
}

// NullRest sets every mapped field that may be null to null.
func NullRest(_ *Scenario, r *Record) *Record {
	for name := range r.Values {
		if f, ok := r.Object.Field(name); ok && !f.Required && !f.Identifier && name != r.ID.APIName && !r.Object.NoNull(name) {
			r = r.With(name, json.RawMessage("null"))
		}
	}
	return r
}
