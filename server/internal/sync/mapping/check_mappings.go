package mapping

import (
	"fmt"
	"slices"
	"strings"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/server/api"
)

// AppendKey is the destination name of the key of an append sync where the
// object has no field for it.
const AppendKey = "unique_id"

// checkMappings: spec 2.7 and published behaviour, mapping by mapping, then the
// rules about all of them together.
func (c *checker) checkMappings() {
	for i := range c.config.Mappings {
		c.checkMapping(fmt.Sprintf("mappings[%d]", i), &c.config.Mappings[i])
	}
	c.checkTwice()
	c.checkIdentifiers()
	c.checkRequired()
}

// checkMapping checks one mapping: the source of its values, their types,
// and their handling.
func (c *checker) checkMapping(at string, m *api.Mapping) {
	kind := c.checkFrom(at+".from", &m.From)
	if m.Position != nil && *m.Position < 0 {
		c.bad(at+".position", "must be 0 or more, not %d", *m.Position)
	}
	if m.FieldType != nil {
		c.oneOf(at+".field_type", *m.FieldType, wireTypes...)
	}
	if m.Operation != nil {
		c.oneOf(at+".operation", *m.Operation, "merge", "overwrite")
	}
	if m.To == "" {
		c.bad(at+".to", "is required: the name of a destination field")
		return
	}
	// The rest is about the field, which is unknown.
	if c.Object == nil {
		c.checkLookup(at, m, nil)
		return
	}
	// From here on by the kind of target: a field, a part of one, or one to be
	// made.
	field, known := c.target(m.To)
	if m.GenerateField && !c.Object.AllowCustomFields {
		c.bad(at+".generate_field", "the object %q does not create fields (allow_custom_fields): map an existing field and leave it out", c.Object.FullName)
		return
	}
	if whole := closed(c.Object, c.DestinationType, m.To); whole != nil {
		c.bad(at+".to", "the field %q is %s and holds no object, so %q names nothing within it: map the field itself", whole.FullName, fieldTypeName(whole), foreign.Clip(m.To, 80))
		return
	}
	if !known && !c.mayCreate(m) {
		c.unknownField(at+".to", m.To)
		return
	}
	if field == nil {
		c.checkNewField(at, m, known)
		return
	}
	c.checkWritable(at, m, field)
	c.checkLookup(at, m, field)
	c.checkArrayOperation(at, m, field.Array, field.Operations)
	if m.PreserveValues && !field.PreserveValuesSupported {
		c.bad(at+".preserve_values", "the field %q does not support it (preserve_values_supported): set it to false", m.To)
	}
	// Looked-up values are compared with another field, not written.
	if why := neverFits(kind, field); why != "" && text(m.LookupObject) == "" {
		c.bad(at+".from", "%s can never become %s in the field %q: map another column, or convert it with a liquid_template",
			why, fieldTypeName(field), m.To)
	}
	c.checkConstantFits(at, m, field)
}

// target finds the field that a name writes to. Nested names use dots (spec
// 2.7): either the whole name is a field, or its first segment is one that holds
// an object; known without a field means the latter, whose inner parts are not
// describes.
func (c *checker) target(to string) (field *api.DestinationField, known bool) {
	if field = c.Object.Field(to); field != nil {
		return field, true
	}
	if holder(c.Object, c.DestinationType, to) != nil {
		return nil, true
	}
	return nil, c.config.Operation == api.OperationAppend && to == AppendKey
}

// outer is the field whose part a nested name would be; nil for a field of that
// whole name. Custom destinations know no objects: there a name with dots
// is one that list_fields declares, or nothing.
func outer(o *api.DestinationObject, destinationType, to string) *api.DestinationField {
	first, _, nested := strings.Cut(to, ".")
	if !nested || emptySegment(to) || destinationType == api.TypeCustomAPI || o.Field(to) != nil {
		return nil
	}
	return o.Field(first)
}

// holder is the field whose object holds a nested name: an object travels as the
// text of its field.
func holder(o *api.DestinationObject, destinationType, to string) *api.DestinationField {
	if f := outer(o, destinationType, to); f != nil && holdsObject(f) {
		return f
	}
	return nil
}

// closed is the field that a nested name leads into and that can hold no object.
func closed(o *api.DestinationObject, destinationType, to string) *api.DestinationField {
	if f := outer(o, destinationType, to); f != nil && !holdsObject(f) {
		return f
	}
	return nil
}

func holdsObject(f *api.DestinationField) bool {
	return !f.Array && (f.Type == api.TypeString || f.Type == "")
}

// emptySegment finds two dots side by side, and dots at the ends.
func emptySegment(name string) bool { return slices.Contains(strings.Split(name, "."), "") }

// mayCreate reports whether a mapping may name a field that does not exist yet.
func (c *checker) mayCreate(m *api.Mapping) bool {
	return m.GenerateField || c.Object.AllowCustomFields && !emptySegment(m.To)
}

// unknownField reports the problem of a name, and suggests one.
func (c *checker) unknownField(field, to string) {
	if emptySegment(to) {
		c.bad(field, "%q has an empty part: nested names are parts with single dots between them", foreign.Clip(to, 80))
		return
	}
	if first, _, nested := strings.Cut(to, "."); nested && c.Object.Field(first) != nil {
		c.bad(field, "the object %q declares no field %q, and custom destinations know no objects within a field: map %q, or declare the whole name in list_fields",
			c.Object.FullName, foreign.Clip(to, 80), foreign.Clip(first, 80))
		return
	}
	c.bad(field, "the object %q has no field %q%s", c.Object.FullName, foreign.Clip(to, 80), didYouMean(to, fieldNames(c.Object)))
}

func fieldNames(o *api.DestinationObject) []string {
	names := make([]string, len(o.Fields))
	for i := range o.Fields {
		names[i] = o.Fields[i].FullName
	}
	return names
}

// checkNewField: a field that is created on write, or the inner part of one
// that is not described.
func (c *checker) checkNewField(at string, m *api.Mapping, inside bool) {
	if emptySegment(m.To) {
		c.unknownField(at+".to", m.To)
	}
	c.checkLookup(at, m, &api.DestinationField{FullName: m.To})
	if m.PreserveValues {
		c.bad(at+".preserve_values", "the field %q does not support it (preserve_values_supported): set it to false", foreign.Clip(m.To, 80))
	}
	if !inside {
		c.checkArrayOperation(at, m, m.ArrayField, []string{"merge", "overwrite"})
	}
	// nil: the object does not say which types it can make, so any may do.
	types := c.Object.SupportedCustomFieldTypes
	if m.FieldType == nil || types == nil || len(*types) == 0 || inside {
		return
	}
	wanted := api.CustomFieldType{Type: *m.FieldType, Array: m.ArrayField}
	if slices.Contains(wireTypes, *m.FieldType) && !slices.Contains(*types, wanted) {
		c.bad(at+".field_type", "the object %q cannot create fields of type %s%s (supported_custom_field_types)",
			c.Object.FullName, *m.FieldType, map[bool]string{true: " array"}[m.ArrayField])
	}
}

// checkWritable: createable and updateable against the operation (spec 2.5).
// The identifier finds a record and need not be written.
func (c *checker) checkWritable(at string, m *api.Mapping, field *api.DestinationField) {
	if m.IsPrimaryIdentifier {
		return
	}
	switch c.config.Operation {
	case api.OperationInsert, api.OperationAppend:
		if !field.Createable {
			c.bad(at+".to", "the field %q cannot be set when a record is created (createable): leave it out of this %s", m.To, c.config.Operation)
		}
	case api.OperationUpdate:
		if !field.Updateable {
			c.bad(at+".to", "the field %q cannot be changed (updateable): leave it out of this update", m.To)
		}
	default:
		if !field.Createable && !field.Updateable {
			c.bad(at+".to", "the field %q can be neither created nor changed: leave it out", m.To)
		}
	}
}

// checkArrayOperation: merge and overwrite are for arrays that offer them.
func (c *checker) checkArrayOperation(at string, m *api.Mapping, array bool, offered []string) {
	if m.Operation == nil || *m.Operation != "merge" && *m.Operation != "overwrite" {
		return
	}
	switch {
	case !array:
		c.bad(at+".operation", "is only for arrays, and the field %q is none: leave it out", foreign.Clip(m.To, 80))
	case !slices.Contains(offered, *m.Operation):
		c.bad(at+".operation", "the field %q does not offer %s: it offers %s", m.To, *m.Operation, listed(offered))
	}
}

// checkLookup: a reference is found by a field of another object (spec 2.5,
// 2.7). field is nil when the object is not known.
func (c *checker) checkLookup(at string, m *api.Mapping, field *api.DestinationField) {
	object, by := text(m.LookupObject), text(m.LookupField)
	switch {
	case object == "" && by == "":
		return
	case by == "":
		c.bad(at+".lookup_field", "is required beside lookup_object: the field of %q that holds the value", foreign.Clip(object, 80))
		return
	case object == "":
		c.bad(at+".lookup_object", "is required beside lookup_field: the object that %q is looked up in", foreign.Clip(by, 80))
		return
	}
	if field != nil && field.LookupObject != object {
		if field.LookupObject == "" {
			c.bad(at+".lookup_object", "the field %q is not a reference to another object: leave lookup_object and lookup_field out", foreign.Clip(m.To, 80))
		} else {
			c.bad(at+".lookup_object", "the field %q refers to %q, not to %q", foreign.Clip(m.To, 80), field.LookupObject, foreign.Clip(object, 80))
		}
		return
	}
	// The other object cannot be fetched; whether its field exists shows when
	// records are sent.
	if c.Lookups == nil {
		return
	}
	other := c.Lookups(object)
	if other == nil {
		return
	}
	var keys []string
	for i := range other.Fields {
		if other.Fields[i].CanBeReferenceKey {
			keys = append(keys, other.Fields[i].FullName)
		}
	}
	switch {
	case other.Field(by) == nil:
		c.bad(at+".lookup_field", "the object %q has no field %q%s", other.FullName, foreign.Clip(by, 80), didYouMean(by, keys))
	case !slices.Contains(keys, by):
		c.bad(at+".lookup_field", "records of %q cannot be looked up by %q (can_be_reference_key): use %s", other.FullName, by, listed(keys))
	}
}

// checkTwice: no field is written by two mappings, nor a field and a part of
// it.
func (c *checker) checkTwice() {
	fold := func(to string) string { return to }
	if c.Object != nil && !c.Object.AllowCaseSensitiveFields && c.Object.AllowCustomFields {
		// Names of fields made on write differ by more than their case here,
		// but existing fields keep their own names.
		fold = func(to string) string {
			if c.Object.Field(to) != nil {
				return to
			}
			return strings.ToLower(to)
		}
	}
	first := map[string]int{}
	for i := range c.config.Mappings {
		to := c.config.Mappings[i].To
		if to == "" {
			continue
		}
		if before, twice := first[fold(to)]; twice {
			c.bad(fmt.Sprintf("mappings[%d].to", i), "the field %q is already written by mappings[%d]: keep one of them", foreign.Clip(to, 80), before)
			continue
		}
		first[fold(to)] = i
	}
	for i := range c.config.Mappings {
		to := c.config.Mappings[i].To
		// From the inside out: a.b.c is a part of a.b and of a.
		for end := strings.LastIndexByte(to, '.'); end > 0; end = strings.LastIndexByte(to[:end], '.') {
			outer, both := first[fold(to[:end])]
			if both && (c.Object == nil || c.Object.Field(to) == nil) {
				c.bad(fmt.Sprintf("mappings[%d].to", i), "%q is a part of the field that mappings[%d] writes as a whole: keep one of them", foreign.Clip(to, 80), outer)
				break
			}
		}
	}
}
