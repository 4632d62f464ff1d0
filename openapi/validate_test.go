package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// fixtures are the cases of one method, testdata/METHOD.json.
type fixtures struct {
	Params, Result struct {
		Good []struct {
			Name  string
			Value json.RawMessage
		}
		Bad []struct {
			Name  string
			Value json.RawMessage
			// Path and Problem name one of the problems that must be found.
			Path, Problem string
		}
	}
}

var methods = []string{
	"test_connection", "list_objects", "list_fields", "supported_operations", "get_sync_speed", "sync_batch",
}

func load(t *testing.T, method string) fixtures {
	text, err := os.ReadFile(filepath.Join("testdata", method+".json"))
	require.NoError(t, err)
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var f fixtures
	require.NoError(t, d.Decode(&f))
	return f
}

func TestFixtures(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	require.NoError(t, err)
	require.Len(t, files, len(methods), "every fixture belongs to a method")
	for _, method := range methods {
		f := load(t, method)
		for part, validate := range map[string]func(string, []byte) error{"params": ValidateParams, "result": ValidateResult} {
			cases := f.Params
			if part == "result" {
				cases = f.Result
			}
			require.NotEmpty(t, cases.Good)
			require.NotEmpty(t, cases.Bad)
			for _, c := range cases.Good {
				require.NoError(t, validate(method, c.Value), "%s %s: %s", method, part, c.Name)
			}
			for _, c := range cases.Bad {
				var bad *InvalidError
				require.ErrorAs(t, validate(method, c.Value), &bad, "%s %s: %s", method, part, c.Name)
				require.Equal(t, method, bad.Method)
				require.Equal(t, part, bad.Part)
				found := false
				for _, p := range bad.Problems {
					found = found || p.Path == c.Path && strings.Contains(p.Message, c.Problem)
				}
				require.True(t, found, "%s %s: %s: want %s %q in %v", method, part, c.Name, c.Path, c.Problem, bad)
			}
		}
	}
}

func TestInvalidErrorListsAll(t *testing.T) {
	err := ValidateResult("get_sync_speed", []byte(`{"maximum_batch_size":"1","maximum_parallel_batches":0}`))
	require.EqualError(t, err, "validate get_sync_speed: result: missing property 'maximum_records_per_second'; "+
		"result/maximum_batch_size: got string, want integer; result/maximum_parallel_batches: minimum: got 0, want 1")
}

func TestNotEvenAnswerable(t *testing.T) {
	for _, validate := range []func(string, []byte) error{ValidateParams, ValidateResult} {
		require.ErrorIs(t, validate("sync_data", []byte(`{}`)), ErrMethod)
		for _, text := range []string{``, `{`, `{} {}`} {
			err := validate("list_objects", []byte(text))
			require.ErrorContains(t, err, "decode json: ")
			var bad *InvalidError
			require.False(t, errors.As(err, &bad))
		}
	}
}

func TestPointerEscapes(t *testing.T) {
	require.Equal(t, "/a~1b/c~0d/", pointer([]string{"a/b", "c~d", ""}))
	require.Equal(t, "", pointer(nil))
}

// batchOf is a plan with one field of a type beside the identifier, and one record.
func batchOf(kind, array, record string) []byte {
	field := func(name, active, kind, array string) string {
		return `"` + name + `":{"active_identifier":` + active + `,"field":{"field_api_name":"` + name + `","label":"L","identifier":` +
			active + `,"required":` + active + `,"createable":true,"updateable":true,"type":"` + kind + `","array":` + array + `}}`
	}
	return []byte(`{"sync_plan":{"object":{"object_api_name":"o","label":"O"},"operation":"upsert","sync_run_id":1,"sync_id":1,"schema":{` +
		field("id", "true", "integer", "false") + `,` + field("v", "false", kind, array) + `}},"records":[` + record + `]}`)
}

func TestValidateBatch(t *testing.T) {
	for _, tc := range []struct{ kind, value, problem string }{
		{"boolean", `true`, ""}, {"boolean", `"true"`, "form of boolean"}, {"boolean", `1`, "form of boolean"},
		{"decimal", `"1234.1234"`, ""}, {"decimal", `"-1E+5"`, ""}, {"decimal", `12.5`, "form of decimal"}, {"decimal", `"1,5"`, "form of decimal"},
		{"float", `42.42`, ""}, {"float", `1e400`, ""}, {"float", `"42.42"`, "form of float"},
		{"integer", `9223372036854775808`, ""}, {"integer", `1.0`, "form of integer"}, {"integer", `1e3`, "form of integer"},
		{"date", `"2021-03-29"`, ""}, {"date", `"2021-02-29"`, "form of date"}, {"date", `"29.3.2021"`, "form of date"},
		{"date_time", `"2021-03-29T16:32:23Z"`, ""}, {"date_time", `"2021-03-29T16:32:23.5Z"`, ""},
		{"date_time", `"2021-03-29T16:32:23+00:00"`, "form of date_time"}, {"date_time", `"2021-03-29"`, "form of date_time"},
		{"string", `"x"`, ""}, {"string", `4`, "form of string"}, {"string", `null`, ""}, {"string", `["x"]`, "is an array"},
	} {
		err := validateBatch(batchOf(tc.kind, "false", `{"id":1,"v":`+tc.value+`}`))
		if tc.problem == "" {
			require.NoError(t, err, tc)
			continue
		}
		require.ErrorContains(t, err, "params/records/0/v: ", tc)
		require.ErrorContains(t, err, tc.problem, tc)
	}
	require.NoError(t, validateBatch(batchOf("date", "true", `{"id":1,"v":["2021-03-29",null]},{"id":2,"v":[]},{"id":3,"v":null},{"id":4}`)))
	require.ErrorContains(t, validateBatch(batchOf("date", "true", `{"id":1,"v":[1]}`)), "form of date")
	require.ErrorContains(t, validateBatch(batchOf("date", "true", `{"id":1,"v":"2021-03-29"}`)), "is no array")
	for _, record := range []string{`{}`, `{"v":"a"}`, `{"id":null}`} {
		require.ErrorContains(t, validateBatch(batchOf("string", "false", record)), `params/records/0: carries no active identifier "id"`)
		require.NoError(t, ValidateParams("sync_batch", batchOf("string", "false", record)))
	}
	require.ErrorContains(t, validateBatch(batchOf("string", "false", `{"id":1,"w":1}`)), "params/records/0/w: is not in the schema of the plan")
	require.ErrorContains(t, validateBatch([]byte(`{}`)), "missing properties")
}
