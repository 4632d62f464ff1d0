package server

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestReadiness: a service says to everybody that it is ready and alive.
func TestReadiness(t *testing.T) {
	ask := func(s *Server, path string) (int, string) {
		t.Helper()
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.RemoteAddr = "192.0.2.7:4711" // no token is asked for
		a := httptest.NewRecorder()
		s.ServeHTTP(a, r)
		require.Equal(t, "application/json", a.Header().Get("Content-Type"))
		return a.Code, a.Body.String()
	}
	s := newWorld(t).s
	code, body := ask(s, "/readyz")
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, "{\"status\":\"ready\"}\n", body)
	code, _ = ask(s, "/healthz")
	require.Equal(t, http.StatusOK, code)
}
