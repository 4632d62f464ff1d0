package write

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// NewRecord makes a record with a fresh key and ordinary values: the identifier,
// every required field, and further fields whose change can be seen. The author's
// fixtures override the values.
func (sc *Scenario) NewRecord(o *Object, id rpc.Field) (*Record, error) {
	return sc.RecordWith(o, id, o.Ordinary(id))
}

// mostRequired bounds what one record can be made to carry: an object that requires
// more fields is not judged by writing, which would take hours and all memory.
const mostRequired = 500

// RecordWith makes a record that carries exactly these fields and its key.
func (sc *Scenario) RecordWith(o *Object, id rpc.Field, fields []rpc.Field) (*Record, error) {
	if len(fields) > mostRequired {
		return nil, engine.Inconclusive("", "%s requires %s: records are made of up to %d", o, quantity.Count(len(fields), "field"), mostRequired)
	}
	key, err := sc.Key(o, id)
	if err != nil {
		return nil, err
	}
	r := &Record{
		Object: o, ID: id, Key: key, Seed: values.NewSeed(sc.Check().Number, sc.Keys.NextRecord(sc.Check().ID)),
		Values: map[string]json.RawMessage{id.APIName: key},
	}
	for _, f := range fields {
		if f.APIName == id.APIName {
			continue
		}
		if r.Values[f.APIName], err = sc.FieldValue(r, f); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// FieldValue is the author's fixture or an ordinary value. A further
// identifier is unique too, so it gets a key of its own.
func (sc *Scenario) FieldValue(r *Record, f rpc.Field) (json.RawMessage, error) {
	if raw, ok := sc.Opts.Fixtures[r.Object.APIName].Fields[f.APIName]; ok {
		return sc.Made.Expand(raw, r.Seed, r.Key), nil
	}
	if f.Identifier {
		return sc.Key(r.Object, f)
	}
	return Learned(sc.Made, r.Object, f, r.Seed), nil
}

// Key makes the next raw JSON key for an identifier field.
func (sc *Scenario) Key(o *Object, f rpc.Field) (json.RawMessage, error) {
	if f.Type == rpc.TypeInteger {
		n, ok := sc.Keys.NextInteger()
		if !ok {
			return nil, engine.NotRun(DeciderKeys, "the key range %d:%d is used up: give a longer --key-range", sc.Keys.From, sc.Keys.To)
		}
		return json.RawMessage(strconv.FormatInt(n, 10)), nil
	}
	text := o.Folded.fold(sc.Keys.NextText(sc.Check().ID))
	if sc.Keys.Given {
		return values.Quote(text), nil
	}
	return values.Quote(values.FormOfKey(f, text, o.KeyForm)), nil
}

// NewRecords makes n records of the current object.
func (sc *Scenario) NewRecords(n int) ([]*Record, error) {
	if sc.Object == nil {
		return nil, line.Harness("no object is chosen")
	}
	id, err := sc.Object.Identifier()
	if err != nil {
		return nil, err
	}
	out := make([]*Record, 0, n)
	for range n {
		r, err := sc.NewRecord(sc.Object, id)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

// Ordinary are the fields of an ordinary record: the identifier, what is required,
// and all others that can be written both ways.
func (o *Object) Ordinary(id rpc.Field) []rpc.Field {
	var out []rpc.Field
	for _, f := range o.Fields {
		free := BothWays(f) && !o.Avoids(f.APIName) && len(out) < mostFields
		if f.APIName == id.APIName || f.Required || free {
			out = append(out, f)
		}
	}
	return out
}

// BothWays reports whether create and update may both write a field that is no
// identifier.
func BothWays(f rpc.Field) bool { return f.Createable && f.Updateable && !f.Identifier }

// mostFields bounds how many fields a record maps beside those that it must: an
// object can have thousands, and each check about every field would take minutes.
const mostFields = 100

// Every are all fields of a record that an operation can write: those of an
// update where existing records are changed, those of a new record otherwise.
func (o *Object) Every(id rpc.Field, existing bool) []rpc.Field {
	var out []rpc.Field
	for _, f := range o.Fields {
		writable := f.Createable || f.Required
		if existing {
			writable = BothWays(f)
		}
		if f.APIName == id.APIName || writable && (f.Required || !o.Avoids(f.APIName) && len(out) < mostFields) {
			out = append(out, f)
		}
	}
	return out
}

// Changed returns the record with other values under the same key: every field
// that is no identifier is new. Different n give different values.
func (sc *Scenario) Changed(r *Record, n int) *Record {
	c := *r
	c.Seed = r.Seed.Version(n)
	c.Values = map[string]json.RawMessage{}
	for name, raw := range r.Values {
		f, ok := r.Object.Field(name)
		switch fixed, is := sc.Opts.Fixtures[r.Object.APIName].Fields[name]; {
		case !ok || f.Identifier || !f.Updateable || name == r.ID.APIName:
			c.Values[name] = raw // the same value again is no update of it
		case is:
			c.Values[name] = sc.Made.Expand(fixed, c.Seed, r.Key)
		default:
			c.Values[name] = Learned(sc.Made, r.Object, f, c.Seed)
		}
	}
	return &c
}

// CheckFixtures refuses values for objects and fields that the endpoint does not list:
// no record would ever have them. The message begins with the path of the entry. What
// the endpoint could not say is not held against the author.
func (s *Session) CheckFixtures() error {
	if len(s.Catalog.Objects) == 0 {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(s.Opts.Fixtures)) {
		o, path := s.Catalog.Object(name), "fixtures."+name
		if o == nil {
			return line.Usage("%s: no object %q%s", path, name, knownNames("list_objects", s.Catalog.Names()))
		}
		if len(o.Fields) == 0 {
			continue
		}
		fixture := s.Opts.Fixtures[name]
		for _, field := range fixture.Hidden {
			if err := knownField(path, o, field); err != nil {
				return err
			}
		}
		for _, part := range []struct {
			path   string
			values map[string]string
		}{{path, fixture.Fields}, {path + ".bad", fixture.Bad}} {
			for _, field := range slices.Sorted(maps.Keys(part.values)) {
				if err := knownField(part.path, o, field); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// Hides reports whether the fixtures or the hook say that a read-back cannot show a
// field as it was sent.
func (s *Session) Hides(object, field string) bool {
	_, said := s.hookHides.Load([2]string{object, field})
	return said || slices.Contains(s.Opts.Fixtures[object].Hidden, field)
}

// knownField refuses a field that an object does not have.
func knownField(path string, o *Object, field string) error {
	if slices.ContainsFunc(o.Fields, func(f rpc.Field) bool { return f.APIName == field }) {
		return nil
	}
	known := lists.Of(o.Fields, func(f rpc.Field) string { return f.APIName })
	return line.Usage("%s.%s: %s has no field %q%s", path, field, o.APIName, field, knownNames("list_fields", known))
}

// mostListed is how many names a message lists.
const mostListed = 30

// knownNames is the end of a message about an unknown word.
func knownNames(method string, known []string) string {
	if len(known) > mostListed {
		return ""
	}
	return "; " + method + " names " + quantity.List(known)
}
