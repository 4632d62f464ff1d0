package destsim

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/reach"
)

// control calls a control endpoint from loopback.
func control(s *Sim, method, path, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.RemoteAddr, r.Host = "[::1]:9", "localhost"
	for i := 0; i+1 < len(header); i += 2 {
		if r.Header.Set(header[i], header[i+1]); header[i] == "From" {
			r.RemoteAddr = header[i+1]
		}
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func TestControlAccess(t *testing.T) {
	s := newSim(t, Config{ControlToken: "c0ntrol", Token: "t"})
	for _, c := range []struct {
		from, header, value, path string
		status                    int
	}{
		{"127.0.0.1:1", "", "", "/_control/counts", 200},
		{"[::1]:1", "", "", "/_control/counts", 200},
		{"", "", "", "/_control/counts", 200},
		{"pipe", "", "", "/_control/counts", 200},
		{"@", "", "", "/_control/counts", 200},
		{"192.0.2.1:1", "", "", "/_control/counts", 403},
		{"192.0.2.1", "", "", "/_control/counts", 403},
		{"192.0.2.1:1", "Authorization", "Bearer t", "/_control/counts", 403},
		{"192.0.2.1:1", "Authorization", "Bearer c0ntrol", "/_control/counts", 200},
		{"192.0.2.1:1", "X-Control-Token", "c0ntrol", "/_control/", 200},
		{"192.0.2.1:1", "X-Control-Token", "", "/_control/", 403},
		{"192.0.2.1:1", "", "", "/_control/counts?control_token=c0ntrol", 200},
		{"192.0.2.1:1", "", "", "/healthz", 200},
		{"127.0.0.1:1", "", "", "/_control/nothing", 404},
		// A call of a service, which a user of it has aimed, whatever token it has.
		{"127.0.0.1:1", reach.Outbound, "service", "/_control/reset", 403},
		{"127.0.0.1:1", reach.Outbound, "service", "/_control/counts?control_token=c0ntrol", 403},
	} {
		w := control(s, http.MethodGet, c.path, "", "From", c.from, cmp.Or(c.header, "X-None"), c.value)
		require.Equal(t, c.status, w.Code, "%+v", c)
	}
	open := newSim(t, Config{})
	require.Equal(t, 403, control(open, http.MethodGet, "/_control/counts", "", "From", "192.0.2.1:1", "X-Control-Token", "").Code, "no token is no key")
}

func TestReadback(t *testing.T) {
	s := newSim(t, Config{})
	write(t, s, "contact", "upsert", `{"email":"é","last_name":"x"}`, `{"email":"b","last_name":"y"}`)
	w := control(s, http.MethodPost, "/_control/readback", `{"object":"contact","identifier_field":"email","identifiers":["\u00e9","none",5,null,"\ud800","b"]}`)
	require.Equal(t, 200, w.Code)
	require.Equal(t, `{"records":[{"identifier":"\u00e9","count":1,"fields":{"email":"é","last_name":"x"}},{"identifier":"b","count":1,"fields":{"email":"b","last_name":"y"}}],"complete":true}`, strings.TrimSpace(w.Body.String()))
	for body, text := range map[string]string{
		`{"object":"kontact","identifier_field":"email","identifiers":[]}`: `unknown object \"kontact\" (did you mean \"contact\"?)`,
		`{"object":"contact","identifier_field":"mail","identifiers":[]}`:  `unknown identifier_field \"mail\" of object \"contact\" (did you mean \"email\"?)`,
		`{"object":"contact","keys":[]}`:                                   `keys: unknown field (one of identifier_field, identifiers, object)`,
		`{`:                                                                `the body is not JSON: it ends too early`,
		`{"object":""}`:                                                    `object: is missing (one of contact, order, event)`,
	} {
		w := control(s, http.MethodPost, "/_control/readback", body)
		require.Equal(t, 400, w.Code)
		require.Contains(t, w.Body.String(), text)
	}
}

func TestRecordsAndCounts(t *testing.T) {
	stores(t, func(t *testing.T, config Config) {
		s := newSim(t, config)
		write(t, s, "contact", "upsert", `{"email":"a","last_name":"x"}`, `{"email":"b","last_name":"x"}`, `{"email":"c","last_name":"x"}`)
		require.Equal(t, `{"records":[{"id":1,"fields":{"email":"a","last_name":"x"}},{"id":2,"fields":{"email":"b","last_name":"x"}}],"total":3,"next":2}`,
			strings.TrimSpace(control(s, http.MethodGet, "/_control/records?object=contact&limit=2", "").Body.String()))
		require.Equal(t, `{"records":[{"id":3,"fields":{"email":"c","last_name":"x"}}],"total":3,"next":null}`,
			strings.TrimSpace(control(s, http.MethodGet, "/_control/records?object=contact&limit=2&after=2", "").Body.String()))
		require.Equal(t, `{"calls":{"by_method":{"sync_batch":1},"total":1},"records":{"contact":3,"event":0,"order":0}}`,
			strings.TrimSpace(control(s, http.MethodGet, "/_control/counts", "").Body.String()))
		require.Equal(t, 400, control(s, http.MethodGet, "/_control/records?object=x", "").Code)
		require.Equal(t, 400, control(s, http.MethodGet, "/_control/records?object=contact&limit=0", "").Code)
		require.Equal(t, 200, control(s, http.MethodPost, "/_control/reset", "").Code)
		require.Equal(t, `{"calls":{"by_method":{},"total":0},"records":{"contact":0,"event":0,"order":0}}`,
			strings.TrimSpace(control(s, http.MethodGet, "/_control/counts", "").Body.String()))
		_, _, err := s.Records("contakt", 0, 1)
		require.EqualError(t, err, `unknown object "contakt" (did you mean "contact"?)`)
		_, _, err = s.Records("contact", 0, -1)
		require.EqualError(t, err, "limit -1 is negative")
	})
}

func TestHooks(t *testing.T) {
	s := newSim(t, Config{Token: "old"})
	hook := func(name, body string) string {
		return strings.TrimSpace(control(s, http.MethodPost, "/_control/hooks/"+name, body).Body.String())
	}
	with := func(token, method, params string) string {
		return post(s, string(rpc.EncodeRequest(nil, method, []byte(params), "id-1")), "Authorization", "Bearer "+token).Body.String()
	}
	batch := func(records ...string) string {
		return with("old", rpc.MethodSyncBatch, planOf(s, "contact", "upsert", "email", records...))
	}
	fields := func() string { return with("old", rpc.MethodListFields, `{"object":{"object_api_name":"contact"}}`) }

	batch(`{"email":"a","last_name":"x"}`, `{"email":"b","last_name":"x"}`)
	require.Equal(t, `{"ok":true,"deleted":1}`, hook("cleanup", `{"hook":"cleanup","object":"contact","identifier_field":"email","identifiers":["a","z"]}`))
	require.Empty(t, stored(t, s, "contact", "email", `"a"`))
	require.Equal(t, `{"ok":true}`, hook("restart", `{"hook":"restart"}`))
	require.NotEmpty(t, stored(t, s, "contact", "email", `"b"`), "memory stands for the destination behind the endpoint")

	before := fields()
	altered := `{"ok":true,"object":"contact","field":"zz_altered","label":"Contact (altered)"}`
	require.Equal(t, altered, hook("alter_schema", `{"hook":"alter_schema","object":"contact","action":"begin"}`))
	require.Equal(t, altered, hook("alter_schema", `{"hook":"alter_schema","object":"contact","action":"begin"}`), "twice is once")
	require.Contains(t, fields(), `"zz_altered"`)
	require.Contains(t, with("old", rpc.MethodListObjects, `{}`), `"Contact (altered)"`)
	require.Contains(t, batch(`{"email":"c","last_name":"x","zz_altered":"y"}`), `"success":true`)
	require.Contains(t, hook("alter_schema", `{"hook":"alter_schema","object":"contact","action":"end"}`), `"label":"Contact"`)
	require.Contains(t, hook("alter_schema", `{"hook":"alter_schema","object":"contact","action":"end"}`), `"ok":true`)
	require.Equal(t, before, fields())

	require.Equal(t, `{"ok":true}`, hook("break_downstream", `{"hook":"break_downstream","action":"begin"}`))
	require.Equal(t, []string{downstreamDown, downstreamDown}, words(t, batch(`{"email":"d","last_name":"x"}`, `{"email":"b","last_name":"y"}`)))
	require.Equal(t, `{"ok":true}`, hook("break_downstream", `{"hook":"break_downstream","action":"end"}`))
	require.Empty(t, stored(t, s, "contact", "email", `"d"`))
	require.Equal(t, `{"ok":true,"token":"old-rotated"}`, hook("rotate_token", `{"hook":"rotate_token","action":"begin"}`))
	require.Equal(t, `{"ok":true,"token":"old"}`, hook("rotate_token", `{"hook":"rotate_token","action":"end"}`))

	require.Contains(t, hook("cleanupp", `{}`), `unknown hook \"cleanupp\" (did you mean \"cleanup\"?)`)
	require.Contains(t, hook("cleanup", `{"object":"x"}`), `unknown object`)
	require.Contains(t, hook("cleanup", `{"object":"contact","identifier_field":"x"}`), `unknown identifier_field`)
	require.Contains(t, hook("restart", `{"action":"stop"}`), `unknown action`)
	require.Contains(t, hook("restart", `nonsense`), `the body is not JSON: line 1, column 1: not one of true, false, null`)
}

func TestHooksFile(t *testing.T) {
	require.Equal(t, `# yaml-language-server: $schema=https://raw.githubusercontent.com/destkit/destkit/main/cmd/destkit/schemas/hooks.json
cleanup:
  url: "http://127.0.0.1:1/_control/hooks/cleanup"
restart:
  url: "http://127.0.0.1:1/_control/hooks/restart"
alter_schema:
  url: "http://127.0.0.1:1/_control/hooks/alter_schema"
break_downstream:
  url: "http://127.0.0.1:1/_control/hooks/break_downstream"
rotate_token:
  url: "http://127.0.0.1:1/_control/hooks/rotate_token"
timeout: 10s
`, string(Config{}.HooksFile("http://127.0.0.1:1/")))
	require.Contains(t, string(Config{ControlToken: "a b&c"}.HooksFile("https://h:1")), `/_control/hooks/restart?control_token=a+b%26c"`)
}

func TestSchemaChanges(t *testing.T) {
	s := newSim(t, Config{})
	change := func(body string) *httptest.ResponseRecorder {
		return control(s, http.MethodPost, "/_control/schema", body)
	}
	for _, c := range []struct{ body, method, params, shows string }{
		{`{"action":"add_field","object":"order","definition":{"name":"note","type":"string"}}`, "list_fields", `{"object":{"object_api_name":"order"}}`, `"field_api_name":"note","label":"note","identifier":false,"required":false,"createable":true,"updateable":true,"type":"string"`},
		{`{"action":"change_field","object":"order","field":"note","definition":{"type":"integer","updateable":false}}`, "list_fields", `{"object":{"object_api_name":"order"}}`, `"field_api_name":"note","label":"note","identifier":false,"required":false,"createable":true,"updateable":false,"type":"integer"`},
		{`{"action":"rename_field","object":"order","field":"note","to":"remark"}`, "list_fields", `{"object":{"object_api_name":"order"}}`, `"field_api_name":"remark"`},
		{`{"action":"set_operations","object":"order","operations":["update"]}`, "supported_operations", `{"object":{"object_api_name":"order"}}`, `"operations":["update"]`},
		{`{"action":"add_object","new":{"name":"visit","operations":["insert"],"fields":[{"name":"id","type":"integer","identifier":true}]}}`, "list_objects", `{}`, `{"object_api_name":"visit","label":"visit"}`},
		{`{"action":"remove_object","object":"visit"}`, "supported_operations", `{"object":{"object_api_name":"visit"}}`, `unknown object`},
		{`{"action":"set_speed","speed":{"maximum_batch_size":1,"maximum_parallel_batches":2,"maximum_records_per_second":3}}`, "get_sync_speed", `{}`, `"maximum_batch_size":1,"maximum_parallel_batches":2,"maximum_records_per_second":3`},
	} {
		w := change(c.body)
		require.Equal(t, 200, w.Code, w.Body.String())
		require.Contains(t, invoke(s, c.method, c.params), c.shows)
	}
	require.Equal(t, 200, change(`{"action":"set_rate_limit","rate_limit":0}`).Code)
	require.Empty(t, post(s, `{}`).Header().Get("X-RateLimit-Limit"))
	for body, text := range map[string]string{
		`{"action":"add_feild","object":"order"}`:                                              `unknown action \"add_feild\" (did you mean \"add_field\"?)`,
		`{"action":"add_field","object":"order"}`:                                              `definition: the field is missing`,
		`{"action":"add_field","object":"order","definition":{"name":"x","type":"y"}}`:         `definition.type: unknown type`,
		`{"action":"add_field","object":"order","definition":{"name":"total","type":"float"}}`: `field \"total\" exists`,
		`{"action":"remove_field","object":"order","field":"x"}`:                               `unknown field \"x\" of object \"order\"`,
		`{"action":"rename_field","object":"order","field":"total","to":"status"}`:             `to: \"status\" is empty or taken`,
		`{"action":"set_operations","object":"order","operations":["delete"]}`:                 `never advertised`,
		`{"action":"remove_object","object":"x"}`:                                              `unknown object`,
		`{"action":"add_object"}`:                                                              `new: the object is missing`,
		`{"action":"add_object","new":{"name":"v","operations":["insert"]}}`:                   `at least one field must be an identifier`,
		`{"action":"set_speed","speed":{"maximum_batch_size":1}}`:                              `three integers`,
		`{"action":"set_rate_limit"}`:                                                          `rate_limit: an integer`,
	} {
		w := change(body)
		require.Equal(t, 400, w.Code, body)
		require.Contains(t, w.Body.String(), text)
	}
}

// TestControlRefusesInPlainWords: every refusal is JSON, and names what is expected.
func TestControlRefusesInPlainWords(t *testing.T) {
	s := newSim(t, Config{})
	for _, c := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"POST", "/_control/violations", `{"violate":"RES-002"}`, 400, "violate: must be a list of strings, not a string"},
		{"POST", "/_control/violations", `{"violated":[]}`, 400, `violated: unknown field (did you mean "violate"?)`},
		{"POST", "/_control/schema", `{}`, 400, "action: is missing (one of " + strings.Join(schemaActions, ", ") + ")"},
		{"POST", "/_control/schema", `{"action":"zzz"}`, 400, `action: unknown action "zzz" (one of ` + strings.Join(schemaActions, ", ") + ")"},
		{"GET", "/_control/records", "", 400, "object: is missing (one of contact, order, event)"},
		{"GET", "/_control/records?objct=contact", "", 400, `objct: unknown parameter (did you mean "object"?)`},
		{"GET", "/_control/records?object=contact&after=x", "", 400, `after: must be a whole number, not "x"`},
		{"GET", "/_control/records?object=contact&limit=0", "", 400, "limit: must be between 1 and 100000, not 0"},
		{"GET", "/_control/faults?unfird=true", "", 400, `unfird: unknown parameter (did you mean "unfired"?)`},
		{"GET", "/_control/violations?armed=yes", "", 400, `armed: must be true or false, not "yes"`},
		{"GET", "/_control/fualts", "", 404, `no endpoint "/_control/fualts" (did you mean "faults"?); GET /_control lists all`},
		{"PUT", "/_control/records", "", 405, "/_control/records does not take PUT, only GET, HEAD"},
		{"PUT", "/_control/schema", "", 405, "/_control/schema does not take PUT, only POST"},
		{"POST", "/healthz", "", 405, "/healthz does not take POST, only GET, HEAD"},
	} {
		w := control(s, c.method, c.path, c.body)
		require.Equal(t, c.status, w.Code, c.path)
		require.Equal(t, "application/json", w.Header().Get("Content-Type"), c.path)
		var refused controlError
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &refused), w.Body.String())
		require.Equal(t, c.want, refused.Error)
		if c.status == http.StatusMethodNotAllowed {
			require.Contains(t, c.want, "only "+w.Header().Get("Allow"))
		}
	}
	require.Equal(t, 200, control(s, http.MethodGet, "/_control/records?object=contact&control_token=x", "").Code)
	require.Equal(t, http.StatusTemporaryRedirect, control(s, http.MethodGet, "/_control//records", "").Code)
}

// TestProfileIsGuarded: the program's handler is behind the guard of the
// other routes, and absent without one.
func TestProfileIsGuarded(t *testing.T) {
	profile := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte("profile of " + r.URL.Path)) })
	s := newSim(t, Config{ControlToken: "c0ntrol", Profile: profile})
	w := control(s, http.MethodGet, "/_control/pprof/heap", "")
	require.Equal(t, "profile of /_control/pprof/heap", w.Body.String())
	require.Equal(t, 200, control(s, http.MethodGet, "/_control/pprof", "").Code)
	require.Equal(t, 405, control(s, http.MethodPost, "/_control/pprof/heap", "").Code)
	require.Equal(t, 403, control(s, http.MethodGet, "/_control/pprof/heap", "", "From", "192.0.2.1:1").Code)
	require.Equal(t, 200, control(s, http.MethodGet, "/_control/pprof/heap", "", "From", "192.0.2.1:1", "X-Control-Token", "c0ntrol").Code)
	require.Contains(t, control(s, http.MethodGet, "/_control", "").Body.String(), `"/_control/pprof/"`)
	bare := newSim(t, Config{})
	require.Equal(t, 404, control(bare, http.MethodGet, "/_control/pprof/heap", "").Code)
	require.NotContains(t, control(bare, http.MethodGet, "/_control", "").Body.String(), "pprof")
}
