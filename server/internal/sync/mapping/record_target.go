package mapping

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/rawjson"
	"github.com/destkit/destkit/server/api"
)

// target finds the field that a mapping writes, and its place in the
// record (spec 2.7: nested fields use dots).
func (k *compiler) target(m placed, one *member) {
	to := m.To
	if m.IsPrimaryIdentifier && to == AppendKey && k.object.Field(to) == nil && k.env.HiddenIdentifier != "" {
		one.path = []string{k.env.HiddenIdentifier}
		one.top = k.hidden()
		return
	}
	one.path = []string{to}
	field := k.object.Field(to)
	if whole := closed(k.object, k.env.DestinationType, to); whole != nil {
		k.bad(m.at+".to", "the field %q is %s and holds no object, so %q names nothing within it", whole.FullName, fieldTypeName(whole), foreign.Clip(to, 80))
		return
	}
	// The whole name is a field, whatever dots it has, and always on a custom
	// destination: records are keyed by the names as they are.
	if field == nil && k.env.DestinationType != api.TypeCustomAPI && strings.Contains(to, ".") && !emptySegment(to) {
		one.path = strings.Split(to, ".")
		field = holder(k.object, k.env.DestinationType, to)
	}
	if field == nil && !m.GenerateField && !k.object.AllowCustomFields && to != AppendKey {
		k.bad(m.at+".to", "the object %q has no field %q%s", k.object.FullName, foreign.Clip(to, 80), didYouMean(to, fieldNames(k.object)))
		return
	}
	if one.top.New = field == nil; !one.top.New {
		one.top.DestinationField = *field
	} else {
		one.top.DestinationField = api.DestinationField{
			Label: one.path[0], FullName: one.path[0], Createable: true, Updateable: true, Operations: []string{"overwrite"},
		}
	}
	one.top.ActiveIdentifier = m.IsPrimaryIdentifier
	one.top.PreserveValues = m.PreserveValues
	one.top.Merge = text(m.Operation) == "merge"
	one.top.LookupObject, one.top.LookupField = text(m.LookupObject), text(m.LookupField)
}

// hidden is the identifier that a destination keeps to itself.
func (k *compiler) hidden() Field {
	name := k.env.HiddenIdentifier
	return Field{
		DestinationField: api.DestinationField{
			Label: name, FullName: name, Createable: true, Updateable: true, Operations: []string{"overwrite"},
			RequiredForMapping: true, CanBeInsertKey: true, CanBeUpsertKey: true, CanBeUpdateKey: true, Type: api.TypeString,
		},
		ActiveIdentifier: true, Hidden: true,
	}
}

// fit decides the type of a value: that of its field, or of the mapping where
// the field does not exist yet, or of the column.
func (k *compiler) fit(m placed, one *member, kind api.Kind) {
	s, top := &one.step, &one.top
	nested := len(one.path) > 1
	typ, array := top.Type, top.Array
	switch {
	case top.LookupObject != "":
		typ, array = "", false // the value that the destination looks for
	case nested || typ == "":
		typ, array = innerType(m, kind, nested)
	}
	if top.New || top.Type == "" {
		if nested { // the object travels as text where fields know no objects
			top.Type, top.Array = api.TypeString, false
		} else {
			typ, array = k.creatable(typ, array)
			top.Type, top.Array = typ, array
		}
		if m.IsPrimaryIdentifier {
			top.CanBeInsertKey, top.CanBeUpsertKey, top.CanBeUpdateKey = true, true, true
		}
	}
	s.wire, s.array = wire(max(slices.Index(wireNames[:], typ), 0)), array
	s.exact = kind == api.KindFloat
	if s.kind != stepLiteral {
		one.sorts = s.kind == stepColumn && !array && (kind == api.KindString && s.wire == wireString ||
			kind == api.KindInteger && (s.wire == wireInteger || s.wire == wireString))
		return
	}
	// A constant is cast once: all records would fail, or none.
	value, err := appendArray(nil, s.literal, s.wire)
	if !array {
		value, err = appendScalar(nil, s.literal, s.wire, false)
	}
	if err != nil {
		k.bad(m.at+".from.data", "does not fit the field %q: %v", m.To, err)
	}
	s.literal = value
}

// innerType is the type of a value whose field is not described: "" is
// unchanged, within objects.
func innerType(m placed, kind api.Kind, nested bool) (string, bool) {
	if m.FieldType != nil && !m.FollowSourceType {
		return *m.FieldType, m.ArrayField
	}
	switch kind {
	case api.KindBoolean, api.KindInteger, api.KindFloat, api.KindDecimal, api.KindDate, api.KindDateTime:
		return string(kind), m.ArrayField
	case api.KindArray:
		if nested {
			return "", false
		}
		return api.TypeString, true
	case api.KindObject, api.KindAny, "":
		if nested {
			return "", false
		}
	}
	return api.TypeString, m.ArrayField
}

// creatable is the type of a new field: as wanted where the object can create
// it, else text.
func (k *compiler) creatable(typ string, array bool) (string, bool) {
	types := k.object.SupportedCustomFieldTypes
	wanted := api.CustomFieldType{Type: typ, Array: array}
	if types == nil || len(*types) == 0 || slices.Contains(*types, wanted) {
		return typ, array
	}
	return api.TypeString, false
}

// generateKey adds the identifier of an object that needs none to be mapped.
func (k *compiler) generateKey() {
	// Its step is not one of the list: the value is a hash of all that follows.
	marked := slices.ContainsFunc(k.config.Mappings, func(m api.Mapping) bool { return m.IsPrimaryIdentifier })
	if marked || k.env.HiddenIdentifier == "" {
		return
	}
	k.plan.generated, k.plan.identifier = true, k.env.HiddenIdentifier
	k.plan.fields = append(k.plan.fields, k.hidden())
}

// write adds the members that share a path to the given depth, from i on, and
// gives the place after them.
func (k *compiler) write(members []*member, i, depth int) int {
	one, p := members[i], k.plan
	if depth == 0 {
		k.addField(one)
	}
	lead := append(rawjson.AppendString(nil, one.path[depth]), ':')
	if depth == len(one.path)-1 {
		s := one.step
		s.lead = lead
		if one.primary {
			p.keyStep, p.identifier = len(p.steps), one.path[0]
			if one.sorts {
				p.keyColumn = one.source
			}
		}
		if one.change {
			p.volatile = append(append([]byte{}, lead...), s.literal...)
		}
		p.steps = append(p.steps, s)
		return i + 1
	}
	p.steps = append(p.steps, planStep{kind: stepOpen, lead: lead, name: one.step.name})
	same := strings.Join(one.path[:depth+1], "\x00") + "\x00"
	for i < len(members) && strings.HasPrefix(strings.Join(members[i].path, "\x00"), same) {
		i = k.write(members, i, depth+1)
	}
	end := planStep{kind: stepClose, name: one.step.name}
	if depth > 0 {
		end.lead = lead
	} else {
		end.asText = k.env.DestinationType != api.TypeLocalFiles
	}
	p.steps = append(p.steps, end)
	return i
}

// addField adds the field of a top-level member.
func (k *compiler) addField(one *member) {
	field := one.top
	field.FullName = one.path[0]
	if len(one.path) > 1 {
		field.ActiveIdentifier, field.Merge, field.LookupObject, field.LookupField = false, false, "", ""
	}
	k.plan.fields = append(k.plan.fields, field)
}

// finish makes the fingerprint out of all that decides about the records.
func (k *compiler) finish(members []*member) {
	h := sha256.New()
	// The operation and the run stay out: the same records come of both.
	fmt.Fprintf(h, "%s %v %q\n", k.env.DestinationType, k.plan.generated, k.plan.identifier)
	for _, one := range members {
		s := &one.step
		fmt.Fprintf(h, "%s %d %v %v %v %v %v %v %q\n", one.about, s.wire, s.array, s.exact, s.skipNull, one.primary,
			one.top.PreserveValues, one.top.Merge, one.top.LookupObject)
	}
	copy(k.plan.fingerprint[:], h.Sum(nil))
}
