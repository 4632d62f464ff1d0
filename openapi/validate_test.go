package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
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

// replyOf is a reply of the document with a part replaced.
func replyOf(t *testing.T, id, name string, replace ...string) []byte {
	t.Helper()
	for _, e := range findOperation(id).Examples() {
		if e.Name == name {
			if len(replace) > 0 {
				require.Contains(t, string(e.Body), replace[0])
			}
			return []byte(strings.NewReplacer(replace...).Replace(string(e.Body)))
		}
	}
	require.Fail(t, "no such example", "%s %s", id, name)
	return nil
}

func TestCheckResponse(t *testing.T) {
	for _, tc := range []struct {
		id     string
		status int
		body   []byte
		want   string // "": good
	}{
		{"fetchSync", 200, replyOf(t, "fetchSync", "sync"), ""},
		{"fetchSync", 200, replyOf(t, "fetchSync", "sync", `"ready"`, `"Ready"`), ""},
		{"fetchSync", 200, replyOf(t, "fetchSync", "sync", `"ready"`, `"idle"`), `data.status must be one of Ready, Up to Date, Failing, ready, up to date, failing, is "idle"`},
		{"fetchSync", 200, replyOf(t, "fetchSync", "sync", `"paused"`, `"stopped"`), "data.stopped is unknown; data.paused is required"},
		{"fetchSync", 200, replyOf(t, "fetchSync", "sync", `"position":1`, `"position":"1"`), "data.mappings[1].position must be an integer, is a string"},
		{"fetchSync", 200, replyOf(t, "fetchSync", "sync", `{"liquid_template":"{{ record['name'] | upcase }}"}`, `"{{ record['name'] }}"`), "data.mappings[1].from.data must be an object, is a string"},
		{"fetchSync", 200, replyOf(t, "fetchSync", "sync", "2026-03-04T09:30:00.000Z", "yesterday"), "data.created_at must be a moment such as"},
		{"fetchSync", 200, replyOf(t, "fetchSync", "sync", `"success"`, `"updated"`), `status must be success, is "updated"`},
		{"fetchSync", 201, replyOf(t, "fetchSync", "sync"), "check response of fetchSync: the document has no status 201, only [200 400 401 403 404 429]"},
		{"fetchSync", 200, []byte(`{"status":"success","data":`), "body is malformed JSON at line 1, column 28"},
		{"fetchSync", 200, nil, "body is malformed JSON"},
		{"fetchSync", 200, replyOf(t, "fetchSync", "sync", `"paused":false`, `"paused":false,"paused":true`), "data.paused stands more than once"},
		{"updateSync", 200, replyOf(t, "updateSync", "updated", `0.7`, `1.5`), "data.match_rate_details.match_rate must be at most 1, is 1.5"},
		{"updateSync", 200, replyOf(t, "updateSync", "updated"), ""},
		{"createSync", 200, []byte(`{"status":"created","data":{"sync_id":1}}`), ""},
		{"createSync", 200, []byte(`{"status":"created","data":{"id":1}}`), "data.id is unknown; data.sync_id is required"},
		{"createSync", 200, []byte(`{"status":"done","data":{}}`), `status must be one of created, success, is "done"`},
		{"listSyncs", 200, []byte(`{"status":"success","data":[]}`), "pagination is required"},
		{"listSourceTypes", 200, replyOf(t, "listSourceTypes", "rules, live"), ""},
		{"listSourceTypes", 200, replyOf(t, "listSourceTypes", "rules, live", `["required"]`, `5`), "rules must be a string or an array, is a number"},
		{"fetchWorkspaceKey", 200, []byte(`{"api_key":""}`), "api_key must not be empty"},
		{"fetchSync", 404, []byte(`{"status":404}`), ""},
		{"fetchSync", 404, []byte(`{"status":"not_found","message":"m","errors":[]}`), ""},
		{"fetchSync", 404, []byte(`{"status":"gone"}`), `status must be one of error, not_found, is "gone"`},
		{"fetchSync", 404, []byte(`{"status":true}`), "status must be a string or an integer, is a boolean"},
		{"fetchSync", 405, []byte(`{"status":"error","message":"m","errors":[]}`), ""},
		{"fetchSync", 503, []byte(`{"status":"error","message":"m"}`), ""},
		{"fetchSync", 500, []byte(`oops`), "check response 500 of fetchSync: body is malformed JSON"},
		{"fetchSync", 600, []byte(`{}`), "has no status 600"},
		{"cancelSyncRun", 200, []byte(`{"status":"canceled","data":{}}`), `status must be cancelled, is "canceled"`},
		{"fetchModel", 200, replyOf(t, "fetchModel", "model", `"dataset_id="`, `"dataset_id_"`), "data.dataset_id_ is unknown; did you mean dataset_id?; data.dataset_id= is required"},
	} {
		err := findOperation(tc.id).CheckResponse(tc.status, replyHeaders(), tc.body)
		if tc.want == "" {
			require.NoError(t, err, "%s %s", tc.id, tc.body)
			continue
		}
		require.ErrorContains(t, err, tc.want, "%s %s", tc.id, tc.body)
		require.ErrorContains(t, err, tc.id)
	}
}

func TestCheckResponseHeaders(t *testing.T) {
	model := findOperation("fetchModel")
	body := replyOf(t, "fetchModel", "model")
	err := model.CheckResponse(200, http.Header{"Content-Type": {"text/html"}}, body)
	require.EqualError(t, err, "check response 200 of fetchModel: header Content-Type must be application/json; header Deprecation is required")
	require.NoError(t, model.CheckResponse(401, http.Header{"Content-Type": {"application/json"}}, []byte(`{"status":401}`)))
}
