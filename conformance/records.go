package conformance

import (
	"encoding/json"
	"slices"

	"github.com/destkit/destkit/destsim/rpc"
)

// newRecord makes a record with a fresh key and ordinary values of its variant:
// the identifier, every required field, and one further field whose change can
// be seen. The author's fixtures override the values.
func (w *world) newRecord(o *object, id rpc.Field, variant int) (*record, error) {
	return w.recordWith(o, id, variant, w.ordinary(o, id))
}

// recordWith makes a record that carries exactly these fields and its key.
func (w *world) recordWith(o *object, id rpc.Field, variant int, fields []rpc.Field) (*record, error) {
	key, err := w.key(id)
	if err != nil {
		return nil, err
	}
	r := &record{object: o, id: id, key: key, n: variant, values: map[string]json.RawMessage{id.APIName: key}}
	for _, f := range fields {
		if f.APIName == id.APIName {
			continue
		}
		if r.values[f.APIName], err = w.fieldValue(o, f, variant); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// fieldValue is the author's fixture or an ordinary value. A further
// identifier is unique too, so it gets a key of its own.
func (w *world) fieldValue(o *object, f rpc.Field, variant int) (json.RawMessage, error) {
	if raw, ok := w.opts.Fixtures[o.APIName].Fields[f.APIName]; ok {
		return json.RawMessage(raw), nil
	}
	if f.Identifier {
		return w.key(f)
	}
	return value(f, variant), nil
}

// newRecords makes n records of the current object.
func (w *world) newRecords(n int) ([]*record, error) {
	if w.object == nil {
		return nil, harness("no object is chosen")
	}
	id, err := w.object.identifier()
	if err != nil {
		return nil, err
	}
	out := make([]*record, 0, n)
	for i := range n {
		r, err := w.newRecord(w.object, id, i+1)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

// ordinary are the fields of an ordinary record: the identifier, what is
// required, and up to two strings and one integer that can be written both
// ways. The other types are mapped only by the checks that are about them.
func (w *world) ordinary(o *object, id rpc.Field) []rpc.Field {
	var out []rpc.Field
	texts, numbers := 0, 0
	for _, f := range o.Fields {
		free := f.Createable && f.Updateable && !f.Array && !f.Identifier && !f.Required
		switch {
		case f.APIName == id.APIName || f.Required && f.Createable:
			out = append(out, f)
		case free && f.Type == rpc.TypeString && texts < 2:
			texts++
			out = append(out, f)
		case free && f.Type == rpc.TypeInteger && numbers < 1:
			numbers++
			out = append(out, f)
		}
	}
	if texts+numbers == 0 {
		if m, ok := o.marker(id); ok && !slices.ContainsFunc(out, func(f rpc.Field) bool { return f.APIName == m.APIName }) {
			out = append(out, m)
		}
	}
	return out
}

// marker is the field by which a change of a record is seen: writable both
// ways, no identifier, no array; a string where there is one.
func (o *object) marker(id rpc.Field) (rpc.Field, bool) {
	for _, t := range []string{rpc.TypeString, rpc.TypeInteger, rpc.TypeDecimal, rpc.TypeFloat, rpc.TypeDate, rpc.TypeDateTime, rpc.TypeBoolean} {
		for _, f := range o.Fields {
			if f.Type == t && f.Createable && f.Updateable && !f.Identifier && !f.Array && f.APIName != id.APIName {
				return f, true
			}
		}
	}
	return rpc.Field{}, false
}

// changed returns the record with the values of another variant under the same
// keys: every field that is no identifier is new.
func (w *world) changed(r *record, variant int) *record {
	c := *r
	c.n = variant
	c.values = map[string]json.RawMessage{}
	for name, raw := range r.values {
		f, ok := r.object.field(name)
		if !ok || f.Identifier || name == r.id.APIName {
			c.values[name] = raw
			continue
		}
		if fixed, ok := w.opts.Fixtures[r.object.APIName].Fields[name]; ok {
			c.values[name] = json.RawMessage(fixed)
			continue
		}
		c.values[name] = value(f, variant)
	}
	return &c
}
