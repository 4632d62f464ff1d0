package server

import (
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/api"
)

// TestFrontPage: who opens the address finds the way, as a person or as a program,
// and no token.
func TestFrontPage(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Dialect, c.Version = DialectLive, "v9" })
	const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
	for name, tc := range map[string]struct {
		path, accept, kind string
	}{
		"a browser":               {"/", browser, "text/html; charset=utf-8"},
		"a browser at the API":    {api.BasePath, browser, "text/html; charset=utf-8"},
		"a program":               {"/", "*/*", "application/json; charset=utf-8"},
		"no wish":                 {"/", "", "application/json; charset=utf-8"},
		"both, JSON first":        {"/", "text/html;q=0.5, application/json", "application/json; charset=utf-8"},
		"no page":                 {"/", "text/html;q=0, */*", "application/json; charset=utf-8"},
		"a wish that is no media": {"/", ";;;", "application/json; charset=utf-8"},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest("GET", "http://127.0.0.1:8080"+tc.path, nil)
			r.Header.Set("Accept", tc.accept)
			recorder := httptest.NewRecorder()
			w.s.ServeHTTP(recorder, r)
			h := recorder.Header()
			require.Equal(t, 200, recorder.Code)
			require.Equal(t, tc.kind, h.Get("Content-Type"))
			for _, part := range []string{
				"http://127.0.0.1:8080/api/v1", "http://127.0.0.1:8080/openapi.yaml", "http://127.0.0.1:8080/_control", "http://127.0.0.1:8080/healthz",
				"live", "v9", "new-token", "docs/service.md",
			} {
				require.Contains(t, recorder.Body.String(), part)
			}
			require.NotContains(t, recorder.Body.String(), w.key)
			require.NotContains(t, recorder.Body.String(), w.pat)
			require.Less(t, recorder.Body.Len(), 8<<10)
			require.Contains(t, h.Get("Content-Security-Policy"), "default-src 'none'")
			require.Equal(t, []string{"no-cache", "Accept", "nosniff"}, []string{h.Get("Cache-Control"), h.Get("Vary"), h.Get("X-Content-Type-Options")})
			r.Header.Set("If-None-Match", h.Get("ETag"))
			again := httptest.NewRecorder()
			w.s.ServeHTTP(again, r)
			require.Equal(t, 304, again.Code)
			require.Empty(t, again.Body.String())
		})
	}
	require.Equal(t, "v1", w.do("GET", "", "", nil).want(200).at("data.version"), "programs get the version from the API")
	evil := httptest.NewRequest("GET", "/", nil)
	evil.Host = `x"><script>alert(1)</script>`
	evil.Header.Set("Accept", browser)
	require.NotContains(t, string(w.send(evil).want(200).text), "<script>")
	require.Equal(t, "GET", w.send(httptest.NewRequest("POST", "/", nil)).want(405).header.Get("Allow"))
	w.send(httptest.NewRequest("GET", "/nothing", nil)).want(404)
}
