package write

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// Record is one record that the judge made.
type Record struct {
	Object *Object
	ID     rpc.Field // the active identifier
	Key    json.RawMessage
	Values map[string]json.RawMessage // by field, the identifier included
	Seed   values.Seed                // the seed of the values
	Turn   int                        // how many values of a sequence it has had
	Near   bool                       // the key is made to resemble others
	Odd    Odd                        // what a row of a table put into it
}

// Odd is what a row of a table made of a record.
type Odd struct {
	Fields []rpc.Field
	What   string
	Key    bool            // the row is an identifier
	Nearly json.RawMessage // a value that a loose comparison takes for that of the fields
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

// Under returns a copy with another key, which a read-back can query.
func (r *Record) Under(key string) *Record {
	c := *r
	c.Key = values.Quote(key)
	return &c
}

// Holds reports whether one of the records has the place of r.
func Holds(records []*Record, r *Record) bool {
	return slices.ContainsFunc(records, func(o *Record) bool { return o.Place() == r.Place() })
}

// journalled is the identifier by which clean-up finds the record: the active one, if it is a true one.
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

// keep leaves the identifier and the fields that are wanted.
func (r *Record) keep(want func(f rpc.Field) bool) *Record {
	c := *r
	c.Values = map[string]json.RawMessage{}
	for name, raw := range r.Values {
		if name == r.ID.APIName || want(r.Object.FieldOrNew(name)) {
			c.Values[name] = raw
		}
	}
	return &c
}

// optional are the fields that the record carries and need not, in the object's order.
func (r *Record) optional() []string {
	var out []string
	for _, f := range r.Object.Fields {
		if _, ok := r.Values[f.APIName]; ok && !f.Required && f.APIName != r.ID.APIName {
			out = append(out, f.APIName)
		}
	}
	return out
}

// Updateable leaves out what an update may not write.
func (r *Record) Updateable() *Record { return r.keep(func(f rpc.Field) bool { return f.Updateable }) }

// OnlyRequired leaves what every plan must map.
func OnlyRequired(_ *Scenario, r *Record) *Record {
	return r.keep(func(f rpc.Field) bool { return f.Required })
}

func withoutArrays(_ *Scenario, r *Record) *Record {
	return r.keep(func(f rpc.Field) bool { return !f.Array || f.Required })
}

// everySecond leaves every second list and every second other value, and required fields.
func everySecond(_ *Scenario, r *Record) *Record {
	mapped, turn := map[string]bool{}, map[bool]bool{}
	for _, f := range r.Object.Fields {
		if BothWays(f) && !f.Required {
			turn[f.Array] = !turn[f.Array]
			mapped[f.APIName] = turn[f.Array]
		}
	}
	return r.keep(func(f rpc.Field) bool { return f.Required || mapped[f.APIName] })
}

// OnlyIdentifier leaves what names the record.
func OnlyIdentifier(_ *Scenario, r *Record) *Record {
	return r.keep(func(rpc.Field) bool { return false })
}

// oneBeyond keeps one field beyond the required ones: large batches stay below a statement's limit.
func oneBeyond(_ *Scenario, r *Record) *Record {
	optional := r.optional()
	return r.keep(func(f rpc.Field) bool { return f.Required || slices.Index(optional, f.APIName) == 0 })
}

// fewerFields leaves out every other optional field, the first included, never all: RES-013 judges that.
func fewerFields(_ *Scenario, r *Record) *Record {
	optional := r.optional()
	return r.keep(func(f rpc.Field) bool {
		return f.Required || len(optional) == 1 || slices.Index(optional, f.APIName)%2 == 1
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

// NullsInTurn gives the record nulls where it had values, and new values where it had nulls.
func NullsInTurn(sc *Scenario, r *Record) *Record {
	c := sc.Changed(r, r.Turn+1)
	c.Turn = r.Turn + 1
	if r.Seed.NullInTurn(c.Turn) {
		c = NullRest(sc, c)
	}
	return c
}

// arraysInTurn gives each array of the record another length.
func arraysInTurn(sc *Scenario, r *Record) *Record {
	turn := r.Turn + 1
	var arrays []rpc.Field
	for _, f := range r.Object.Fields {
		if !f.Array || !BothWays(f) || r.Object.Avoids(f.APIName) {
			continue
		}
		arrays = append(arrays, f)
		r = r.With(f.APIName, sc.Made.ArrayInTurn(f, r.Seed, turn, r.Object.learned(f.APIName).Style, !f.Required && !r.Object.NoNull(f.APIName)))
	}
	if len(arrays) > 0 {
		r.Turn, r.Odd.Fields = turn, arrays
	}
	return r
}

// withoutOtherIdentifiers leaves only the active identifier of a record that was sent before to match by: the others
// go, or get another value where every plan must map them.
func withoutOtherIdentifiers(sc *Scenario, r *Record) *Record {
	if sc.Model == nil || sc.Model.at[r.Place()] == nil || !sc.Model.Get(r).Exists {
		return r
	}
	r = r.keep(func(f rpc.Field) bool { return !f.Identifier || f.Required })
	for name := range r.Values {
		if f, _ := r.Object.Field(name); f.Identifier && name != r.ID.APIName {
			if key, err := sc.Key(r.Object, f); err == nil {
				r.Values[name] = key
			} else {
				delete(r.Values, name)
			}
		}
	}
	return r
}

// WithIdentifiers gives the record the values of its true identifiers as well.
func WithIdentifiers(sc *Scenario, r *Record) *Record {
	for _, f := range r.Object.Identifiers() {
		if _, ok := r.Values[f.APIName]; ok || !f.Createable {
			continue
		}
		if key, err := sc.Key(r.Object, f); err == nil {
			r = r.With(f.APIName, key)
		}
	}
	return r
}

// NewRecord makes a record with a fresh key and ordinary values, or the author's fixtures.
func (sc *Scenario) NewRecord(o *Object, id rpc.Field) (*Record, error) {
	return sc.RecordWith(o, id, o.Ordinary(id))
}

// RecordWith makes a record that carries exactly these fields and its key.
func (sc *Scenario) RecordWith(o *Object, id rpc.Field, fields []rpc.Field) (*Record, error) {
	if most := 500; len(fields) > most { // else a run takes hours and all memory
		return nil, engine.Inconclusive("", "%s requires %s: records are made of up to %d", o, quantity.Count(len(fields), "field"), most)
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

// FieldValue is the fixture or an ordinary value, of a further identifier a key.
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

// Ordinary are the identifier, the required fields, and all others that can be written both ways.
func (o *Object) Ordinary(id rpc.Field) []rpc.Field { return o.carried(id, BothWays) }

// Every are all fields that a new record can have.
func (o *Object) Every(id rpc.Field) []rpc.Field {
	return o.carried(id, func(f rpc.Field) bool { return f.Createable })
}

// carried are what a record must have and may have; an object can have thousands of fields.
func (o *Object) carried(id rpc.Field, may func(f rpc.Field) bool) []rpc.Field {
	var out []rpc.Field
	for _, f := range o.Fields {
		if f.APIName == id.APIName || f.Required || may(f) && !o.Avoids(f.APIName) && len(out) < mostFields {
			out = append(out, f)
		}
	}
	return out
}

// mostFields bounds how many fields a record maps in addition to those that it must.
const mostFields = 100

// BothWays reports whether create and update may both write a field that is no identifier.
func BothWays(f rpc.Field) bool { return f.Createable && f.Updateable && !f.Identifier }

// Changed returns the record with other values under the same key, of each n other ones.
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

// CheckFixtures refuses values for objects and fields that the endpoint does not list. The message
// starts with the path of the entry. An empty list refuses nothing.
func (s *Session) CheckFixtures() error {
	if len(s.Catalog.Objects) == 0 {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(s.Opts.Fixtures)) {
		o, path, fixture := s.Catalog.Object(name), "fixtures."+name, s.Opts.Fixtures[name]
		if o == nil {
			return conformance.Usage("%s: no object %q%s", path, name, knownNames("list_objects", s.Catalog.Names()))
		}
		known := lists.Of(o.Fields, func(f rpc.Field) string { return f.APIName })
		for _, part := range []struct {
			path   string
			fields []string
		}{
			{path, fixture.Hidden}, {path, slices.Sorted(maps.Keys(fixture.Fields))}, {path + ".bad", slices.Sorted(maps.Keys(fixture.Bad))},
		} {
			i := slices.IndexFunc(part.fields, func(field string) bool { return !slices.Contains(known, field) })
			if i >= 0 && len(known) > 0 {
				return conformance.Usage("%s.%s: %s has no field %q%s", part.path, part.fields[i], name, part.fields[i], knownNames("list_fields", known))
			}
		}
	}
	return nil
}

// Hides reports whether a read-back cannot show a field as it was sent, by the fixtures or the hook.
func (s *Session) Hides(object, field string) bool {
	_, said := s.hookHides.Load([2]string{object, field})
	return said || slices.Contains(s.Opts.Fixtures[object].Hidden, field)
}

// knownNames is the end of a message about an unknown word.
func knownNames(method string, known []string) string {
	const mostListed = 30
	if len(known) > mostListed {
		return ""
	}
	return "; " + method + " names " + quantity.List(known)
}
