package destination

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/server/api"
)

// complaints collects what is wrong with an entry, each with its place.
type complaints []error

// add notes one problem with its place, such as objects[1].fields[2].type.
func (c *complaints) add(place, format string, args ...any) {
	*c = append(*c, fmt.Errorf("%s: %w", place, fmt.Errorf(format, args...)))
}

// oneOf notes a word that is none of the known ones, and lists these.
func (c *complaints) oneOf(place, value string, known ...string) {
	if !slices.Contains(known, value) {
		c.add(place, "unknown value %q; use one of %s", value, strings.Join(known, ", "))
	}
}

// check looks at what decoding cannot see. All problems come together.
func (e *entry) check() error {
	var c complaints
	for place, value := range map[string]string{
		"service_name": e.ServiceName, "label": e.Label, "documentation_slug": e.DocumentationSlug,
	} {
		if value == "" {
			c.add(place, "must not be empty")
		}
	}
	credentials := map[string]bool{}
	for i := range e.Credentials {
		e.Credentials[i].check(fmt.Sprintf("credentials[%d]", i), &c)
		if id := e.Credentials[i].ID; credentials[id] {
			c.add(fmt.Sprintf("credentials[%d].id", i), "%q stands twice", id)
		} else {
			credentials[id] = true
		}
	}
	if !credentials[e.Account.From] {
		c.add("account.from", "%q is no credential", e.Account.From)
	}
	if !credentials[e.Refuse.Credential] || e.Refuse.Word == "" {
		c.add("refuse", "names a credential and a word")
	}
	if len(e.Objects) == 0 {
		c.add("objects", "must not be empty")
	}
	objects := map[string]bool{}
	for i := range e.Objects {
		place := fmt.Sprintf("objects[%d]", i)
		if objects[e.Objects[i].FullName] {
			c.add(place+".full_name", "%q stands twice", e.Objects[i].FullName)
		}
		objects[e.Objects[i].FullName] = true
		e.Objects[i].check(e, place, &c)
	}
	slices.SortStableFunc(c, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(c...)
}

// check keeps the promise of spec 2.10 to clients: a type they can render, a
// pattern that compiles, values to choose from exactly where a list is shown.
func (f *credentialEntry) check(place string, c *complaints) {
	if f.ID == "" || f.Label == "" {
		c.add(place, "id and label must not be empty")
	}
	c.oneOf(place+".type", f.Type, "string", "integer", "boolean")
	c.oneOf(place+".input_type", f.InputType, "text", "textarea", "password", "dropdown", "checkbox")
	if _, err := regexp.Compile(f.Matches); err != nil {
		c.add(place+".matches", "%w", err)
	}
	if (f.InputType == "dropdown") != (len(f.PossibleValues) > 0) {
		c.add(place+".possible_values", "stand with input_type dropdown, and only there")
	}
}

// check looks at one object with its fields. The hidden identifier shares the
// name space of the fields, because the simulator keeps it beside them.
func (o *objectEntry) check(e *entry, place string, c *complaints) {
	if o.FullName == "" || o.Label == "" {
		c.add(place, "full_name and label must not be empty")
	}
	if len(o.Operations) == 0 {
		c.add(place+".operations", "must not be empty")
	}
	for j, op := range o.Operations {
		c.oneOf(fmt.Sprintf("%s.operations[%d]", place, j), op,
			api.OperationAppend, api.OperationInsert, api.OperationMirror, api.OperationUpdate, api.OperationUpsert)
	}
	for j, t := range o.CustomFieldTypes {
		c.oneOf(fmt.Sprintf("%s.custom_field_types[%d].type", place, j), t.Type, rpc.FieldTypes()...)
	}
	if o.Audience != nil && (o.Audience.MatchPercent < 0 || o.Audience.MatchPercent > 100) {
		c.add(place+".audience.match_percent", "must be 0 to 100, not %d", o.Audience.MatchPercent)
	}
	identified := o.HiddenIdentifier != ""
	fields := map[string]bool{o.HiddenIdentifier: identified}
	for j := range o.Fields {
		at := fmt.Sprintf("%s.fields[%d]", place, j)
		if name := o.Fields[j].FullName; fields[name] {
			c.add(at+".full_name", "%q stands twice", name)
		} else {
			fields[name] = true
		}
		o.Fields[j].check(e, at, c)
		identified = identified || o.Fields[j].identifies()
	}
	if !identified { // the simulator tells records apart by it
		c.add(place+".fields", "no field is a key, and hidden_identifier is not set")
	}
	names := map[string]bool{}
	for j := range o.AdvancedParameters {
		at := fmt.Sprintf("%s.advanced_configuration[%d]", place, j)
		if name := o.AdvancedParameters[j].Name; names[name] {
			c.add(at+".name", "%q stands twice", name)
		} else {
			names[name] = true
		}
		o.AdvancedParameters[j].check(at, c)
	}
}

// identifies tells whether the field can be the identifier of a sync plan.
func (f *fieldEntry) identifies() bool {
	return slices.ContainsFunc(f.Keys, func(key string) bool { return key != "reference" })
}

// check looks at one field. A key has a type that the protocol admits for an
// identifier (facts A3), and a lookup leads to an object that can be found by
// a reference key, or a sync could never resolve it.
func (f *fieldEntry) check(e *entry, place string, c *complaints) {
	if f.FullName == "" || f.Label == "" {
		c.add(place, "full_name and label must not be empty")
	}
	c.oneOf(place+".type", f.Type, rpc.FieldTypes()...)
	for j, op := range f.Operations {
		c.oneOf(fmt.Sprintf("%s.operations[%d]", place, j), op, "overwrite", "merge")
		if op == "merge" && !f.Array {
			c.add(fmt.Sprintf("%s.operations[%d]", place, j), "merge is for arrays")
		}
	}
	for j, key := range f.Keys {
		c.oneOf(fmt.Sprintf("%s.keys[%d]", place, j), key, "upsert", "update", "insert", "reference")
	}
	if len(f.Keys) > 0 && (f.Array || f.Type != rpc.TypeString && f.Type != rpc.TypeInteger) {
		c.add(place+".keys", "a key must be a string or an integer, and no array")
	}
	if f.LookupObject == "" {
		return
	}
	target := e.object(f.LookupObject)
	if target == nil || !slices.ContainsFunc(target.Fields, func(t fieldEntry) bool { return slices.Contains(t.Keys, "reference") }) {
		c.add(place+".lookup_object", "%q is no object with a reference key", f.LookupObject)
	}
}

// check looks at one advanced configuration field (spec 2.4). A default that
// does not fit would make every sync that leaves the field out invalid.
func (a *advancedEntry) check(place string, c *complaints) {
	if a.Name == "" || a.Label == "" {
		c.add(place, "name and label must not be empty")
	}
	c.oneOf(place+".type", a.Type, "string", "integer", "boolean")
	c.oneOf(place+".input_type", a.InputType, "text", "textarea", "dropdown", "checkbox")
	if (a.InputType == "dropdown") != (len(a.SupportedValues) > 0) {
		c.add(place+".supported_values", "stand with input_type dropdown, and only there")
	}
	switch value := a.Default.(type) {
	case nil:
	case string:
		if a.Type != "string" || len(a.SupportedValues) > 0 && !slices.Contains(a.SupportedValues, value) {
			c.add(place+".default", "%q does not fit the type or the supported values", value)
		}
	case bool:
		if a.Type != "boolean" {
			c.add(place+".default", "is a boolean, the type is %s", a.Type)
		}
	case int, int64, uint64:
		if a.Type != "integer" {
			c.add(place+".default", "is an integer, the type is %s", a.Type)
		}
	default:
		c.add(place+".default", "must be a string, an integer or a boolean")
	}
}
