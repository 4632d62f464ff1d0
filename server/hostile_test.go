package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/control"
	"github.com/destkit/destkit/server/internal/organizations"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/store"
)

// stalled is a body, and a writer of an answer, that stops until it is let go.
type stalled struct {
	http.ResponseWriter
	reached, letGo chan struct{}
}

func newStalled() *stalled {
	return &stalled{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})}
}

func (s *stalled) Read([]byte) (int, error) {
	close(s.reached)
	<-s.letGo
	return 0, io.ErrUnexpectedEOF
}

func (s *stalled) Write(p []byte) (int, error) {
	close(s.reached)
	<-s.letGo
	return s.ResponseWriter.Write(p)
}

// TestSlowClientsHoldNobody: a snapshot waits for the calls under way, and all
// calls wait for it. So a client that sends its body or reads its answer slowly
// must not count as under way.
func TestSlowClientsHoldNobody(t *testing.T) {
	for name, tc := range map[string]struct {
		method, path string
		sends        bool
	}{
		"sends to the API":             {"POST", api.BasePath + "/datasets", true},
		"reads from the API":           {"GET", api.BasePath + "/syncs", false},
		"reads a path without meaning": {"GET", api.BasePath + "/nothing", false},
		"sends to the control API":     {"POST", "/_control/faults", true},
		"reads from the control API":   {"GET", "/_control/clock", false},
		"sends a snapshot to restore":  {"POST", "/_control/restore", true},
		"sends a seed":                 {"POST", "/_control/seed", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			slow := newStalled()
			token := w.key
			if !strings.HasPrefix(tc.path, api.BasePath) {
				token = ""
			}
			r := request(tc.method, "http://127.0.0.1"+tc.path, token, []byte{})
			var out http.ResponseWriter = slow
			if tc.sends {
				r.Body, out = io.NopCloser(slow), slow.ResponseWriter
			}
			served := make(chan struct{})
			go func() { defer close(served); w.s.ServeHTTP(out, r) }()
			<-slow.reached
			require.NoError(t, w.s.Snapshot(t.Context(), io.Discard))
			w.do("GET", "/syncs", w.key, nil).want(200)
			w.control("GET", "/organizations", nil).want(200)
			close(slow.letGo)
			<-served
			if tc.sends {
				require.Equal(t, 400, slow.ResponseWriter.(*httptest.ResponseRecorder).Code)
			}
		})
	}
}

// deadlines is a connection that notes the deadlines that it is given.
type deadlines struct {
	*httptest.ResponseRecorder
	set []time.Time
}

func (d *deadlines) SetReadDeadline(t time.Time) error {
	d.set = append(d.set, t)
	return nil
}

// TestBodiesHaveADeadline: only while they are read, and only where there is one.
// Requests that are refused anyway are not read at all.
func TestBodiesHaveADeadline(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.MaxBody = 1000 })
	send := func(method, path, token string, body io.Reader) *deadlines {
		d := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		r := httptest.NewRequest(method, "http://127.0.0.1"+path, body)
		r.RemoteAddr, r.Header = "127.0.0.1:4711", request(method, path, token, []byte{}).Header
		w.s.ServeHTTP(d, r)
		return d
	}
	require.Empty(t, send("GET", api.BasePath+"/syncs", w.key, nil).set)
	for _, path := range []string{api.BasePath + "/datasets", "/_control/faults"} {
		set := send("POST", path, w.key, strings.NewReader("{}")).set
		require.Len(t, set, 2)
		require.False(t, set[0].IsZero())
		require.True(t, set[1].IsZero())
	}
	never := iotest.ErrReader(errors.New("it was read"))
	require.Equal(t, 401, send("POST", api.BasePath+"/datasets", "", never).Code)
	require.Equal(t, 400, send("POST", api.BasePath+"/datasets", w.key, never).Code)
	require.Equal(t, 413, send("POST", api.BasePath+"/datasets", w.key, strings.NewReader(strings.Repeat(" ", 1001))).Code)
}

// TestLiveIgnoresKeysInOtherLetters: encoding/json takes NAME for name, past
// every check of the document.
func TestLiveIgnoresKeysInOtherLetters(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Dialect = DialectLive })
	a := w.do("PATCH", "/workspaces/1", w.pat, `{"name":"Right","NAME":"`+strings.Repeat("x", 5000)+`"}`).want(200)
	require.Equal(t, "Right", a.at("data.name"))
	require.Equal(t, `299 - "unknown field NAME was ignored"`, a.header.Get("Warning"))
	w.do("PATCH", "/workspaces/1", w.pat, `{"Name":7}`).want(200)
	source := w.do("POST", "/sources", w.key, `{"connection":{"name":"Rows","Name":7,"type":"generator","TYPE":"sqlite","credentials":{"rows":3}}}`).want(201)
	require.Equal(t, "generator", source.at("data.type"))
	body := syncBody(w.newSource(), w.newDestination())
	body["Operation"] = "bogus"
	body["mappings"].([]any)[0].(map[string]any)["FROM"] = map[string]any{"type": "column", "data": "name"}
	id := w.do("POST", "/syncs", w.key, body).want(200).id("data.sync_id")
	stored := w.do("GET", fmt.Sprintf("/syncs/%d", id), w.key, nil).want(200)
	stored.is("data.operation", "upsert", "data.mappings.0.from.data", "email")
	w.do("POST", fmt.Sprintf("/syncs/%d/trigger", id), w.key, `{"FORCE_FULL_SYNC":"yes"}`).want(200)
}

// TestManyUnknownFields: the warnings stay fewer than the headers that clients
// take, and are ASCII.
func TestManyUnknownFields(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Dialect = DialectLive })
	body := map[string]any{"name": "Main", "Straße\u2028": 1}
	for i := range 1000 {
		body[fmt.Sprintf("unknown_%d", i)] = i
	}
	warnings := w.do("PATCH", "/workspaces/1", w.pat, body).want(200).header.Values("Warning")
	require.Len(t, warnings, call.MaxWarnings+1)
	require.Contains(t, warnings[call.MaxWarnings], "more")
	for _, warning := range w.do("PATCH", "/workspaces/1", w.pat, map[string]any{"Straße\u2028": 1}).want(200).header.Values("Warning") {
		for _, b := range []byte(warning) {
			require.True(t, b >= ' ' && b <= '~', "%q", warning)
		}
	}
}

// TestSourcesKeepOut: who may make a source must not read the service's own
// secrets through it, whatever name leads there.
func TestSourcesKeepOut(t *testing.T) {
	dir, aside := filepath.Join(t.TempDir(), "data"), t.TempDir()
	key := filepath.Join(aside, "master.csv")
	require.NoError(t, writeFile(key, []byte("secret-of-all\n")))
	w := newWorld(t, func(c *Config) { c.Dir, c.MasterKey, c.Private = dir, make([]byte, 32), []string{key} })
	link := func(to, name string) string {
		path := filepath.Join(aside, name)
		require.NoError(t, os.Symlink(to, path))
		return path
	}
	hard := filepath.Join(aside, "hard.csv")
	require.NoError(t, os.Link(key, hard))
	folder := filepath.Join(aside, "folder")
	require.NoError(t, os.Mkdir(folder, 0o700))
	require.NoError(t, os.Symlink(key, filepath.Join(folder, "users.csv")))
	database := filepath.Join(dir, "destkit.db")
	for name, tc := range map[string]struct{ typ, path string }{
		"database":                {"sqlite", database},
		"database as text":        {"csv", database},
		"roundabout":              {"sqlite", filepath.Join(dir, "files") + "/../destkit.db"},
		"link to the database":    {"sqlite", link(database, "db.sqlite")},
		"link to the folder":      {"sqlite", filepath.Join(link(dir, "inside"), "destkit.db")},
		"the folder":              {"csv", dir},
		"key":                     {"csv", key},
		"hard link to the key":    {"jsonl", hard},
		"link to the key":         {"csv", link(key, "soft.csv")},
		"folder with such a link": {"csv", folder},
		"environment":             {"csv", "/proc/self/environ"},
		"link to it":              {"csv", link("/proc/self/environ", "env.csv")},
		"through descriptors":     {"csv", "/dev/fd/../environ"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := os.Stat(tc.path); err != nil {
				t.Skip("there is no such file on this system")
			}
			a := w.sourceOf(tc.typ, map[string]any{"path": tc.path})
			require.Equal(t, false, a.at("data.last_test_succeeded"), string(a.text))
			require.Regexp(t, "for itself|system's own", a.header.Get("Warning"))
			objects := w.do("GET", fmt.Sprintf("/sources/%d/objects", a.id("data.id")), w.key, nil).want(200)
			require.Empty(t, objects.at("data"))
		})
	}
	// Files that local_files destinations write there are no secret.
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "files", "out"), 0o700))
	written := filepath.Join(dir, "files", "out", "person.csv")
	require.NoError(t, writeFile(written, []byte("email\nada@example.com\n")))
	a := w.sourceOf("csv", map[string]any{"path": written})
	require.Equal(t, true, a.at("data.last_test_succeeded"), a.header.Get("Warning"))
}

// endless is a stream of zeros without end.
type endless struct{}

func (endless) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// TestWrongFilesAreNoSnapshots: a file that is none is refused at its first
// bytes, of whatever size it is.
func TestWrongFilesAreNoSnapshots(t *testing.T) {
	w := newWorld(t)
	require.ErrorContains(t, w.s.Restore(t.Context(), endless{}), "no snapshot")
}

// TestLongNamesOfOrganizations: no document looks at what the control API takes.
func TestLongNamesOfOrganizations(t *testing.T) {
	w := newWorld(t)
	long := strings.Repeat("ä", organizations.MaxName)
	w.control("POST", "/organizations", map[string]any{"name": long}).want(201)
	w.control("POST", "/organizations", map[string]any{"name": long + "ä"}).want(400)
	w.control("POST", "/seed", fmt.Sprintf("organizations: [{name: %q}]", long+"ä")).want(400)
}

// TestControlSurvivesPanics: a mistake of a handler is an answer.
func TestControlSurvivesPanics(t *testing.T) {
	w := newWorld(t)
	door := control.NewAPI(control.APIParts{
		Log: w.s.log, Lock: w.s.lock, Metrics: http.NotFoundHandler(),
		Held: []call.ControlRoute{call.Route("POST", "/x", "panics", func(*call.Control) (any, error) { panic("secret-word") })},
	})
	recorder := serve(door.Handler(), httptest.NewRequest("POST", "/_control/x", nil))
	require.Equal(t, 500, recorder.Code)
	require.True(t, json.Valid(recorder.Body.Bytes()))
	require.NotContains(t, recorder.Body.String(), "secret-word")
	require.NoError(t, w.s.Snapshot(context.Background(), io.Discard), "the world is not held")
	require.Equal(t, http.StatusServiceUnavailable, problem.Of(store.ErrClosed).Code)
	require.NotContains(t, problem.Of(errors.New("SELECT name FROM syncs")).Message, "SELECT", "a failure tells nothing of what the service is made of")
}
