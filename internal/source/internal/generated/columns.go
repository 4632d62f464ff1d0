package generated

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/destkit/destkit/internal/connector"
	"github.com/destkit/destkit/server/api"
)

// Limits of a table.
const (
	maxRows    = 10_000_000_000
	MaxColumns = 1000
)

// Column is one entry of the credential columns.
type Column struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Distinct    *int64 `json:"distinct"`
	NullPercent *int64 `json:"null_percent"`
	made        *valueType
}

// NewColumn is a column of a type that is there, with so many values, nil: as many as
// there are rows.
func NewColumn(name, typ string, distinct *int64) Column {
	return Column{Name: name, Type: typ, Distinct: distinct, made: types[typ]}
}

// defaultColumns are what a generator without columns makes.
const defaultColumns = `[
	{"name": "id", "type": "id"},
	{"name": "email", "type": "email"},
	{"name": "first_name", "type": "first_name"},
	{"name": "last_name", "type": "last_name"},
	{"name": "company_id", "type": "integer", "distinct": 1000},
	{"name": "city", "type": "city", "null_percent": 5},
	{"name": "balance", "type": "decimal"},
	{"name": "active", "type": "boolean"},
	{"name": "signed_up_on", "type": "date"},
	{"name": "updated_at", "type": "date_time"}
]`

// ReadColumns reads the credential; left out, it is the default set.
func ReadColumns(raw json.RawMessage) ([]Column, error) {
	if !connector.Has(raw) {
		raw = json.RawMessage(defaultColumns)
	}
	var columns []Column
	if err := json.Unmarshal(raw, &columns); err != nil {
		return nil, fmt.Errorf("read columns: %w", err)
	}
	for i := range columns {
		columns[i].made = types[columns[i].Type]
	}
	return columns, nil
}

// Check reports everything that is wrong with the credentials columns and changes.
func Check(credentials map[string]json.RawMessage) []api.Problem {
	columns, changes := credentials["columns"], credentials["changes"]
	return append(checkColumns(columns), checkChanges(columns, changes)...)
}

func checkColumns(raw json.RawMessage) []api.Problem {
	const place = "credentials.columns"
	if !connector.Has(raw) {
		return nil
	}
	var entries []json.RawMessage
	if json.Unmarshal(raw, &entries) != nil {
		return []api.Problem{{Field: place, Message: "must be a list of columns, each an object with name and type"}}
	}
	if len(entries) == 0 || len(entries) > MaxColumns {
		return []api.Problem{{Field: place, Message: fmt.Sprintf("must hold 1 to %d columns", MaxColumns)}}
	}
	var problems []api.Problem
	seen := map[string]bool{}
	for i, raw := range entries {
		at := fmt.Sprintf("%s[%d]", place, i)
		var members map[string]json.RawMessage
		if json.Unmarshal(raw, &members) != nil || members == nil {
			problems = append(problems, api.Problem{Field: at, Message: "must be an object with name and type"})
			continue
		}
		problems = append(problems, checkColumn(at, members)...)
		name := connector.Text(members["name"])
		if seen[name] && name != "" {
			problems = append(problems, api.Problem{Field: at + ".name", Message: "is the name of an earlier column"})
		}
		seen[name] = true
	}
	return problems
}

// checkColumn looks at raw members, so that a wrong type of one does not
// hide problems of the others.
func checkColumn(at string, members map[string]json.RawMessage) []api.Problem {
	var problems []api.Problem
	object := func(name, message string) {
		problems = append(problems, api.Problem{Field: at + "." + name, Message: message})
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		switch name {
		case "name", "type", "distinct", "null_percent":
		default:
			object(name, "is not known; a column has name, type, distinct and null_percent")
		}
	}
	var text string
	if json.Unmarshal(members["name"], &text) != nil || text == "" || len(text) > 255 {
		object("name", "must be a string of 1 to 255 bytes")
	}
	typ := connector.Text(members["type"])
	if types[typ] == nil {
		object("type", "must be one of "+strings.Join(Types(), ", "))
	}
	for _, range_ := range []struct {
		name     string
		from, to int64
	}{{"distinct", 1, maxRows}, {"null_percent", 0, 100}} {
		if !connector.Has(members[range_.name]) {
			continue
		}
		if n, ok := plainNumber(members[range_.name]); !ok || n < range_.from || n > range_.to {
			object(range_.name, fmt.Sprintf("must be a whole number of %d to %d", range_.from, range_.to))
		} else if typ == "id" {
			object(range_.name, "does not go with type id, which is unique and never null")
		} else if typ == changedType {
			object(range_.name, "does not go with type "+changedType+", which is the moment of the last change")
		}
	}
	return problems
}

// plainNumber reads a number that is written without point and exponent.
func plainNumber(raw json.RawMessage) (n int64, ok bool) {
	return n, json.Unmarshal(raw, &n) == nil
}
