package violation

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

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
	const shared = "applications show their objects in the same way"
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
		}).also("DOB-019", "the keys of the service are gone").also("DOB-020", shared),
		showsObjects("DOB-001.3", "supports_field_ordering of an object is left out where it is false", func(o map[string]any) {
			if o["supports_field_ordering"] == false {
				delete(o, "supports_field_ordering")
			}
		}).also("DOB-020", shared),
		showsFields("DOB-002", "operations of a field is one word", func(f map[string]any) { f["operations"] = "overwrite" }).also("DOB-020", shared),
		showsFields("DOB-002.2", "can_be_insert_key of a field is 0 or 1", func(f map[string]any) {
			f["can_be_insert_key"] = map[any]json.Number{true: "1"}[f["can_be_insert_key"]]
			if f["can_be_insert_key"] == json.Number("") {
				f["can_be_insert_key"] = json.Number("0")
			}
		}).also("DOB-012", "1 is not true"),
	}
}

// objectLists change which objects, fields and operations are shown (spec 2.3).
func objectLists() []violation {
	operations := func(id, changes string, change func([]any) []any) violation {
		return showsObjects(id, changes, func(o map[string]any) {
			if list, ok := o["supported_operations"].([]any); ok {
				o["supported_operations"] = change(list)
			}
		})
	}
	return []violation{
		answersAt("DOB-003", "the list of objects ends after two", listsObjects, func(a *exchange.Answer) {
			a.Edit(func(body map[string]any) {
				if list, ok := body["data"].([]any); ok && len(list) > 2 {
					body["data"] = list[:2]
				}
			})
		}),
		showsObjects("DOB-003.2", "labels of objects are in lower case", func(o map[string]any) {
			if label, ok := o["label"].(string); ok {
				o["label"] = strings.ToLower(label)
			}
		}),
		breaks("DOB-003.3", "of objects whose names differ in case only the first is kept", seams{
			carry: func(o *exchange.Call, next exchange.Next) (*http.Response, error) {
				resp, err := next(o)
				if o.Method != rpc.MethodListObjects {
					return resp, err
				}
				return exchange.Rewrite(resp, err, foldObjects)
			},
		}),
		breaks("DOB-008", "every object has all operations, whatever supported_operations answers", seams{
			carry: func(o *exchange.Call, next exchange.Next) (*http.Response, error) {
				resp, err := next(o)
				if o.Method != rpc.MethodSupportedOperations {
					return resp, err
				}
				return exchange.Rewrite(resp, err, func(body map[string]any) {
					if result, ok := body["result"].(map[string]any); ok {
						result["operations"] = []any{rpc.OperationUpsert, rpc.OperationInsert, rpc.OperationUpdate, rpc.OperationMirror}
					}
				})
			},
		}),
		operations("DOB-008.2", "mirror is not shown among the operations of an object", func(list []any) []any {
			return slices.DeleteFunc(list, func(one any) bool { return one == rpc.OperationMirror })
		}),
		showsAt("DOB-016", "inside of a destination objects show only those fields that may be keys", fetchesDestination, objectsIn(func(o map[string]any) {
			if fields, ok := o["fields"].([]any); ok {
				o["fields"] = slices.DeleteFunc(fields, func(one any) bool {
					f, _ := one.(map[string]any)
					return f["can_be_upsert_key"] != true
				})
			}
		})).also("DOB-009", "the fields are looked for inside of the destination too"),
		showsAt("DOB-016.2", "a fetched object does not allow case-sensitive fields", fetchesObject, func(o map[string]any) {
			o["allow_case_sensitive_fields"] = false
		}),
	}
}

// foldObjects drops objects of a name that came before in other letters.
func foldObjects(body map[string]any) {
	result, _ := body["result"].(map[string]any)
	objects, _ := result["objects"].([]any)
	seen := map[string]bool{}
	for i := 0; i < len(objects); {
		o, _ := objects[i].(map[string]any)
		name, _ := o["object_api_name"].(string)
		if name = strings.ToLower(name); seen[name] {
			objects = slices.Delete(objects, i, i+1)
			continue
		}
		seen[name] = true
		i++
	}
	if result != nil {
		result["objects"] = objects
	}
}

// objectFields change what fields are said to be (spec 2.5).
func objectFields() []violation {
	return []violation{
		showsFields("DOB-009", "createable and updateable of a field are swapped", func(f map[string]any) {
			f["createable"], f["updateable"] = f["updateable"], f["createable"]
		}),
		showsFields("DOB-009.2", "fields that are arrays have the type array", func(f map[string]any) {
			if f["array"] == true {
				f["type"] = "array"
			}
		}),
		showsFields("DOB-009.3", "date_time is shown as timestamp", func(f map[string]any) {
			if f["type"] == rpc.TypeDateTime {
				f["type"] = "timestamp"
			}
		}),
		showsObjects("DOB-009.4", "fields that cannot be updated are not shown", func(o map[string]any) {
			if fields, ok := o["fields"].([]any); ok {
				o["fields"] = slices.DeleteFunc(fields, func(one any) bool {
					f, _ := one.(map[string]any)
					return f["updateable"] == false
				})
			}
		}),
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
		showsFields("DOB-012", "only text can be a key", func(f map[string]any) {
			if f["type"] != rpc.TypeString {
				f["can_be_upsert_key"], f["can_be_update_key"], f["can_be_insert_key"] = false, false, false
			}
		}),
		showsFields("DOB-012.2", "no field can be a key of an insert", func(f map[string]any) { f["can_be_insert_key"] = false }),
		showsObjects("DOB-014", "every object allows custom fields", func(o map[string]any) { o["allow_custom_fields"] = true }),
		showsObjects("DOB-014.2", "no object allows custom fields", func(o map[string]any) { o["allow_custom_fields"] = false }),
		showsObjects("DOB-015", "every object can be the target of a sync", func(o map[string]any) { o["can_be_sync_destination"] = true }),
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
		showsFields("DOB-020", "lookup_object is an object where there is a lookup", func(f map[string]any) {
			if name, ok := f["lookup_object"].(string); ok && name != "" {
				f["lookup_object"] = map[string]any{"name": name}
			}
		}),
		showsAt("DOB-020.2", "a new destination has no account_name", makesDestination, func(d map[string]any) {
			if details, ok := d["connection_details"].(map[string]any); ok {
				delete(details, "account_name")
			}
		}),
	}
}
