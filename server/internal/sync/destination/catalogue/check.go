package catalogue

import (
	"fmt"
	"slices"
	"strings"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/connector"
	"github.com/destkit/destkit/server/api"
)

// Check looks at what decoding cannot see. All problems come together, each with
// its place in the entry.
func (e *Entry) Check() connector.Problems {
	c := e.Declared.Check()
	for place, id := range map[string]string{"account.from": e.Account.From, "account.or": e.Account.Or} {
		f := connector.Find(e.Credentials, id)
		if (f == nil || f.Password) && (id != "" || place == "account.from") {
			c.Add(place, "%q is no credential that can be shown", id)
		}
	}
	if len(e.Objects) == 0 {
		c.Add("objects", "must not be empty")
	}
	objects := map[string]bool{}
	for i := range e.Objects {
		place := fmt.Sprintf("objects[%d]", i)
		if objects[e.Objects[i].FullName] {
			c.Add(place+".full_name", "%q stands twice", e.Objects[i].FullName)
		}
		objects[e.Objects[i].FullName] = true
		e.Objects[i].check(e, place, &c)
	}
	slices.SortStableFunc(c, func(a, b api.Problem) int { return strings.Compare(a.Field, b.Field) })
	return c
}

// check looks at one object with its fields. The hidden identifier shares the
// name space of the fields, because the simulator stores it with them.
func (o *Object) check(e *Entry, place string, c *connector.Problems) {
	if o.FullName == "" || o.Label == "" {
		c.Add(place, "full_name and label must not be empty")
	}
	if len(o.Operations) == 0 {
		c.Add(place+".operations", "must not be empty")
	}
	for j, op := range o.Operations {
		c.OneOf(fmt.Sprintf("%s.operations[%d]", place, j), op,
			api.OperationAppend, api.OperationInsert, api.OperationMirror, api.OperationUpdate, api.OperationUpsert)
	}
	for j, t := range o.CustomFieldTypes {
		c.OneOf(fmt.Sprintf("%s.custom_field_types[%d].type", place, j), t.Type, rpc.FieldTypes()...)
	}
	if o.Audience != nil && (o.Audience.MatchPercent < 0 || o.Audience.MatchPercent > 100) {
		c.Add(place+".audience.match_percent", "must be 0 to 100, not %d", o.Audience.MatchPercent)
	}
	identified := o.HiddenIdentifier != ""
	fields := map[string]bool{o.HiddenIdentifier: identified}
	for j := range o.Fields {
		at := fmt.Sprintf("%s.fields[%d]", place, j)
		if name := o.Fields[j].FullName; fields[name] {
			c.Add(at+".full_name", "%q stands twice", name)
		} else {
			fields[name] = true
		}
		o.Fields[j].check(e, at, c)
		identified = identified || o.Fields[j].identifies()
	}
	if !identified { // the simulator identifies records by it
		c.Add(place+".fields", "no field is a key, and hidden_identifier is not set")
	}
	for name := range o.OwnFields() {
		if fields[name] {
			c.Add(place+".advanced_configuration", "%q is a field of the object, and cannot be that of a stamp", name)
		}
	}
	names := map[string]bool{}
	for j := range o.AdvancedParameters {
		at := fmt.Sprintf("%s.advanced_configuration[%d]", place, j)
		if name := o.AdvancedParameters[j].Name; names[name] {
			c.Add(at+".name", "%q stands twice", name)
		} else {
			names[name] = true
		}
		o.AdvancedParameters[j].check(at, c)
	}
}

// identifies reports whether the field can be the identifier of a sync plan.
func (f *Field) identifies() bool {
	return slices.ContainsFunc(f.Keys, func(key string) bool { return key != "reference" })
}

// check looks at one field. A key has a type that the protocol admits for an
// identifier, and a lookup leads to an object that can be found by
// a reference key, or a sync could never resolve it.
func (f *Field) check(e *Entry, place string, c *connector.Problems) {
	if f.FullName == "" || f.Label == "" {
		c.Add(place, "full_name and label must not be empty")
	}
	c.OneOf(place+".type", f.Type, rpc.FieldTypes()...)
	for j, op := range f.Operations {
		c.OneOf(fmt.Sprintf("%s.operations[%d]", place, j), op, "overwrite", "merge")
		if op == "merge" && !f.Array {
			c.Add(fmt.Sprintf("%s.operations[%d]", place, j), "merge is for arrays")
		}
	}
	for j, key := range f.Keys {
		c.OneOf(fmt.Sprintf("%s.keys[%d]", place, j), key, "upsert", "update", "insert", "reference")
	}
	if len(f.Keys) > 0 && (f.Array || f.Type != rpc.TypeString && f.Type != rpc.TypeInteger) {
		c.Add(place+".keys", "a key must be a string or an integer, and no array")
	}
	if f.LookupObject == "" {
		return
	}
	target := e.Object(f.LookupObject)
	if target == nil || !slices.ContainsFunc(target.Fields, func(t Field) bool { return slices.Contains(t.Keys, "reference") }) {
		c.Add(place+".lookup_object", "%q is no object with a reference key", f.LookupObject)
	}
}

// check looks at one advanced configuration field (spec 2.4). A default that
// does not fit would make every sync that leaves the field out invalid.
func (a *Parameter) check(place string, c *connector.Problems) {
	if a.Name == "" || a.Label == "" {
		c.Add(place, "name and label must not be empty")
	}
	c.OneOf(place+".type", a.Type, "string", "integer", "boolean")
	c.OneOf(place+".input_type", a.InputType, "text", "textarea", "dropdown", "checkbox")
	if (a.InputType == "dropdown") != (len(a.SupportedValues) > 0) {
		c.Add(place+".supported_values", "stand with input_type dropdown, and only there")
	}
	a.checkEffect(place, c)
	switch value := a.Default.(type) {
	case nil:
	case string:
		if a.Type != "string" || len(a.SupportedValues) > 0 && !slices.Contains(a.SupportedValues, value) {
			c.Add(place+".default", "%q does not fit the type or the supported values", value)
		}
	case bool:
		if a.Type != "boolean" {
			c.Add(place+".default", "is a boolean, the type is %s", a.Type)
		}
	case int, int64, uint64:
		if a.Type != "integer" {
			c.Add(place+".default", "is an integer, the type is %s", a.Type)
		}
	default:
		c.Add(place+".default", "must be a string, an integer or a boolean")
	}
}

// checkEffect: a key that does nothing is not listed.
func (a *Parameter) checkEffect(place string, c *connector.Problems) {
	c.OneOf(place+".effect", a.Effect, effectBatchSize, effectStamp)
	if a.Effect == effectBatchSize && a.Type != "integer" {
		c.Add(place+".effect", "%s needs a key of type integer", a.Effect)
	}
	if (a.Effect == effectStamp) != (a.Field != "") {
		c.Add(place+".field", "stands with the effect stamp, and only there")
	}
	if (a.Low != 0 || a.High != 0) && (a.Type != "integer" || a.Low > a.High) {
		c.Add(place+".low", "low and high bound an integer, the lower first")
	}
}
