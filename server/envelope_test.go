package server

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/openapi"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
)

// TestErrors: one shape in the spec dialect, the published ones in the live one.
func TestErrors(t *testing.T) {
	proves(t, "F-7.1-01", "F-7.1-04", "F-7.1-05", "F-7.1-06", "F-7.1-07", "F-7.1-09", "F-7.1-11", "F-9-01")
	spec := newWorld(t, func(c *Config) { c.MaxBody = 1000 })
	live := newWorld(t, func(c *Config) { c.Dialect, c.MaxBody = DialectLive, 1000 })
	for _, one := range []struct {
		name, method, path, body string
		token                    func(*world) string
		code                     int
		status                   string
		live                     string
	}{
		{"unknown field", "POST", "/workspaces", `{"name":"x","role":7,"name2":"y"}`, (*world).personal, 400, "error", ""},
		{"malformed", "POST", "/workspaces", `{"name":`, (*world).personal, 400, "error", `{"status":"error","message":"…"}`},
		{"empty body", "POST", "/workspaces", ``, (*world).personal, 400, "error", `{"status":"error","message":"…"}`},
		{"an array", "POST", "/workspaces", `[]`, (*world).personal, 400, "error", `{"status":"error","message":"…"}`},
		{"invalid UTF-8", "POST", "/workspaces", "{\"name\":\"\xff\xfe\"}", (*world).personal, 400, "error", `{"status":"error","message":"…"}`},
		{"wrong type", "POST", "/workspaces", `{"name":["x"]}`, (*world).personal, 400, "error", `{"status":"error","message":"…"}`},
		{"a number as a name", "POST", "/destinations", `{"service_connection":{"name":7,"type":"custom_api","credentials":{}}}`, (*world).workspaceKey, 400, "error", `{"status":"error","message":"…"}`},
		{"id that is no number", "GET", "/syncs/abc", ``, (*world).workspaceKey, 400, "error", `{"status":"error","message":"…"}`},
		{"id too large", "GET", "/syncs/99999999999999999999", ``, (*world).workspaceKey, 400, "error", `{"status":"error","message":"…"}`},
		{"no token", "GET", "/syncs", ``, (*world).nobody, 401, "error", `{"status":401}`},
		{"wrong kind of token", "GET", "/syncs", ``, (*world).personal, 403, "error", `{"status":403,"message":"…"}`},
		{"unknown id", "GET", "/syncs/999", ``, (*world).workspaceKey, 404, "not_found", `{"status":404}`},
		{"another method", "PUT", "/syncs", ``, (*world).workspaceKey, 405, "error", `{"status":405,"message":"…"}`},
		{"body too large", "POST", "/workspaces", `{"name":"` + strings.Repeat("x", 2000) + `"}`, (*world).personal, 413, "error", `{"status":"error","message":"…"}`},
	} {
		t.Run(one.name, func(t *testing.T) {
			a := spec.do(one.method, one.path, one.token(spec), one.body).want(one.code)
			require.Equal(t, one.status, a.at("status"))
			require.NotEmpty(t, a.at("message"))
			for _, p := range a.at("errors").([]any) {
				require.Len(t, p, 2, "field and message")
			}
			require.NotContains(t, string(a.text), "goroutine")
			require.Equal(t, one.code == http.StatusMethodNotAllowed, a.header.Get("Allow") != "")
			if one.name == "a number as a name" {
				require.Contains(t, a.problems(), "service_connection.name")
			}
			if one.live != "" {
				b := live.do(one.method, one.path, one.token(live), one.body).want(one.code)
				got := regexp.MustCompile(`"message":"(\\.|[^"\\])*"`).ReplaceAllString(string(b.text), `"message":"…"`)
				require.JSONEq(t, one.live, got)
			}
		})
	}
}

func (w *world) personal() string     { return w.pat }
func (w *world) workspaceKey() string { return w.key }
func (w *world) nobody() string       { return "" }

// TestUnknownFields: refused, or ignored with a warning.
func TestUnknownFields(t *testing.T) {
	proves(t, "F-7.1-13")
	body := map[string]any{"name": "Named", "colour": "red"}
	w := newWorld(t)
	require.Contains(t, w.do("POST", "/workspaces", w.pat, body).want(400).problems(), "colour")
	live := newWorld(t, func(c *Config) { c.Dialect = DialectLive })
	a := live.do("POST", "/workspaces", live.pat, body).want(201)
	require.Contains(t, a.header.Get("Warning"), "colour")
	require.Equal(t, "Named", a.at("data.name"))
}

// switchNames are the names of all switches, as the document has them.
func switchNames() map[string]bool {
	names := map[string]bool{}
	for field := range reflect.TypeFor[call.Switches]().Fields() {
		names[field.Tag.Get("switch")] = true
	}
	return names
}

// TestDialects: code and document have the same switches, and the partial
// update is one of them.
func TestDialects(t *testing.T) {
	documented := map[string]bool{}
	for _, difference := range openapi.Differences() {
		documented[difference.Name] = true
	}
	require.Equal(t, documented, switchNames(), "server/dialect.go and x-differences name the same switches")
	_, err := Dialect("ruby").switched()
	require.ErrorContains(t, err, `"ruby"`)

	live := newWorld(t, func(c *Config) { c.Dialect = DialectLive })
	path := fmt.Sprintf("/syncs/%d", live.newSync())
	a := live.do("PATCH", path, live.key, map[string]any{"paused": true}).want(200)
	a.is("data.paused", true, "data.status", "Ready")
	types := live.do("GET", "/source_types", live.key, nil).want(200)
	require.IsType(t, []any{}, types.at("data.0.configuration_fields.fields.0.rules"))
	key := live.do("GET", fmt.Sprintf("/workspaces/%d/api_key", live.do("GET", "/workspaces", live.pat, nil).id("data.0.id")), live.pat, nil).want(200)
	require.JSONEq(t, fmt.Sprintf(`{"api_key":%q}`, live.key), string(key.text))
	require.NotEmpty(t, live.do("GET", "/users", live.pat, nil).header.Get("Deprecation"))
	require.True(t, live.do("GET", "/syncs", live.key, nil).want(200).has("next"))
	require.False(t, live.do("POST", fmt.Sprintf("/sources/%d/refresh_tables", live.newSource()), live.key, nil).want(200).has("status"), "refresh keys stand bare")

	spec := newWorld(t)
	require.Empty(t, spec.do("GET", "/users", spec.pat, nil).header.Get("Deprecation"))
	types = spec.do("GET", "/source_types", spec.key, nil).want(200)
	require.IsType(t, "", types.at("data.0.configuration_fields.fields.0.rules"))
}

// TestHEADAndUnusualRequests: net/http's answers to them are still JSON.
func TestHEADAndUnusualRequests(t *testing.T) {
	w := newWorld(t)
	require.Equal(t, http.StatusOK, serve(w.s, request(http.MethodHead, api.BasePath+"/syncs", w.key, nil)).Code)
	short := httptest.NewRequest("POST", api.BasePath+"/workspaces", &brokenBody{})
	short.Header.Set("Authorization", "Bearer "+w.pat)
	a := w.send(short).want(http.StatusBadRequest)
	require.Contains(t, a.at("message"), "ended before")
}

// brokenBody ends before its length.
type brokenBody struct{ given bool }

func (b *brokenBody) Read(p []byte) (int, error) {
	if b.given {
		return 0, fmt.Errorf("connection reset")
	}
	b.given = true
	return copy(p, `{"name":`), nil
}

// TestProblemsOfTheWholeBody: a problem that is about no field is about the body.
func TestProblemsOfTheWholeBody(t *testing.T) {
	w := newWorld(t)
	for body, want := range map[string]string{
		"": "is required: send a JSON object", "[]": "must be an object, is an array", "{": "is malformed JSON at line 1, column 2: a name in quotes should stand here",
	} {
		for _, call := range []struct{ method, path, token string }{{"POST", "/destinations", w.key}, {"POST", "/workspaces", w.pat}} {
			a := w.do(call.method, call.path, call.token, body).want(400)
			a.is("errors.0.field", "body", "errors.0.message", want, "message", "body: "+want)
		}
	}
}
