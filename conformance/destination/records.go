package destination

import (
	"encoding/json"
	"strconv"

	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/quantity"
)

// newRecord makes a record with a fresh key and ordinary values: the identifier,
// every required field, and further fields whose change can be seen. The author's
// fixtures override the values.
func (sc *scenario) newRecord(o *object, id rpc.Field) (*record, error) {
	return sc.recordWith(o, id, o.ordinary(id))
}

// mostRequired bounds what one record can be made to carry: an object that requires
// more fields is not judged by writing, which would take hours and all memory.
const mostRequired = 500

// recordWith makes a record that carries exactly these fields and its key.
func (sc *scenario) recordWith(o *object, id rpc.Field, fields []rpc.Field) (*record, error) {
	if len(fields) > mostRequired {
		return nil, inconclusive("", "%s requires %s: records are made of up to %d", o, quantity.Count(len(fields), "field"), mostRequired)
	}
	key, err := sc.key(o, id)
	if err != nil {
		return nil, err
	}
	r := &record{
		object: o, id: id, key: key, seed: values.NewSeed(sc.Check().Number, sc.keys.NextRecord(sc.Check().ID)),
		values: map[string]json.RawMessage{id.APIName: key},
	}
	for _, f := range fields {
		if f.APIName == id.APIName {
			continue
		}
		if r.values[f.APIName], err = sc.fieldValue(r, f); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// fieldValue is the author's fixture or an ordinary value. A further
// identifier is unique too, so it gets a key of its own.
func (sc *scenario) fieldValue(r *record, f rpc.Field) (json.RawMessage, error) {
	if raw, ok := sc.opts.Fixtures[r.object.APIName].Fields[f.APIName]; ok {
		return sc.made.Expand(raw, r.seed, r.key), nil
	}
	if f.Identifier {
		return sc.key(r.object, f)
	}
	return learned(sc.made, r.object, f, r.seed), nil
}

// key makes the next raw JSON key for an identifier field.
func (sc *scenario) key(o *object, f rpc.Field) (json.RawMessage, error) {
	if f.Type == rpc.TypeInteger {
		n, ok := sc.keys.NextInteger()
		if !ok {
			return nil, notRun(deciderKeys, "the key range %d:%d is used up: give a longer --key-range", sc.keys.From, sc.keys.To)
		}
		return json.RawMessage(strconv.FormatInt(n, 10)), nil
	}
	text := o.folded.fold(sc.keys.NextText(sc.Check().ID))
	if sc.keys.Given {
		return values.Quote(text), nil
	}
	return values.Quote(values.FormOfKey(f, text, o.keyForm)), nil
}

// newRecords makes n records of the current object.
func (sc *scenario) newRecords(n int) ([]*record, error) {
	if sc.object == nil {
		return nil, harness("no object is chosen")
	}
	id, err := sc.object.identifier()
	if err != nil {
		return nil, err
	}
	out := make([]*record, 0, n)
	for range n {
		r, err := sc.newRecord(sc.object, id)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

// ordinary are the fields of an ordinary record: the identifier, what is required,
// and all others that can be written both ways.
func (o *object) ordinary(id rpc.Field) []rpc.Field {
	var out []rpc.Field
	for _, f := range o.Fields {
		free := bothWays(f) && !o.avoids(f.APIName) && len(out) < mostFields
		if f.APIName == id.APIName || f.Required || free {
			out = append(out, f)
		}
	}
	return out
}

// bothWays reports whether create and update may both write a field that is no
// identifier.
func bothWays(f rpc.Field) bool { return f.Createable && f.Updateable && !f.Identifier }

// mostFields bounds how many fields a record maps beside those that it must: an
// object can have thousands, and each check about every field would take minutes.
const mostFields = 100

// every are all fields of a record that an operation can write: those of an
// update where existing records are changed, those of a new record otherwise.
func (o *object) every(id rpc.Field, existing bool) []rpc.Field {
	var out []rpc.Field
	for _, f := range o.Fields {
		writable := f.Createable || f.Required
		if existing {
			writable = bothWays(f)
		}
		if f.APIName == id.APIName || writable && (f.Required || !o.avoids(f.APIName) && len(out) < mostFields) {
			out = append(out, f)
		}
	}
	return out
}

// changed returns the record with other values under the same key: every field
// that is no identifier is new. Different n give different values.
func (sc *scenario) changed(r *record, n int) *record {
	c := *r
	c.seed = r.seed.Version(n)
	c.values = map[string]json.RawMessage{}
	for name, raw := range r.values {
		f, ok := r.object.field(name)
		switch fixed, is := sc.opts.Fixtures[r.object.APIName].Fields[name]; {
		case !ok || f.Identifier || !f.Updateable || name == r.id.APIName:
			c.values[name] = raw // the same value again is no update of it
		case is:
			c.values[name] = sc.made.Expand(fixed, c.seed, r.key)
		default:
			c.values[name] = learned(sc.made, r.object, f, c.seed)
		}
	}
	return &c
}
