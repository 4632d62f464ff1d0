package command

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestForThisMachine: whoever may read the figures of a load gets no profiles
// unless it is this machine.
func TestForThisMachine(t *testing.T) {
	handler := ForThisMachine(http.HandlerFunc(ServeProfiles))
	for name, tc := range map[string]struct {
		from, host, path, header string
		status                   int
	}{
		"this machine":      {"127.0.0.1:9", "127.0.0.1:9090", "/debug/pprof/", "", 200},
		"localhost":         {"[::1]:9", "localhost:9090", "/debug/pprof/goroutine", "", 200},
		"IPv6":              {"[::1]:9", "[::1]:9090", "/debug/pprof/heap", "", 200},
		"no slash":          {"127.0.0.1:9", "127.0.0.1", "/debug/pprof", "", 307},
		"another machine":   {"192.0.2.7:9", "127.0.0.1:9090", "/debug/pprof/", "", 403},
		"a rebound name":    {"127.0.0.1:9", "evil.example:9090", "/debug/pprof/heap", "", 403},
		"a name like it":    {"127.0.0.1:9", "127.0.0.1.evil.example", "/debug/pprof/heap", "", 403},
		"through a proxy":   {"127.0.0.1:9", "127.0.0.1", "/debug/pprof/heap", "192.0.2.7", 403},
		"its arguments":     {"127.0.0.1:9", "127.0.0.1", "/debug/pprof/cmdline", "", 404},
		"no such a profile": {"127.0.0.1:9", "127.0.0.1", "/debug/pprof/x", "", 404},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "http://"+tc.host+tc.path, nil)
			r.RemoteAddr = tc.from
			if tc.header != "" {
				r.Header.Set("X-Forwarded-For", tc.header)
			}
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			require.Equal(t, tc.status, w.Code, w.Body.String())
		})
	}
}
