package violation

import (
	"net/http"
	"sync"

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
	listed := func(id, changes string, change func([]any) []any) violation {
		return answersAt(id, changes, listsSourceTypes, func(a *exchange.Answer) {
			a.Edit(func(body map[string]any) {
				if list, ok := body["data"].([]any); ok {
					body["data"] = change(list)
				}
			})
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
		answersAt("SRC-006", "source types are listed with the status ok", listsSourceTypes, func(a *exchange.Answer) {
			a.Edit(func(body map[string]any) { body["status"] = "ok" })
		}),
		listed("SRC-007", "source types are listed twice", func(list []any) []any { return append(list, list...) }),
		listed("SRC-007.2", "only the first source type is listed", func(list []any) []any { return list[:min(1, len(list))] }),
		breaks("SRC-008", "a source without a password is made with an empty one", seams{ask: func(q *exchange.Request) {
			if q.Is("POST /sources") {
				editSource(q, func(_, credentials map[string]any) {
					if credentials["account"] != nil && credentials["password"] == nil {
						credentials["password"] = "none"
					}
				})
			}
		}}),
		{Violation{ID: "SRC-009", Changes: "a fetched source shows its password"}, showsPassword},
	}
}

// editSource changes the connection of a source that is made.
func editSource(q *exchange.Request, change func(connection, credentials map[string]any)) {
	q.Edit(func(body map[string]any) {
		connection, _ := body["connection"].(map[string]any)
		if credentials, ok := connection["credentials"].(map[string]any); ok {
			change(connection, credentials)
		}
	})
}

// showsPassword remembers the passwords of sources by their names.
func showsPassword(*Service) seams {
	var lock sync.Mutex
	passwords := map[any]any{}
	return seams{
		ask: func(q *exchange.Request) {
			if q.HTTP.Method == http.MethodPost && q.Is("POST /sources") {
				editSource(q, func(connection, credentials map[string]any) {
					lock.Lock()
					defer lock.Unlock()
					if name, ok := connection["name"].(string); ok {
						passwords[name] = credentials["password"]
					}
				})
			}
		},
		tell: func(a *exchange.Answer) {
			if !a.Is("GET /sources/*") {
				return
			}
			a.Data(func(source map[string]any) {
				lock.Lock()
				defer lock.Unlock()
				details, _ := source["connection_details"].(map[string]any)
				if name, ok := source["name"].(string); ok && details != nil {
					details["password"] = passwords[name]
				}
			})
		},
	}
}
