package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// planField is what the checks beyond the schema need of a mapped field.
type planField struct {
	Active bool `json:"active_identifier"`
	Field  struct {
		Name  string `json:"field_api_name"`
		Type  string `json:"type"`
		Array bool   `json:"array"`
	} `json:"field"`
}

type batch struct {
	Plan struct {
		Schema map[string]planField `json:"schema"`
	} `json:"sync_plan"`
	Records []map[string]any `json:"records"`
}

// validateBatch checks the params of a sync_batch as ValidateParams does, and
// beyond that its records: each carries the active identifier, not
// null, and nothing that is not mapped, and each value has the wire form of its
// field's type. A judge that sends bad records on purpose uses ValidateParams.
func validateBatch(params []byte) error {
	if err := ValidateParams(methodSyncBatch, params); err != nil {
		return err
	}
	var b batch
	decode(params, &b)
	var problems []Problem
	for i, record := range b.Records {
		at := []string{"records", strconv.Itoa(i)}
		for key, f := range b.Plan.Schema {
			if f.Active && record[key] == nil {
				problems = append(problems, Problem{pointer(at), fmt.Sprintf("carries no active identifier %q", key)})
			}
		}
		for key, value := range record {
			path := pointer(append(at, key))
			f, mapped := b.Plan.Schema[key]
			if !mapped {
				problems = append(problems, Problem{path, "is not in the schema of the plan"})
			} else if reason := valueProblem(f, value); reason != "" {
				problems = append(problems, Problem{path, reason})
			}
		}
	}
	return invalid(methodSyncBatch, "params", problems)
}

// valueProblem says what is wrong with a value, "" when nothing is. null is
// legal for every type.
func valueProblem(f planField, value any) string {
	if value == nil {
		return ""
	}
	items, isArray := value.([]any)
	if isArray != f.Field.Array {
		if isArray {
			return "is an array, the field is none"
		}
		return "is no array, the field is one"
	}
	if !isArray {
		items = []any{value}
	}
	for _, item := range items {
		if item != nil && !hasForm(f.Field.Type, item) {
			return "has not the form of " + f.Field.Type
		}
	}
	return ""
}

var decimalForm = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// hasForm reports whether a scalar has the wire form of a type: the table of the
// seven types.
func hasForm(kind string, value any) bool {
	switch v := value.(type) {
	case bool:
		return kind == "boolean"
	case json.Number:
		return kind == "float" || kind == "integer" && !strings.ContainsAny(v.String(), ".eE")
	case string:
		switch kind {
		case "string":
			return true
		case "decimal":
			return decimalForm.MatchString(v)
		case "date":
			_, err := time.Parse(time.DateOnly, v)
			return err == nil
		case "date_time":
			_, err := time.Parse(time.RFC3339Nano, v)
			return err == nil && strings.HasSuffix(v, "Z")
		}
	}
	return false
}

// decode reads a text that has passed the schema, numbers as they are written.
func decode(text []byte, dst any) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	// The text was decoded and matched before: it cannot fail here.
	_ = d.Decode(dst)
}
