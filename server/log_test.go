package server

import (
	"bufio"
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// sayings keeps what many goroutines log, for reading at any time.
type sayings struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (s *sayings) Write(line []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(line)
}

// String is all that was said so far.
func (s *sayings) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// logOfFailure is a log of warnings that is shown where the test fails: an answer such as
// 503 does not show its cause.
func logOfFailure(t testing.TB) *slog.Logger {
	var text sayings
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the service's log:\n%s", text.String())
		}
	})
	return slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// TestLinesOfARun: what is logged of a run names it, its sync and its workspace.
func TestLinesOfARun(t *testing.T) {
	var said sayings
	w := newWorld(t, func(c *Config) {
		c.Log = slog.New(slog.NewJSONHandler(&said, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	id := w.newSync()
	run := w.trigger(id)
	w.control("POST", "/settle", nil).want(200)
	told := 0
	for lines := bufio.NewScanner(strings.NewReader(said.String())); lines.Scan(); {
		var line struct {
			Msg                  string
			Run, Sync, Workspace int64
		}
		require.NoError(t, json.Unmarshal(lines.Bytes(), &line))
		if line.Run == 0 && !strings.Contains(line.Msg, "run") {
			continue
		}
		told++
		require.Equal(t, []int64{run, id, w.s.FirstTokens().WorkspaceID}, []int64{line.Run, line.Sync, line.Workspace}, lines.Text())
	}
	require.Positive(t, told)
	require.Contains(t, said.String(), `"msg":"sync run ended"`)
}

// TestRequestsAreLogged: one line for each request, with who called and without what
// is secret; what is not the API is for those who look closely.
func TestRequestsAreLogged(t *testing.T) {
	for name, tc := range map[string]struct {
		level    slog.Level
		requests bool
		want     []string
	}{
		"info":           {slog.LevelInfo, true, []string{"INFO GET /api/v1/syncs?filter=[hidden]&page=1 400 workspace key", "INFO GET /api/v1/workspaces 200 personal token", "INFO GET /api/v1/syncs 401 nobody", "INFO GET /api/v1/[hidden] 404 nobody"}},
		"debug":          {slog.LevelDebug, true, []string{"INFO GET /api/v1/syncs?filter=[hidden]&page=1 400 workspace key", "INFO GET /api/v1/workspaces 200 personal token", "INFO GET /api/v1/syncs 401 nobody", "INFO GET /api/v1/[hidden] 404 nobody", "DEBUG GET /healthz 200 nobody", "DEBUG GET /_control/[hidden] 404 nobody"}},
		"not asked for":  {slog.LevelDebug, false, nil},
		"warnings alone": {slog.LevelWarn, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var said sayings
			w := newWorld(t, func(c *Config) {
				c.Log, c.Requests, c.ControlToken = slog.New(slog.NewJSONHandler(&said, &slog.HandlerOptions{Level: tc.level})), tc.requests, "control-secret"
			})
			w.do("GET", "/syncs?page=1&filter="+w.key, w.key, nil)
			w.do("GET", "/workspaces", w.pat, nil).want(200)
			w.do("GET", "/syncs", "some-other-token", nil).want(401)
			w.do("GET", "/"+w.key, w.key, nil).want(404)
			w.send(httptest.NewRequest("GET", "/healthz", nil)).want(200)
			r := httptest.NewRequest("GET", "/_control/control-secret", nil)
			r.Header.Set("Authorization", "Bearer control-secret")
			w.send(r).want(404)
			var got []string
			for line := range strings.Lines(said.String()) {
				var one struct {
					Level, Msg, Method, Path, By string
					Status                       int
					MS                           *float64
				}
				require.NoError(t, json.Unmarshal([]byte(line), &one))
				if one.Msg != "request" {
					continue
				}
				require.NotNil(t, one.MS)
				text := must(json.Marshal(one.Status))(t)
				got = append(got, strings.Join([]string{one.Level, one.Method, one.Path, string(text), one.By}, " "))
			}
			require.ElementsMatch(t, tc.want, got)
			lacks(t, said.String(), w.key, w.pat, "some-other-token", "control-secret")
		})
	}
}
