package server

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
)

// hostile is a world whose destination misbehaves while armed.
type hostile struct {
	said sayings // the service's log
	*syncWorld
	armed   atomic.Bool
	onSpeed atomic.Pointer[func()] // runs once, before the next get_sync_speed
}

// misbehave answers one call instead of the simulator: id is that of the call,
// pass lets the simulator answer first and gives its reply.
type misbehave func(w http.ResponseWriter, r *http.Request, id string, pass func() []byte)

// newHostile makes the world; the calls of a method are answered by bad.
func newHostile(t testing.TB, timeout time.Duration, method string, bad misbehave, change ...func(*Config)) *hostile {
	t.Helper()
	h := &hostile{}
	w := newWorld(t, append(change, func(c *Config) { c.CallTimeout, c.Log = timeout, slog.New(slog.NewTextHandler(&h.said, nil)) })...)
	sim, err := destsim.New(destsim.Config{Preset: "crm", Token: "destination-token"})
	require.NoError(t, err)
	w.sim = sim
	w.dest = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		var call struct{ ID, Method string }
		_ = json.Unmarshal(body, &call)
		r.Body = io.NopCloser(bytes.NewReader(body))
		if change := h.onSpeed.Load(); change != nil && call.Method == "get_sync_speed" {
			h.onSpeed.Store(nil)
			(*change)()
		}
		if bad == nil || !h.armed.Load() || call.Method != method {
			sim.ServeHTTP(rw, r)
			return
		}
		bad(rw, r, call.ID, func() []byte {
			recorder := httptest.NewRecorder()
			sim.ServeHTTP(recorder, r)
			return recorder.Body.Bytes()
		})
	}))
	t.Cleanup(func() { w.dest.CloseClientConnections(); w.dest.Close(); sim.Close() })
	h.syncWorld = &syncWorld{w, w.newSource(), w.newDestination()}
	h.changeSource(`INSERT INTO customers (id, email, name) VALUES (2, 'grace@example.com', 'Grace'), (3, 'alan@example.com', 'Alan')`)
	return h
}

// says answers a status and a body in which %s is the id.
func says(status int, body string) misbehave {
	return func(w http.ResponseWriter, _ *http.Request, id string, _ func() []byte) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, strings.ReplaceAll(body, "%s", id))
	}
}

// over lets the simulator answer and changes its reply.
func over(change func(reply []byte) []byte) misbehave {
	return func(w http.ResponseWriter, _ *http.Request, _ string, pass func() []byte) {
		_, _ = w.Write(change(pass()))
	}
}

func results(change func(list []any) []any) misbehave {
	return over(func(reply []byte) []byte {
		var whole map[string]any
		if json.Unmarshal(reply, &whole) != nil {
			return reply
		}
		result := whole["result"].(map[string]any)
		result["record_results"] = change(result["record_results"].([]any))
		text, _ := json.Marshal(whole)
		return text
	})
}

// bomb is a small reply that becomes 20 MB.
var bomb = sync.OnceValue(func() []byte {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = io.CopyN(w, zeros{}, 20<<20)
	_ = w.Close()
	return packed.Bytes()
})

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
