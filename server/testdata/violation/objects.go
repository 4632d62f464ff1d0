package violation

import (
	"encoding/json"
	"slices"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/server/internal/sync/mapping"
	"github.com/destkit/destkit/server/testdata/violation/exchange"
)

// Calls that show objects as violations name them.
const (
	listsObjects  = "GET /destinations/*/objects"
	fetchesObject = "GET /destinations/*/objects/*"
)

// objectsIn changes every object of a destination.
func objectsIn(change func(map[string]any)) func(map[string]any) {
	return func(d map[string]any) { exchange.EachObject(d["objects"], change) }
}

// showsObjects changes objects wherever they are shown, in one way, so that the
// views agree.
func showsObjects(id, changes string, change func(map[string]any)) violation {
	return breaks(id, changes, seams{tell: func(a *exchange.Answer) {
		switch {
		case a.Is(listsObjects) || a.Is(fetchesObject):
			a.Data(change)
		case a.Is(makesDestination) || a.Is(fetchesDestination) || a.Is(listsDestinations) || a.Is(savesDestination):
			a.Data(objectsIn(change))
		}
	}})
}

// showsFields does so with their fields.
func showsFields(id, changes string, change func(map[string]any)) violation {
	return showsObjects(id, changes, func(o map[string]any) { exchange.EachObject(o["fields"], change) })
}

// showsAdvanced does so with the definitions of advanced configuration.
func showsAdvanced(id, changes string, change func(map[string]any)) violation {
	return showsObjects(id, changes, func(o map[string]any) { exchange.EachObject(o["advanced_configuration_field_definitions"], change) })
}

// objectsViolations break the rules of DOB: destination objects and fields (spec 2.3 to 2.5).
func objectsViolations() []violation {
	return slices.Concat(objectShapes(), objectLists(), objectNames(), objectFields(), objectExtras())
}

// objectShapes change types of members (spec 2.3, 2.5).
func objectShapes() []violation {
	return []violation{
		showsObjects("DOB-001", "allow_case_sensitive_fields of an object is a word", func(o map[string]any) {
			o["allow_case_sensitive_fields"] = "yes"
		}),
		showsObjects("DOB-001.2", "configurable_field_definitions without keys of the application is an empty list", func(o map[string]any) {
			m, _ := o["configurable_field_definitions"].(map[string]any)
			for key := range m {
				if key != mapping.AllowEmptySource && key != mapping.DeleteRecords {
					return
				}
			}
			o["configurable_field_definitions"] = []any{}
		}).also("DOB-019", "the keys of the service are gone"),
		showsObjects("DOB-001.3", "supports_field_ordering of an object is left out where it is false", func(o map[string]any) {
			if o["supports_field_ordering"] == false {
				delete(o, "supports_field_ordering")
			}
		}),
		showsFields("DOB-002", "operations of a field is one word", func(f map[string]any) { f["operations"] = "overwrite" }),
		showsFields("DOB-002.2", "can_be_insert_key of a field is 0 or 1", func(f map[string]any) {
			f["can_be_insert_key"] = map[any]json.Number{true: "1"}[f["can_be_insert_key"]]
			if f["can_be_insert_key"] == json.Number("") {
				f["can_be_insert_key"] = json.Number("0")
			}
		}).also("DOB-011", "0 is not false"),
	}
}

// objectLists change which objects, fields and operations are shown (spec 2.3).
func objectLists() []violation {
	return []violation{
		showsAt("DOB-016", "inside of a destination objects show only those fields that may be keys", fetchesDestination, objectsIn(func(o map[string]any) {
			if fields, ok := o["fields"].([]any); ok {
				o["fields"] = slices.DeleteFunc(fields, func(one any) bool {
					f, _ := one.(map[string]any)
					return f["can_be_upsert_key"] != true
				})
			}
		})),
		showsAt("DOB-016.2", "a fetched object does not allow case-sensitive fields", fetchesObject, func(o map[string]any) {
			o["allow_case_sensitive_fields"] = false
		}),
	}
}

// objectFields change what fields are said to be (spec 2.5).
func objectFields() []violation {
	return []violation{
		showsFields("DOB-010", "only keys are required for mapping", func(f map[string]any) {
			f["required_for_mapping"] = f["can_be_upsert_key"]
		}),
		showsFields("DOB-011", "every required field can be a key", func(f map[string]any) {
			if f["required_for_mapping"] == true {
				f["can_be_upsert_key"] = true
			}
		}),
		showsFields("DOB-011.2", "every integer can be a key of an update", func(f map[string]any) {
			if f["type"] == rpc.TypeInteger {
				f["can_be_update_key"] = true
			}
		}),
		showsObjects("DOB-014", "every object allows custom fields", func(o map[string]any) { o["allow_custom_fields"] = true }),
		showsObjects("DOB-014.2", "no object allows custom fields", func(o map[string]any) { o["allow_custom_fields"] = false }),
	}
}

// objectExtras break what updates show and what applications have (spec 2.3, 2.4).
func objectExtras() []violation {
	saved := func(id, changes string, change func(map[string]any)) violation {
		return showsAt(id, changes, savesDestination, objectsIn(change))
	}
	return []violation{
		saved("DOB-013", "the answer to a change leaves is_audience_destination out", func(o map[string]any) { delete(o, "is_audience_destination") }),
		saved("DOB-013.2", "the answer to a change says how a mirror identifies records only where there is a mirror", func(o map[string]any) {
			operations, _ := o["supported_operations"].([]any)
			if rules, ok := o["primary_identifier_mapping_attributes"].(map[string]any); ok && !slices.Contains(operations, any(rpc.OperationMirror)) {
				delete(rules, "mirror")
			}
		}),
		saved("DOB-013.3", "the answer to a change names custom field types by words alone", func(o map[string]any) {
			if types, ok := o["supported_custom_field_types"].([]any); ok {
				for i, one := range types {
					if t, ok := one.(map[string]any); ok {
						types[i] = t["type"]
					}
				}
			}
		}),
		showsAdvanced("DOB-017", "sort_order of an advanced configuration field is a text", func(f map[string]any) {
			if n, ok := f["sort_order"].(json.Number); ok {
				f["sort_order"] = n.String()
			}
		}),
		showsAdvanced("DOB-017.2", "placeholder of an advanced configuration field is spelt as in source types", func(f map[string]any) {
			f["placholder"] = f["placeholder"]
			delete(f, "placeholder")
		}),
		showsAdvanced("DOB-018", "defaults of advanced configuration are texts", func(f map[string]any) {
			if n, ok := f["default"].(json.Number); ok {
				f["default"] = n.String()
			}
		}),
		showsAdvanced("DOB-018.2", "a dropdown does not say what can be chosen", func(f map[string]any) { delete(f, "supported_values") }),
		showsObjects("DOB-019", "configurable_field_definitions is always empty", func(o map[string]any) {
			o["configurable_field_definitions"] = map[string]any{}
		}),
	}
}
