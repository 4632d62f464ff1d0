package main

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/cmd/destkit/internal/configfile"
)

type schemaNode = map[string]any

// schemaMaker makes schemas of Go types; descriptions are the comments in the source.
type schemaMaker struct {
	t *testing.T
	// strict refuses keys that the type does not have, as the reader of YAML does. A
	// report is open: members may be added to it.
	strict   bool
	comments map[string]map[string]string // of a package, by Type and Type.Field
}

func newSchemaMaker(t *testing.T, strict bool) *schemaMaker {
	return &schemaMaker{t, strict, map[string]map[string]string{}}
}

// required are the members without which no reader accepts a file, by type.
var required = map[string][]string{
	"waiverFile":       {"waivers"},
	"Waiver":           {"check", "reason"},
	"userEntry":        {"email"},
	"sourceEntry":      {"name", "type"},
	"destinationEntry": {"name", "type"},
	"ObjectConfig":     {"name"},
	"FieldConfig":      {"name", "type"},
}

// choices are the values of members that take one of a list.
var choices = map[string][]string{
	"ObjectConfig.operations": {"insert", "update", "upsert", "mirror"},
	"FieldConfig.type":        {"boolean", "decimal", "float", "integer", "date", "date_time", "string"},
	"Config.skip_convention":  {"failure", "success", "success-with-message"},
	"Waiver.operation":        {"insert", "update", "upsert", "delete", "mirror"},
}

// of is the schema of a type.
func (m *schemaMaker) of(typ reflect.Type) schemaNode {
	switch typ {
	case reflect.TypeFor[time.Duration]():
		return schemaNode{"type": "string", "pattern": `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$|^0$`}
	case reflect.TypeFor[time.Time]():
		return schemaNode{"type": "string", "format": "date-time"}
	case reflect.TypeFor[json.RawMessage]():
		return schemaNode{}
	}
	switch typ.Kind() {
	case reflect.Pointer:
		return m.of(typ.Elem())
	case reflect.Struct:
		return m.structure(typ)
	case reflect.Map:
		return schemaNode{"type": "object", "additionalProperties": m.of(typ.Elem())}
	case reflect.Slice, reflect.Array:
		if typ.Elem().Kind() == reflect.Uint8 {
			return schemaNode{"type": "string"}
		}
		return schemaNode{"type": "array", "items": m.of(typ.Elem())}
	case reflect.String:
		return schemaNode{"type": "string"}
	case reflect.Bool:
		return schemaNode{"type": "boolean"}
	case reflect.Float32, reflect.Float64:
		return schemaNode{"type": "number"}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return schemaNode{"type": "integer", "minimum": 0}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return schemaNode{"type": "integer"}
	case reflect.Interface:
		return schemaNode{}
	}
	m.t.Fatalf("%s has no schema", typ)
	return nil
}

func (m *schemaMaker) structure(typ reflect.Type) schemaNode {
	properties := schemaNode{}
	needed := m.members(typ, properties, nil)
	if m.strict {
		needed = required[typ.Name()]
	}
	out := schemaNode{"type": "object", "properties": properties}
	if len(needed) > 0 {
		out["required"] = needed
	}
	if m.strict {
		out["additionalProperties"] = false
	}
	if text := m.comment(typ, "", ""); text != "" {
		out["description"] = text
	}
	return out
}

// members fills in the members of a type, and returns the names of those that are
// always written.
func (m *schemaMaker) members(typ reflect.Type, properties schemaNode, needed []string) []string {
	for field := range typ.Fields() {
		if field.Anonymous && (field.Tag.Get("yaml") == ",inline" || !m.strict && field.Tag.Get("json") == "") {
			needed = m.members(field.Type, properties, needed)
			continue
		}
		name, optional := m.nameOf(field)
		if name == "" {
			continue
		}
		member := m.of(field.Type)
		if nilable(field.Type) && !m.strict && member["type"] != nil {
			member["type"] = []any{member["type"], "null"} // a nil slice is null in JSON
		}
		m.choose(member, typ.Name()+"."+name)
		if text := m.comment(typ, field.Name, name); text != "" {
			member["description"] = text
		}
		properties[name] = member
		if !optional {
			needed = append(needed, name)
		}
	}
	return needed
}

func nilable(typ reflect.Type) bool {
	return typ.Kind() == reflect.Slice || typ.Kind() == reflect.Map || typ.Kind() == reflect.Pointer
}

// choose puts a list of values where there is one.
func (m *schemaMaker) choose(member schemaNode, place string) {
	list, ok := choices[place]
	if !ok {
		return
	}
	if items, isList := member["items"].(schemaNode); isList {
		member = items
	}
	member["enum"] = list
}

// nameOf is the key of a field, "" where the field is in no file.
func (m *schemaMaker) nameOf(field reflect.StructField) (name string, optional bool) {
	if !field.IsExported() {
		return "", true
	}
	tag, tagged := field.Tag.Lookup("yaml")
	if !tagged || !m.strict {
		tag = field.Tag.Get("json")
	}
	name, options, _ := strings.Cut(tag, ",")
	require.NotContains(m.t, options, "inline", field.Name)
	require.False(m.t, field.Anonymous, field.Name)
	switch name {
	case "-":
		return "", true
	case "":
		name = strings.ToLower(field.Name)
	}
	return name, strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")
}

// comment is the source's comment on a type or a field, with the key in place of
// the name of the field.
func (m *schemaMaker) comment(typ reflect.Type, field, key string) string {
	if typ.Name() == "" {
		return ""
	}
	folder, ours := strings.CutPrefix(typ.PkgPath(), module)
	if typ.PkgPath() == "main" || strings.HasSuffix(folder, "cmd/destkit") {
		folder, ours = "cmd/destkit", true
	}
	require.True(m.t, ours, typ.PkgPath())
	if m.comments[folder] == nil {
		m.comments[folder] = commentsIn(m.t, filepath.Join(repository, filepath.FromSlash(folder)))
	}
	if field == "" {
		return m.comments[folder][typ.Name()]
	}
	text := m.comments[folder][typ.Name()+"."+field]
	if rest, found := strings.CutPrefix(text, field+" "); found {
		text = key + " " + rest
	}
	return text
}

// commentsIn reads the comments of a package by Type and by Type.Field.
func commentsIn(t *testing.T, folder string) map[string]string {
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	require.NoError(t, err)
	require.NotEmpty(t, files, folder)
	found := map[string]string{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		require.NoError(t, err)
		for _, decl := range parsed.Decls {
			general, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range general.Specs {
				if typ, ok := spec.(*ast.TypeSpec); ok {
					typeComments(found, typ, general.Doc)
				}
			}
		}
	}
	return found
}

func typeComments(found map[string]string, typ *ast.TypeSpec, above *ast.CommentGroup) {
	found[typ.Name.Name] = plain(typ.Doc)
	if typ.Doc == nil {
		found[typ.Name.Name] = plain(above)
	}
	structure, ok := typ.Type.(*ast.StructType)
	if !ok {
		return
	}
	for _, field := range structure.Fields.List {
		text := plain(field.Doc)
		if text == "" {
			text = plain(field.Comment)
		}
		for _, name := range field.Names {
			found[typ.Name.Name+"."+name.Name] = text
		}
	}
}

func plain(c *ast.CommentGroup) string { return strings.Join(strings.Fields(c.Text()), " ") }

// words of a flag's value that are all that it takes.
var flagChoices = regexp.MustCompile(`^[a-z0-9-]+(\|[a-z0-9-]+)+$`)

// configSchema is the schema of a configuration file: the flags of a command are its
// keys.
func configSchema(cmd *cobra.Command, fixtures bool) schemaNode {
	properties := schemaNode{}
	if fixtures {
		properties["fixtures"] = fixturesSchema()
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !configfile.Configurable(f) {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		one := schemaNode{"type": []any{"string", "number", "boolean"}}
		switch f.Value.Type() {
		case "bool":
			one = schemaNode{"type": "boolean"}
		case "int", "int64", "uint64":
			one = schemaNode{"type": "integer"}
		case "float64":
			one = schemaNode{"type": "number"}
		case "duration":
			one = schemaNode{"type": "string", "pattern": `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$|^0$`}
		}
		if flagChoices.MatchString(value) {
			one = schemaNode{"enum": strings.Split(value, "|")}
		}
		if _, repeatable := f.Value.(pflag.SliceValue); repeatable {
			one = schemaNode{"anyOf": []any{one, schemaNode{"type": "array", "items": one}}}
		}
		one["description"] = strings.TrimPrefix(usage, value+": ")
		properties[f.Name] = one
	})
	return schemaNode{"type": "object", "properties": properties, "additionalProperties": false}
}

// fixturesSchema is that of values by object and field.
func fixturesSchema() schemaNode {
	scalar := schemaNode{"type": []any{"string", "number", "boolean", "null"}}
	value := schemaNode{"anyOf": []any{scalar, schemaNode{"type": "array", "items": scalar}}}
	fields := schemaNode{"type": "object", "additionalProperties": value}
	bad := schemaNode{"type": "object", "additionalProperties": value, "description": "values of these fields that the endpoint must refuse"}
	hidden := schemaNode{"type": []any{"string", "array"}, "items": schemaNode{"type": "string"}, "description": "fields that a read-back cannot show as they were sent"}
	fields["properties"] = schemaNode{"bad": bad, "hidden": hidden}
	return schemaNode{"type": "object", "additionalProperties": fields, "description": "values that the endpoint accepts, by object and field"}
}

// writeSchema is the text of a schema file.
func writeSchema(t *testing.T, name, title string, schema schemaNode) string {
	t.Helper()
	schema["$schema"], schema["$id"], schema["title"] = "https://json-schema.org/draft/2020-12/schema", schemaURL(name), title
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	require.NoError(t, e.Encode(schema))
	return text.String()
}
