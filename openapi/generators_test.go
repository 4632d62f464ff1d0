package openapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

// generatorWalk looks for what linters refuse and what generators of clients
// stumble over, without any of them: names that become one name in a language,
// nulls that a type does not have, words of later versions of OpenAPI.
// The matrix of openapi/internal/clients asks the tools themselves.
type generatorWalk struct {
	doc      map[string]any
	problems []string
}

func generatorProblems(doc map[string]any) []string {
	w := &generatorWalk{doc: doc}
	w.walk("", doc)
	w.operations()
	w.typeNames()
	return w.problems
}

func (w *generatorWalk) add(where, format string, args ...any) {
	w.problems = append(w.problems, strings.TrimPrefix(where, "/")+" "+fmt.Sprintf(format, args...))
}

// goName is a name as generators compare it: they drop what is no letter and no
// digit and choose the case themselves.
func goName(name string) string {
	return strings.ToLower(strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, name))
}

// distinct adds a problem for names that generators make one of.
func (w *generatorWalk) distinct(where string, names []string) {
	seen := map[string]string{}
	for _, name := range names {
		if other, twice := seen[goName(name)]; twice {
			w.add(where, "has %q and %q, which become one name", other, name)
		}
		seen[goName(name)] = name
	}
}

// walk visits every node but the examples, whose keys mean nothing.
func (w *generatorWalk) walk(where string, node any) {
	switch v := node.(type) {
	case map[string]any:
		if v["$ref"] != nil && len(v) > 1 {
			w.add(where, "has keys beside $ref, which OpenAPI 3.0 ignores")
		}
		if isSchema(where) {
			w.schema(where, v)
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			switch key {
			case "examples":
				w.example(where+"/examples", v[key])
			case "example", "default", "enum":
			default:
				w.walk(where+"/"+strings.ReplaceAll(key, "/", "~"), v[key])
			}
		}
	case []any:
		for i, inner := range v {
			w.walk(fmt.Sprintf("%s/%d", where, i), inner)
		}
	}
}

// isSchema tells from its place whether a node is a schema.
func isSchema(where string) bool {
	steps := strings.Split(where, "/")
	at := func(back int) string { return steps[max(0, len(steps)-back)] }
	switch at(2) {
	case "properties":
		return at(3) != "properties" || at(4) == "properties"
	case "oneOf", "anyOf", "allOf":
		return true
	case "schemas":
		return at(3) == "components"
	}
	return at(1) == "schema" && at(2) != "properties" || (at(1) == "items" || at(1) == "additionalProperties") && at(2) != "properties"
}

// laterWords are keywords of JSON Schema that OpenAPI 3.0 does not have.
var laterWords = []string{
	"const", "$defs", "$schema", "if", "then", "else", "prefixItems", "contains", "dependentRequired", "dependentSchemas",
	"patternProperties", "propertyNames", "unevaluatedProperties", "unevaluatedItems", "examples", "contentEncoding",
}

func (w *generatorWalk) schema(where string, s map[string]any) {
	for _, word := range laterWords {
		if s[word] != nil {
			w.add(where, "has %s, which OpenAPI 3.0 does not know", word)
		}
	}
	kind, isWord := s["type"].(string)
	if s["type"] != nil && (!isWord || kind == "null") {
		w.add(where, "has the type %v; OpenAPI 3.0 has one word, and nullable", s["type"])
	}
	if kind == "number" && s["format"] == nil {
		w.add(where, "is a number without a format, for which some languages take 32 bits; write double")
	}
	if s["nullable"] == true && kind == "" {
		w.add(where, "is nullable without a type; leave nullable out, any value includes null")
	}
	if pattern, ok := s["pattern"].(string); ok && strings.Contains(strings.ReplaceAll(pattern, `\/`, ""), "/") {
		w.add(where, "has a slash in its pattern, which ends a regular expression in generated code; write \\/")
	}
	if s["default"] != nil && s["nullable"] == true && s["format"] == "int64" {
		w.add(where, "is a nullable int64 with a default, which generated checks do not compile with; leave format out where the bounds are small")
	}
	w.enum(where, s)
	w.properties(where, s)
	w.discriminator(where, s)
}

// enum: the constants are distinct, and null is among them exactly where a
// reply may hold it.
func (w *generatorWalk) enum(where string, s map[string]any) {
	values, _ := s["enum"].([]any)
	if values == nil {
		return
	}
	if slices.Contains(values, nil) != (s["nullable"] == true) {
		w.add(where, "must have null in its enum exactly if it is nullable")
	}
	names := make([]string, len(values))
	for i, value := range values {
		names[i] = fmt.Sprint(value)
	}
	if named, ok := s["x-enum-varnames"].([]any); ok {
		if len(named) != len(values) {
			w.add(where, "names %d constants for %d values", len(named), len(values))
		}
		names = names[:0]
		for _, name := range named {
			names = append(names, fmt.Sprint(name))
		}
	}
	seen := map[string]bool{}
	for _, name := range names {
		if seen[name] {
			w.add(where, "has %q twice", name)
		}
		seen[name] = true
	}
	// date_time and datetime are words of their own in every generator; case
	// and spaces are not.
	folded := map[string]string{}
	for _, name := range names {
		key := strings.ToLower(strings.ReplaceAll(name, " ", "_"))
		if other, twice := folded[key]; twice && other != name {
			w.add(where, "has %q and %q, which become one constant; give them x-enum-varnames", other, name)
		}
		folded[key] = name
	}
}

func (w *generatorWalk) properties(where string, s map[string]any) {
	properties, _ := s["properties"].(map[string]any)
	names := slices.Sorted(maps.Keys(properties))
	for i, name := range names {
		property := properties[name].(map[string]any)
		if renamed, ok := property["x-go-name"].(string); ok {
			names[i] = renamed
		}
		if property["default"] != nil {
			w.add(where, "has the default of %s in place; refer to a schema, or generated requests cannot leave it out", name)
		}
	}
	w.distinct(where, names)
	required, _ := s["required"].([]any)
	for _, name := range required {
		if properties[name.(string)] == nil {
			w.add(where, "requires %s and does not have it", name)
		}
	}
}

// discriminator: each of its words leads to a schema that has this word and no
// other, and always.
func (w *generatorWalk) discriminator(where string, s map[string]any) {
	d, _ := s["discriminator"].(map[string]any)
	if d == nil {
		return
	}
	property := d["propertyName"].(string)
	mapping, _ := d["mapping"].(map[string]any)
	alternatives, _ := s["oneOf"].([]any)
	if len(mapping) != len(alternatives) {
		w.add(where, "tells %d of %d alternatives apart", len(mapping), len(alternatives))
	}
	for _, word := range slices.Sorted(maps.Keys(mapping)) {
		target := w.resolve(mapping[word].(string))
		properties, _ := target["properties"].(map[string]any)
		tag, _ := properties[property].(map[string]any)
		values, _ := tag["enum"].([]any)
		required, _ := target["required"].([]any)
		if !slices.Equal(values, []any{word}) || !slices.Contains(required, any(property)) {
			w.add(where, "leads %q to a schema whose %s is not always just that", word, property)
		}
	}
}

func (w *generatorWalk) resolve(ref string) map[string]any {
	var at any = w.doc
	for _, key := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
		inner, _ := at.(map[string]any)
		at = inner[key]
	}
	found, _ := at.(map[string]any)
	return found
}

// example: linters take an object with a default for a schema, wherever it is.
func (w *generatorWalk) example(where string, node any) {
	switch v := node.(type) {
	case map[string]any:
		if _, isSchema := v["default"]; isSchema && v["required"] != nil {
			w.add(where, "has default and required in one object, which linters read as a schema")
		}
		for _, inner := range v {
			w.example(where, inner)
		}
	case []any:
		for _, inner := range v {
			w.example(where, inner)
		}
	}
}

var httpMethods = []string{"get", "put", "post", "delete", "patch", "head", "options", "trace"}

// operations: each has what clients are named and documented by.
func (w *generatorWalk) operations() {
	declared := map[string]bool{}
	tags, _ := w.doc["tags"].([]any)
	for _, tag := range tags {
		declared[tag.(map[string]any)["name"].(string)] = true
	}
	var ids []string
	paths, _ := w.doc["paths"].(map[string]any)
	for path, item := range paths {
		for method, node := range item.(map[string]any) {
			if !slices.Contains(httpMethods, method) {
				continue
			}
			where := method + " " + path
			op := node.(map[string]any)
			for _, key := range []string{"operationId", "summary", "description"} {
				if text, _ := op[key].(string); text == "" {
					w.add(where, "has no %s", key)
				}
			}
			used, _ := op["tags"].([]any)
			if len(used) != 1 || !declared[fmt.Sprint(used[0])] {
				w.add(where, "has not exactly one tag that the document declares")
			}
			ids = append(ids, fmt.Sprint(op["operationId"]))
		}
	}
	w.distinct("operationIds", ids)
}

// typeNames: schemas, parameters, responses and what is made for an operation
// share the types of a Go package.
func (w *generatorWalk) typeNames() {
	var names []string
	components, _ := w.doc["components"].(map[string]any)
	for _, kind := range []string{"schemas", "parameters", "responses", "requestBodies"} {
		all, _ := components[kind].(map[string]any)
		names = append(names, slices.Sorted(maps.Keys(all))...)
	}
	paths, _ := w.doc["paths"].(map[string]any)
	for _, item := range paths {
		for method, node := range item.(map[string]any) {
			if !slices.Contains(httpMethods, method) {
				continue
			}
			id := fmt.Sprint(node.(map[string]any)["operationId"])
			for _, suffix := range []string{"Params", "JSONBody", "JSONRequestBody", "Response"} {
				names = append(names, id+suffix)
			}
		}
	}
	slices.Sort(names)
	w.distinct("types", names)
}

func TestGeneratorsTakeTheDocument(t *testing.T) {
	require.Empty(t, generatorProblems(tree(t)))
}

// TestGeneratorWalkFinds: no rule of the walk is one that cannot fail.
func TestGeneratorWalkFinds(t *testing.T) {
	const operation = `"operationId":"fetchA","summary":"s","description":"d","tags":["t"]`
	schema := func(text string) string {
		return `{"tags":[{"name":"t"}],"paths":{"/a":{"get":{` + operation + `}}},"components":{"schemas":{"A":` + text + `}}}`
	}
	paths := func(text string) string { return `{"tags":[{"name":"t"}],"paths":` + text + `}` }
	for doc, problem := range map[string]string{
		schema(`{"type":"object","properties":{"schema":{"type":"object"},"type":{"type":"string"},"properties":{"type":"string"}}}`): "",
		schema(`{"type":["string","null"]}`):                                                                                                     "has the type [string null]",
		schema(`{"type":"number"}`):                                                                                                              "is a number without a format",
		schema(`{"nullable":true}`):                                                                                                              "is nullable without a type",
		schema(`{"type":"string","const":"a"}`):                                                                                                  "has const",
		schema(`{"type":"string","pattern":"^a/b$"}`):                                                                                            "has a slash in its pattern",
		schema(`{"type":"integer","format":"int64","nullable":true,"default":1}`):                                                                "is a nullable int64 with a default",
		schema(`{"type":"string","enum":["a"],"nullable":true}`):                                                                                 "must have null in its enum",
		schema(`{"type":"string","enum":["a",null]}`):                                                                                            "must have null in its enum",
		schema(`{"type":"string","enum":["Up to date","up_to_date"]}`):                                                                           "which become one constant",
		schema(`{"type":"string","enum":["a","b"],"x-enum-varnames":["A"]}`):                                                                     "names 1 constants for 2 values",
		schema(`{"type":"string","enum":["a","b"],"x-enum-varnames":["A","A"]}`):                                                                 `has "A" twice`,
		schema(`{"type":"object","properties":{"a_id":{"type":"string"},"a_id=":{"type":"string"}}}`):                                            "which become one name",
		schema(`{"type":"object","properties":{"a":{"type":"boolean","default":false}}}`):                                                        "has the default of a in place",
		schema(`{"type":"object","required":["b"],"properties":{"a":{"type":"string"}}}`):                                                        "requires b and does not have it",
		schema(`{"type":"array","items":{"nullable":true}}`):                                                                                     "A/items is nullable without a type",
		schema(`{"type":"object","properties":{"a":{"$ref":"#/components/schemas/B","x":1}}}`):                                                   "has keys beside $ref",
		schema(`{"oneOf":[{"$ref":"#/components/schemas/A"}],"discriminator":{"propertyName":"type","mapping":{"a":"#/components/schemas/A"}}}`): `leads "a" to a schema`,
		schema(`{"oneOf":[{"type":"string"}],"discriminator":{"propertyName":"type","mapping":{}}}`):                                             "tells 0 of 1 alternatives apart",
		schema(`{"type":"string"},"a":{"type":"string"}`):                                                                                        `has "A" and "a"`,
		schema(`{"type":"string"},"FetchAParams":{"type":"string"}`):                                                                             "types has",
		paths(`{"/a":{"get":{"operationId":"a","summary":"s","tags":["t"]}}}`):                                                                   "get /a has no description",
		paths(`{"/a":{"get":{"summary":"s","description":"d","tags":["t"]}}}`):                                                                   "get /a has no operationId",
		paths(`{"/a":{"get":{"operationId":"a","summary":"s","description":"d","tags":["u"]}}}`):                                                 "has not exactly one tag",
		paths(`{"/a":{"get":{` + operation + `},"put":{` + operation + `}}}`):                                                                    "operationIds has",
		paths(`{"/a":{"get":{` + operation + `,"examples":{"e":{"value":[{"default":1,"required":true}]}}}}}`):                                   "which linters read as a schema",
	} {
		var spoilt map[string]any
		require.NoError(t, json.Unmarshal([]byte(doc), &spoilt), doc)
		found := generatorProblems(spoilt)
		if problem == "" {
			require.Empty(t, found, doc)
			continue
		}
		require.Contains(t, strings.Join(found, "\n"), problem, doc)
	}
}
