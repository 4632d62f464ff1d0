package violation

import (
	"encoding/json"
	"maps"
	"net/http"
	"strings"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/liquid"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/testdata/violation/exchange"
)

// mappingsViolations break the rules of MAP: what goes to which field (spec 2.7).
func mappingsViolations() []violation {
	return append(mappingShownViolations(), mappingSentViolations()...)
}

// inMappings changes each mapping of a sync.
func inMappings(change func(m map[string]any)) func(map[string]any) {
	return func(sync map[string]any) {
		mappings, _ := sync["mappings"].([]any)
		for _, one := range mappings {
			if m, ok := one.(map[string]any); ok {
				change(m)
			}
		}
	}
}

// namesakes changes each mapping of a sync whose fields all have the names of
// their columns.
func namesakes(change func(m map[string]any)) func(map[string]any) {
	return func(sync map[string]any) {
		all := true
		inMappings(func(m map[string]any) { all = all && exchange.Inside(m, "from")["data"] == m["to"] })(sync)
		if all {
			inMappings(change)(sync)
		}
	}
}

// isFrom does something with the source of a mapping of one type.
func isFrom(kind string, change func(from map[string]any)) func(map[string]any) {
	return func(m map[string]any) {
		if from := exchange.Inside(m, "from"); from["type"] == kind {
			change(from)
		}
	}
}

// mappingShownViolations change what is stored, shown and refused.
func mappingShownViolations() []violation {
	return []violation{
		misshown("MAP-001", "where columns and fields share their names, is_primary_identifier is a number", readSync,
			namesakes(replaced("is_primary_identifier", true, 1))),
		misshown("MAP-001.2", "where columns and fields share their names, a mapping is from a name", readSync,
			namesakes(func(m map[string]any) { m["from"] = m["to"] })),
		misshown("MAP-001.3", "where columns and fields share their names, the field is not shown", readSync,
			namesakes(func(m map[string]any) { delete(m, "to") })),
		misshown("MAP-004", "the values of constants are text", readSync, inMappings(isFrom(api.FromConstant, func(from map[string]any) {
			exchange.Inside(from, "data")["value"] = exchange.Text(exchange.Inside(from, "data")["value"])
		}))),
		misshown("MAP-004.2", "the types of constants are not shown", readSync, inMappings(isFrom(api.FromConstant, func(from map[string]any) {
			delete(exchange.Inside(from, "data"), "basic_type")
		}))),
		misshown("MAP-008", "templates are shown as bare strings", readSync, inMappings(isFrom(api.FromLiquid, func(from map[string]any) {
			from["data"] = exchange.Inside(from, "data")["liquid_template"]
		}))),
		misread("MAP-010", "templates are not parsed before they are used", createSync, inMappings(isFrom(api.FromLiquid, func(from map[string]any) {
			text, _ := exchange.Inside(from, "data")["liquid_template"].(string)
			if _, err := liquid.Parse(text); err != nil {
				from["data"] = ""
			}
		}))),
		waved("MAP-010.2", "columns of templates are not looked for", "mappings[1].from.data", "Column being referenced"),
		misshown("MAP-011", "dots in names of fields become underscores", readSync, inMappings(func(m map[string]any) {
			m["to"] = strings.ReplaceAll(exchange.Text(m["to"]), ".", "_")
		})),
		misread("MAP-012", "the first mapping identifies records where none is marked", createSync, func(m map[string]any) { markFirst(m, false) }),
		misread("MAP-012.2", "the first of two marked mappings identifies records", createSync, func(m map[string]any) { markFirst(m, true) }),
		misread("MAP-014", "a mapping from something unknown is one from a column", createSync, inMappings(func(m map[string]any) {
			guessed("type", api.FromColumn, api.FromColumn, api.FromConstant, api.FromLiquid, api.FromSyncMetadata, "")(exchange.Inside(m, "from"))
		})),
		misread("MAP-014.2", "a mapping from nothing is one from a column", createSync, inMappings(func(m map[string]any) {
			replaced("type", "", api.FromColumn)(exchange.Inside(m, "from"))
		})),
		misshown("MAP-025", "the object of a lookup is not shown", readSync, inMappings(func(m map[string]any) { m["lookup_object"] = nil })),
		misshown("MAP-025.2", "the field of a lookup is not shown", readSync, inMappings(func(m map[string]any) { m["lookup_field"] = nil })),
		misread("MAP-019", "an update takes the primary identifier alone", changeSync, func(m map[string]any) {
			if mappings, ok := m["mappings"].([]any); ok {
				m["mappings"] = mappings[:1]
			}
		}),
	}
}

// markFirst leaves one primary identifier: the first of several, or the first
// mapping where none is marked.
func markFirst(sync map[string]any, several bool) {
	mappings, _ := sync["mappings"].([]any)
	marked := 0
	inMappings(func(m map[string]any) {
		if m["is_primary_identifier"] != true {
			return
		}
		if marked++; marked > 1 && several {
			m["is_primary_identifier"] = false
		}
	})(sync)
	if marked > 0 || several || len(mappings) == 0 {
		return
	}
	if first, ok := mappings[0].(map[string]any); ok {
		first["is_primary_identifier"] = true
	}
}

// mappingSentViolations change the records that are sent.
func mappingSentViolations() []violation {
	return []violation{
		sent("MAP-002", "columns go to the fields of their own names", func(r map[string]any) {
			if family, there := r["family"]; there {
				r["family"], r["given"] = r["given"], family
			}
		}),
		sent("MAP-003", "columns that are not mapped are sent too", func(r map[string]any) {
			if _, there := r["ratio"]; there && len(r) == 2 {
				r["name"] = "Ann"
			}
		}),
		{Violation{ID: "MAP-005", Changes: "texts that are the same as in the record before are left out"}, func(*Service) seams {
			return seams{carry: sending(func(o *exchange.Call) {
				before := map[string]any{}
				eachRecord(o, func(r map[string]any) {
					for name, value := range r {
						if _, isText := value.(string); isText && before[name] == value {
							delete(r, name)
							continue
						}
						before[name] = value
					}
				})
			})}
		}},
		sent("MAP-005.2", "numbers beside texts are sent as texts", func(r map[string]any) {
			if r["name"] != nil && r["count"] != nil {
				r["count"] = exchange.Text(r["count"])
			}
		}),
		sent("MAP-007", "the filter upcase of a template is passed over", func(r map[string]any) {
			if name, ok := r["name"].(string); ok && name == strings.ToUpper(name) {
				r["name"] = strings.ToLower(name)
			}
		}),
		breaks("MAP-011.2", "dots in names of fields are sent as underscores", seams{carry: renamed("address.city", "address_city")}),
		sent("MAP-020", "decimals are sent as numbers", func(r map[string]any) {
			if price, ok := r["price"].(string); ok {
				r["price"] = json.Number(price)
			}
		}),
		sent("MAP-020.2", "moments are sent without the letters of their form", func(r map[string]any) {
			if moment, ok := r["moment"].(string); ok {
				r["moment"] = strings.NewReplacer("T", " ", "Z", "").Replace(moment)
			}
		}),
		sent("MAP-020.3", "booleans are sent as numbers", func(r map[string]any) {
			if r["active"] == true {
				r["active"] = 1
			}
		}),
		sent("MAP-021", "nulls are left out", func(r map[string]any) {
			maps.DeleteFunc(r, func(_ string, value any) bool { return value == nil })
		}),
		breaks("MAP-024", "the number of the sync stands for that of the run", seams{carry: sending(func(o *exchange.Call) {
			run, own := o.Param("sync_plan", "sync_run_id"), o.Param("sync_plan", "sync_id")
			eachRecord(o, func(r map[string]any) { replaced("count", run, own)(r) })
		})}),
	}
}

// sending changes batches, deletes apart.
func sending(change func(o *exchange.Call)) exchange.Carry {
	return func(o *exchange.Call, next exchange.Next) (*http.Response, error) {
		if o.Method == rpc.MethodSyncBatch && o.Param("sync_plan", "operation") != rpc.OperationDelete {
			change(o)
		}
		return next(o)
	}
}

// sent changes every record of the batches, deletes apart.
func sent(id, changes string, change func(record map[string]any)) violation {
	return breaks(id, changes, seams{carry: sending(func(o *exchange.Call) { eachRecord(o, change) })})
}
