package mapping

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/destkit/destkit/internal/rawjson"
	"github.com/destkit/destkit/server/api"
)

// Keys of advanced_configuration that the service itself understands, besides those of the
// destination object. DeleteRecords selects what a delete record carries on a custom
// destination, "identifier" (default) or "full"; AllowEmptySource lets a mirror remove
// everything when its source is empty.
const (
	DeleteRecords    = "delete_records"
	AllowEmptySource = "allow_empty_source"
)

// DeleteWhole is the value of DeleteRecords for delete records that carry the
// row that was sent last.
const DeleteWhole = "full"

// Define adds the service's own keys to the definitions of the objects of a
// destination, where they can have an effect: both are about mirrors. A key of that
// name that the object has already is the object's.
func Define(destinationType string, objects []*api.DestinationObject) {
	own := []api.AdvancedField{{
		Name: AllowEmptySource, Type: "boolean", Label: "Mirror an empty source", InputType: "checkbox",
		Placeholder: "Whether a mirror may remove every record when its source has none", Default: api.Raw(false),
	}}
	if destinationType == api.TypeCustomAPI {
		own = append(own, api.AdvancedField{
			Name: DeleteRecords, Type: "string", Label: "Content of delete records", InputType: "dropdown",
			Placeholder: "What a mirror sends of a record that is gone", Default: api.Raw("identifier"), SupportedValues: []string{"identifier", DeleteWhole},
		})
	}
	for _, o := range objects {
		if !slices.Contains(o.SupportedOperations, api.OperationMirror) {
			continue
		}
		for _, f := range own {
			if _, taken := o.ConfigurableFieldDefinitions[f.Name]; taken {
				continue
			}
			f.SortOrder = len(o.AdvancedConfigurationFields) + 1
			o.AdvancedConfigurationFields = append(o.AdvancedConfigurationFields, f)
			if o.ConfigurableFieldDefinitions == nil {
				o.ConfigurableFieldDefinitions = map[string]string{}
			}
			o.ConfigurableFieldDefinitions[f.Name] = f.Type
		}
	}
}

// checkAdvanced: the allowed keys are those of the object (spec 2.6, 2.4). null
// means a key that is left out.
func (c *checker) checkAdvanced() {
	const at = "advanced_configuration"
	known := map[string]api.AdvancedField{}
	if c.Object != nil {
		// The short list first: the long one has more about the same keys
		// and wins.
		for name, kind := range c.Object.ConfigurableFieldDefinitions {
			known[name] = api.AdvancedField{Name: name, Type: kind}
		}
		for _, f := range c.Object.AdvancedConfigurationFields {
			known[f.Name] = f
		}
	}
	names := slices.Sorted(maps.Keys(known))
	given := c.config.AdvancedConfiguration
	for _, key := range slices.Sorted(maps.Keys(given)) {
		field, ok := known[key]
		switch {
		case ok:
			c.checkAdvancedValue(at+"."+key, field, given[key])
		// The service's own key where it has no meaning: an explanation
		// is better than "unknown".
		case key == DeleteRecords || key == AllowEmptySource:
			if c.Object != nil {
				c.bad(at+"."+key, "does nothing on the object %q: its advanced_configuration_field_definitions do not list it", c.Object.FullName)
			}
		case c.Object != nil:
			c.bad(at+"."+key, "unknown key%s", didYouMean(key, names))
		}
	}
	for _, name := range names {
		if api.Value(known[name].Required) && rawjson.IsNull(given[name]) && rawjson.IsNull(known[name].Default) {
			c.bad(at+"."+name, "is required by the object %q", c.Object.FullName)
		}
	}
}

// checkAdvancedValue: the type and the choices of one key. Values are not
// repeated in messages, since a destination may keep anything in them.
func (c *checker) checkAdvancedValue(field string, f api.AdvancedField, value json.RawMessage) {
	if rawjson.IsNull(value) {
		return
	}
	var s string
	switch f.Type {
	case "integer":
		var n json.Number
		// json.Number takes a quoted number too, which the destination would
		// not.
		if json.Unmarshal(value, &n) != nil || bytes.TrimSpace(value)[0] == '"' {
			c.bad(field, "must be an integer, without quotes")
			return
		}
		if _, err := strconv.ParseInt(n.String(), 10, 64); err != nil {
			c.bad(field, "must be an integer of at most 64 bits")
			return
		}
		s = n.String()
	case "boolean":
		var b bool
		if json.Unmarshal(value, &b) != nil {
			c.bad(field, "must be true or false, without quotes")
			return
		}
		s = strconv.FormatBool(b)
	default:
		if json.Unmarshal(value, &s) != nil {
			c.bad(field, "must be a string")
			return
		}
		if s == "" && api.Value(f.Required) {
			c.bad(field, "is required and must not be empty")
			return
		}
	}
	if len(f.SupportedValues) > 0 && !slices.Contains(f.SupportedValues, s) {
		c.bad(field, "must be one of %s", listed(f.SupportedValues))
	}
}
