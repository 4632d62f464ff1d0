package mapping

import (
	"fmt"
	"slices"
	"strings"

	"github.com/destkit/destkit/server/api"
)

// checkIdentifiers: one field matches source and destination records (spec
// 4.2), and the object reports whether it may (spec 2.5).
func (c *checker) checkIdentifiers() {
	var marked []int
	for i := range c.config.Mappings {
		if c.config.Mappings[i].IsPrimaryIdentifier {
			marked = append(marked, i)
		}
	}
	switch {
	case len(marked) == 0 && !c.needsIdentifier():
	// Nothing is mapped at all, which is the first thing to report.
	case len(marked) == 0 && len(c.config.Mappings) == 0:
		c.bad("mappings", "must have at least one mapping, the primary identifier")
	case len(marked) == 0:
		c.bad("mappings", "must have one mapping with is_primary_identifier true%s", c.possibleKeys())
	}
	for n, i := range marked {
		at := fmt.Sprintf("mappings[%d]", i)
		// The first one counts; each further one is reported at its place.
		if n > 0 {
			c.bad(at+".is_primary_identifier", "mappings[%d] is the primary identifier already: only one mapping may be", marked[0])
			continue
		}
		c.checkIdentifier(at, &c.config.Mappings[i])
	}
}

// needsIdentifier: some objects need none (spec 2.3), and an append sync with a
// high-water mark knows new records by that (spec 2.6).
func (c *checker) needsIdentifier() bool {
	// An object without a rule needs one: records could not be distinguished.
	rules := &api.PrimaryIdentifiers{Upsert: api.IdentifierRule{Required: true}, Mirror: api.IdentifierRule{Required: true}}
	if c.Object != nil && c.Object.PrimaryIdentifierMappingAttributes != nil {
		rules = c.Object.PrimaryIdentifierMappingAttributes
	}
	switch c.config.Operation {
	case api.OperationMirror:
		return rules.Mirror.Required
	case api.OperationUpsert:
		return rules.Upsert.Required
	case api.OperationAppend:
		deprecated := c.config.HighWaterMarkAttributes
		return text(c.config.HighWaterMarkAttribute) == "" && (deprecated == nil || !deprecated.UseHighWaterMark) && rules.Upsert.Required
	}
	return true
}

// keyFlag is what lets a field be the identifier of an operation.
func (c *checker) keyFlag(field *api.DestinationField) (name string, may bool) {
	switch c.config.Operation {
	case api.OperationUpdate:
		return "can_be_update_key", field.CanBeUpdateKey
	case api.OperationInsert, api.OperationAppend:
		return "can_be_insert_key", field.CanBeInsertKey
	}
	return "can_be_upsert_key", field.CanBeUpsertKey
}

// possibleKeys names the fields that may be the identifier of this operation.
func (c *checker) possibleKeys() string {
	if c.Object == nil {
		return ""
	}
	var names []string
	for i := range c.Object.Fields {
		if _, may := c.keyFlag(&c.Object.Fields[i]); may {
			names = append(names, c.Object.Fields[i].FullName)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return ": it may be " + strings.Join(names, ", ")
}

// checkIdentifier checks the one mapping that identifies records.
func (c *checker) checkIdentifier(at string, m *api.Mapping) {
	switch m.From.Type {
	case api.FromConstant, api.FromSyncMetadata, api.FromSegmentMembership:
		c.bad(at+".from.type", "the primary identifier differs from record to record: map a column or a liquid_template, not a %s", m.From.Type)
	}
	if text(m.LookupObject) != "" {
		c.bad(at+".lookup_object", "the primary identifier cannot be looked up: leave lookup_object and lookup_field out")
	}
	if m.PreserveValues {
		c.bad(at+".preserve_values", "the primary identifier is sent for every record: set it to false")
	}
	if c.Object == nil || m.To == "" || !slices.Contains(operations, c.config.Operation) {
		return
	}
	// The service keeps this key itself; the object need not know
	// it.
	if c.config.Operation == api.OperationAppend && m.To == AppendKey {
		return
	}
	field := c.Object.Field(m.To)
	if field == nil {
		if _, known := c.target(m.To); known {
			c.bad(at+".to", "a part of a field cannot be the primary identifier%s", c.possibleKeys())
		}
		return
	}
	if flag, may := c.keyFlag(field); !may {
		c.bad(at+".to", "the field %q cannot be the primary identifier of this %s (%s)%s", m.To, c.config.Operation, flag, c.possibleKeys())
	}
}

// checkRequired: a sync cannot exist without its required fields. A
// record that is updated has them already.
func (c *checker) checkRequired() {
	if c.Object == nil || c.UpdatesPart && c.config.Operation == api.OperationUpdate {
		return
	}
	mapped := map[string]bool{}
	for i := range c.config.Mappings {
		to := c.config.Mappings[i].To
		first, _, _ := strings.Cut(to, ".")
		// A part of a field writes the field.
		mapped[to], mapped[first] = true, true
	}
	for i := range c.Object.Fields {
		f := &c.Object.Fields[i]
		if f.RequiredForMapping && !mapped[f.FullName] && !c.fillsItself(f.FullName) {
			c.bad("mappings", "the field %q is required (required_for_mapping): add a mapping to it", f.FullName)
		}
	}
}

// fillsItself: with sync_all_properties each column makes its own mapping.
func (c *checker) fillsItself(field string) bool {
	if text(c.config.FieldBehavior) != api.BehaviorAllProperties {
		return false
	}
	return !c.ColumnsKnown || slices.ContainsFunc(c.Columns, func(column api.Column) bool {
		return !column.Unmapped && NormalizeName(column.Name, text(c.config.FieldNormalization)) == field
	})
}
