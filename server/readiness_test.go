package server

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestReadiness: a process is ready until it drains, and alive all the time; so is one
// that is alone.
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
	w, all := newFleet(t, RoleAPI, RoleWorker)
	alone := newWorld(t)
	for _, s := range []*Server{alone.s, all[0], all[1]} {
		require.Eventually(t, func() bool {
			code, body := ask(s, "/readyz")
			return code == http.StatusOK && body == "{\"status\":\"ready\"}\n"
		}, time.Minute, time.Millisecond)
	}
	for _, s := range all {
		require.NoError(t, s.Drain(t.Context()))
		code, body := ask(s, "/readyz")
		require.Equal(t, http.StatusServiceUnavailable, code)
		require.JSONEq(t, `{"status":"unready","reason":"the process is about to stop"}`, body)
		code, _ = ask(s, "/healthz")
		require.Equal(t, http.StatusOK, code)
	}
	w.do("GET", "/syncs", w.key, nil).want(http.StatusOK) // calls are answered to the end
}
