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
