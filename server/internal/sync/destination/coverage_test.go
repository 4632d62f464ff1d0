package destination

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/destkit/destkit/server/api"
	"github.com/stretchr/testify/require"
)

// variety collects which values each property took, by its path.
type variety map[string]map[string]bool

func (v variety) note(path, value string) {
	if v[path] == nil {
		v[path] = map[string]bool{}
	}
	v[path][value] = true
}

// walk notes booleans and words as they are, and of everything else whether it
// is there.
func (v variety) walk(path string, value reflect.Value) {
	switch value.Kind() {
	case reflect.Pointer:
		v.note(path, map[bool]string{true: "null", false: "present"}[value.IsNil()])
		if !value.IsNil() {
			v.walk(path, value.Elem())
		}
	case reflect.Struct:
		for i := range value.NumField() {
			v.walk(path+"."+value.Type().Field(i).Tag.Get("json"), value.Field(i))
		}
	case reflect.Slice, reflect.Map:
		v.note(path, map[bool]string{true: "empty", false: "filled"}[value.Len() == 0])
		if value.Kind() == reflect.Slice && value.Type().Elem().Kind() != reflect.Uint8 {
			for i := range value.Len() {
				v.walk(path+"[]", value.Index(i))
			}
		}
	default:
		v.note(path, fmt.Sprint(value.Interface()))
	}
}

// Every property of spec 2.2 to 2.5 takes each of its values in something that
// a real type or a type of the catalogue produces.
func TestPropertyCoverage(t *testing.T) {
	seen := variety{}
	g := newGate(t, Options{Emulate: (&simulators{}).emulate, FilesRoot: t.TempDir()})
	look := func(c Connection) {
		list, err := c.Objects(t.Context())
		require.NoError(t, err)
		for _, o := range list {
			seen.walk("object", reflect.ValueOf(*o))
		}
		results := c.Test(t.Context())
		seen.walk("test", reflect.ValueOf(results))
		seen.note("last_test_succeeded", fmt.Sprint(Succeeded(results)))
	}
	for i, connector := range g.Types() {
		seen.note("is_file_system_destination", fmt.Sprint(g.FileSystem(connector.ServiceName)))
		seen.walk("connector", reflect.ValueOf(connector))
		switch connector.ServiceName {
		case api.TypeCustomAPI:
			answers := planning(`{"objects":[{"object_api_name":"a","label":"A"}]}`, goodFields, everything)
			look(openURL(t, g, server(t, endpoint(t, answers))))
		case api.TypeLocalFiles:
			c, err := g.Open(1, api.TypeLocalFiles, creds(t, `{"format":"csv"}`))
			require.NoError(t, err)
			look(c)
		default:
			look(openEmulated(t, g, int64(i), connector.ServiceName))
		}
	}
	want := map[string][]string{
		"is_file_system_destination":                                                   {"true", "false"},
		"last_test_succeeded":                                                          {"true", "false"},
		"test.steps[].status":                                                          {"passed", "failed", "skipped"},
		"test.steps[].error":                                                           {"null", "present"},
		"object.supported_operations[]":                                                {"append", "insert", "mirror", "update", "upsert"},
		"object.allow_custom_fields":                                                   {"true", "false"},
		"object.supported_custom_field_types,omitempty":                                {"empty", "filled"},
		"object.supported_custom_field_types,omitempty[].array":                        {"true", "false"},
		"object.allow_case_sensitive_fields":                                           {"true", "false"},
		"object.advanced_configuration_field_definitions":                              {"empty", "filled"},
		"object.supports_field_ordering":                                               {"true", "false"},
		"object.can_be_sync_destination":                                               {"true", "false"},
		"object.is_audience_destination,omitempty":                                     {"true", "false"},
		"object.fields":                                                                {"empty", "filled"},
		"object.configurable_field_definitions":                                        {"empty", "filled"},
		"object.advanced_configuration_field_definitions[].type":                       {"string", "integer", "boolean"},
		"object.advanced_configuration_field_definitions[].input_type":                 {"text", "textarea", "dropdown", "checkbox"},
		"object.advanced_configuration_field_definitions[].default,omitempty":          {"empty", "filled"},
		"object.advanced_configuration_field_definitions[].required,omitempty":         {"null", "true", "false"},
		"object.advanced_configuration_field_definitions[].supported_values,omitempty": {"empty", "filled"},
		"object.fields[].type":                                                         {"boolean", "decimal", "float", "integer", "date", "date_time", "string"},
		"object.fields[].operations[]":                                                 {"overwrite", "merge"},
		"object.fields[].lookup_object":                                                {"", "Account"},
		"connector.creatable_via_api":                                                  {"true"},
		"connector.emulated":                                                           {"true", "false"},
		"connector.authentication_kind":                                                {"credentials", "none"},
		"object.fields[].array":                                                        {"true", "false"},
		"object.primary_identifier_mapping_attributes,omitempty":                       {"present"},
	}
	for _, which := range []string{"upsert", "mirror"} {
		rule := "object.primary_identifier_mapping_attributes,omitempty." + which
		want[rule+".required"] = []string{"true", "false"}
		want[rule+".hide_destination_key"] = []string{"true", "false"}
		want[rule+".notes"] = []string{"null", "present"}
	}
	for _, flag := range []string{
		"createable", "updateable", "preserve_values_supported", "required_for_mapping",
		"can_be_upsert_key", "can_be_update_key", "can_be_insert_key", "can_be_reference_key",
	} {
		want["object.fields[]."+flag] = []string{"true", "false"}
	}
	field := "connector.configuration_fields.fields[]"
	want[field+".type"] = []string{"string", "integer", "boolean", "object"}
	want[field+".input_type"] = []string{"text", "textarea", "password", "dropdown", "checkbox", "key_value"}
	want[field+".is_password_type_field"] = []string{"true", "false"}
	want[field+".possible_values"] = []string{"empty", "filled"}
	for path, values := range want {
		for _, value := range values {
			require.True(t, seen[path][value], "%s never is %q; it was %v", path, value, seen[path])
		}
	}
	for _, path := range []string{"placeholder", "sort_order", "label", "name"} { // free values: more than one
		require.Greater(t, len(seen["object.advanced_configuration_field_definitions[]."+path]), 1, path)
	}
	for _, path := range []string{".placholder", ".matches", ".read_more", ".hint", ".id", ".label"} {
		require.Greater(t, len(seen[field+path]), 1, path)
	}
	never := []string{}
	for path, values := range seen {
		if len(values) < 2 {
			never = append(never, path)
		}
	}
	slices.Sort(never)
	require.Equal(t, []string{ // what has one value here, and why
		"connector.configuration_fields.fields",                  // every type has some
		"connector.configuration_fields.fields[].rules.[]",       // required is the only rule, and not everywhere
		"connector.creatable_via_api",                            // false without a simulator: TestTypes
		"connector.creatable_via_connect_link",                   // there are no flows of a browser
		"object.fields[].operations",                             // never empty; the values vary
		"object.primary_identifier_mapping_attributes,omitempty", // left out by the dialect
		"object.supported_operations",                            // empty for a deviating endpoint: TestDeviations
		"test.steps",                                             // never empty
		"test.steps[].error.message",                             // one failing endpoint here, many in TestTestConnectionStep
	}, never)
}
