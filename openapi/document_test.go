package openapi

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/matrixtest"
)

// schemas is the folder of the published schemas.
const schemas = "../../shared/schemas"

// readSchema reads a published schema; where there is none the test is
// skipped.
func readSchema(t *testing.T, name string) map[string]any {
	text, err := os.ReadFile(filepath.Join(schemas, name))
	if os.IsNotExist(err) {
		matrixtest.Missing(t, "schemas", "the published schema %s is not here", name)
	}
	require.NoError(t, err)
	tree, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	return tree.(map[string]any)
}

// metaSchema compiles the OpenRPC meta-schema. It was published with two
// things left open: the enumeration of versions holds only a note that a
// release fills it in, and JSON Schema itself is behind an address; draft 7,
// which OpenRPC prescribes, takes its place.
func metaSchema(t *testing.T) *jsonschema.Schema {
	const draft7 = "http://json-schema.org/draft-07/schema#"
	meta := readSchema(t, "openrpc.schema.json")
	meta["$schema"] = draft7
	version := meta["properties"].(map[string]any)["openrpc"].(map[string]any)
	require.Contains(t, version["enum"].([]any)[0], "GENERATED FIELD")
	delete(version, "enum")
	version["pattern"] = `^1\.[0-9]+\.[0-9]+$`

	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft7)
	require.NoError(t, c.AddResource("https://meta.open-rpc.org/", meta))
	for _, address := range []string{"https://meta.json-schema.tools", "https://meta.json-schema.tools/"} {
		require.NoError(t, c.AddResource(address, map[string]any{
			"$schema": draft7,
			"allOf":   []any{map[string]any{"$ref": draft7}},
			"definitions": map[string]any{"JSONSchemaObject": map[string]any{
				"properties": map[string]any{"$ref": map[string]any{"type": "string"}},
			}},
		}))
	}
	compiled, err := c.Compile("https://meta.open-rpc.org/")
	require.NoError(t, err)
	return compiled
}

func TestDocumentAgainstMetaSchema(t *testing.T) {
	meta := metaSchema(t)
	tree := func() map[string]any {
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(OpenRPC()))
		require.NoError(t, err)
		return v.(map[string]any)
	}
	require.NoError(t, meta.Validate(tree()))

	// The meta-schema decides something: each of these is refused.
	first := func(doc map[string]any) map[string]any { return doc["methods"].([]any)[0].(map[string]any) }
	for name, spoil := range map[string]func(doc map[string]any){
		"version":       func(doc map[string]any) { doc["openrpc"] = "2.0.0" },
		"no info":       func(doc map[string]any) { delete(doc, "info") },
		"extra key":     func(doc map[string]any) { doc["paths"] = map[string]any{} },
		"no params":     func(doc map[string]any) { delete(first(doc), "params") },
		"bad structure": func(doc map[string]any) { first(doc)["paramStructure"] = "positional" },
		"bad schema": func(doc map[string]any) {
			first(doc)["result"].(map[string]any)["schema"] = map[string]any{"type": "whole"}
		},
	} {
		doc := tree()
		spoil(doc)
		require.Error(t, meta.Validate(doc), name)
	}
}

// document is the part of the OpenRPC document that the tests compare.
type document struct {
	Methods []struct {
		Name   string
		Params []struct {
			Name     string
			Required bool
			Schema   json.RawMessage
		}
		Result   struct{ Name string }
		XParams  map[string]string `json:"x-params"`
		Examples []struct {
			Name   string
			Params []example
			Result example
		}
	}
	Components struct {
		Schemas map[string]struct {
			Required   []string
			Properties map[string]json.RawMessage
		}
	}
}

type example struct {
	Name  string
	Value json.RawMessage
}

func parse(t *testing.T) document {
	var doc document
	require.NoError(t, json.Unmarshal(OpenRPC(), &doc))
	return doc
}

func TestDocumentNamesTheSixMethods(t *testing.T) {
	var names []string
	for _, m := range parse(t).Methods {
		names = append(names, m.Name)
	}
	require.Equal(t, methods, names)
}

// TestParamsAreDescribedOnce: the list of params that OpenRPC wants and the
// schema of the params as one object say the same.
func TestParamsAreDescribedOnce(t *testing.T) {
	doc := parse(t)
	for _, m := range doc.Methods {
		const prefix = "#/components/schemas/"
		require.Contains(t, m.XParams["$ref"], prefix)
		whole := doc.Components.Schemas[m.XParams["$ref"][len(prefix):]]
		require.Len(t, m.Params, len(whole.Properties), m.Name)
		var required []string
		for _, p := range m.Params {
			require.JSONEq(t, string(whole.Properties[p.Name]), string(p.Schema), "%s %s", m.Name, p.Name)
			if p.Required {
				required = append(required, p.Name)
			}
		}
		require.Equal(t, whole.Required, required, m.Name)
	}
}

func TestExamplesAreValid(t *testing.T) {
	for _, m := range parse(t).Methods {
		require.NotEmpty(t, m.Examples, m.Name)
		for _, e := range m.Examples {
			params := map[string]json.RawMessage{}
			for _, p := range e.Params {
				params[p.Name] = p.Value
			}
			text, err := json.Marshal(params)
			require.NoError(t, err)
			require.NoError(t, ValidateParams(m.Name, text), "%s: %s", m.Name, e.Name)
			require.Equal(t, m.Result.Name, e.Result.Name)
			require.NoError(t, ValidateResult(m.Name, e.Result.Value), "%s: %s", m.Name, e.Name)
		}
	}
}

func TestOpenRPCIsACopy(t *testing.T) {
	clear(OpenRPC())
	require.True(t, json.Valid(OpenRPC()))
}

func TestCompileRefuses(t *testing.T) {
	for text, problem := range map[string]string{
		`{`: "decode openrpc document", `{"methods":5}`: "decode openrpc document",
		`{"methods":[{"name":"m"}]}`:                                                                "compile params of m",
		`{"methods":[{"name":"m","x-params":{"type":"whole"}}]}`:                                    "compile params of m",
		`{"methods":[{"name":"m","x-params":{}}]}`:                                                  "compile result of m",
		`{"methods":[{"name":"m","x-params":{},"result":{"schema":{"$ref":"#/components/none"}}}]}`: "compile result of m",
	} {
		require.ErrorContains(t, faultOf(func() { compile([]byte(text)) }), problem, text)
	}
}
