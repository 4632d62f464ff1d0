package openapi

import (
	"fmt"
	"maps"
	"slices"
)

const methodSyncBatch = "sync_batch"

// planProblems checks what no schema can say about a plan. The params have passed the
// schema, so that what they must have is there.
func planProblems(params any) []Problem {
	schema := member[map[string]any](member[map[string]any](params, "sync_plan"), "schema")
	var problems []Problem
	active := 0
	for _, key := range slices.Sorted(maps.Keys(schema)) {
		if member[bool](schema[key], "active_identifier") {
			active++
		}
		if name := member[string](member[any](schema[key], "field"), "field_api_name"); name != key {
			problems = append(problems, Problem{
				Path:    pointer([]string{"sync_plan", "schema", key, "field", "field_api_name"}),
				Message: fmt.Sprintf("is %q under the key %q", name, key),
			})
		}
	}
	if active != 1 {
		problems = append(problems, Problem{
			Path:    "/sync_plan/schema",
			Message: fmt.Sprintf("has %d active identifiers, must have exactly one", active),
		})
	}
	return problems
}

// member is a member of an object, or the zero value where there is none of its type.
func member[T any](object any, name string) T {
	members, _ := object.(map[string]any)
	v, _ := members[name].(T)
	return v
}
