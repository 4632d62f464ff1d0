package violation

import (
	"github.com/destkit/destkit/server/testdata/violation/exchange"
)

const listsSourceTypes = "GET /source_types"

// sourcesViolations break the rules of SRC: source types (spec 2.10).
func sourcesViolations() []violation {
	fields := func(id, changes string, change func(map[string]any)) violation {
		return showsAt(id, changes, listsSourceTypes, func(t map[string]any) {
			if all, ok := t["configuration_fields"].(map[string]any); ok {
				exchange.EachObject(all["fields"], change)
			}
		})
	}
	return []violation{
		showsAt("SRC-001", "supported_sync_engines of a source type is one word", listsSourceTypes, func(t map[string]any) {
			t["supported_sync_engines"] = "basic"
		}),
		showsAt("SRC-001.2", "what a source type cannot do is null", listsSourceTypes, func(t map[string]any) {
			if t["supports_warehouse_writeback"] == false {
				t["supports_warehouse_writeback"] = nil
			}
		}),
		showsAt("SRC-001.3", "configuration_fields of a source type is the list itself", listsSourceTypes, func(t map[string]any) {
			if all, ok := t["configuration_fields"].(map[string]any); ok {
				t["configuration_fields"] = all["fields"]
			}
		}),
		fields("SRC-002", "is_password_type_field of a configuration field is left out where it is false", func(f map[string]any) {
			if f["is_password_type_field"] == false {
				delete(f, "is_password_type_field")
			}
		}),
		fields("SRC-002.2", "possible_values of a configuration field is null where there are none", func(f map[string]any) {
			if list, ok := f["possible_values"].([]any); ok && len(list) == 0 {
				f["possible_values"] = nil
			}
		}),
		fields("SRC-003", "the rules of a configuration field are a list", func(f map[string]any) { f["rules"] = []any{f["rules"]} }),
		fields("SRC-004", "placholder of a configuration field is spelt placeholder", func(f map[string]any) {
			f["placeholder"] = f["placholder"]
			delete(f, "placholder")
		}),
		fields("SRC-005", "the pattern of a configuration field is cut", func(f map[string]any) {
			if s, ok := f["matches"].(string); ok && s != "" {
				f["matches"] = "(" + s
			}
		}),
	}
}
