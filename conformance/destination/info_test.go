package destination_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/internal/matrixtest"
)

// rewriting changes the replies of the endpoint, never those of its control.
func rewriting(inner http.Handler, change func(request, reply map[string]any)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/_control") {
			inner.ServeHTTP(w, r)
			return
		}
		var body bytes.Buffer
		_, _ = body.ReadFrom(r.Body)
		copied := r.Clone(r.Context())
		copied.Body = &readCloser{bytes.NewReader(body.Bytes())}
		rec := httptest.NewRecorder()
		inner.ServeHTTP(rec, copied)
		var request, reply map[string]any
		answer := rec.Body.Bytes()
		if decode(body.Bytes(), &request) && decode(answer, &reply) {
			change(request, reply)
			answer, _ = json.Marshal(reply)
		}
		for name, values := range rec.Header() {
			if name != "Content-Length" {
				w.Header()[name] = values
			}
		}
		w.WriteHeader(rec.Code)
		_, _ = w.Write(answer)
	})
}

type readCloser struct{ *bytes.Reader }

func (readCloser) Close() error { return nil }

// decode keeps numbers as they are written.
func decode(data []byte, into *map[string]any) bool {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return d.Decode(into) == nil
}

// TestMatrixInfoVariants: an INFO check notes what it sees and never fails, whatever
// the endpoint does there.
func TestMatrixInfoVariants(t *testing.T) {
	matrixtest.Long(t)
	unlimited := simConfig()
	unlimited.RateLimit = -1
	nothing := func(_, _ map[string]any) {}
	echo := func(request, reply map[string]any) { reply["method"] = request["method"] }
	nullMessage := func(_, reply map[string]any) {
		result, _ := reply["result"].(map[string]any)
		list, _ := result["record_results"].([]any)
		for _, r := range list {
			if m, ok := r.(map[string]any); ok && m["success"] == true {
				m["error_message"] = nil
			}
		}
	}
	notification := func(request, reply map[string]any) {
		if _, has := request["id"]; !has {
			reply["error"] = map[string]any{"code": -32600, "message": "no id"}
			delete(reply, "result")
		}
	}
	for _, c := range []struct {
		check  string
		config destsim.Config
		change func(request, reply map[string]any)
		note   string
	}{
		{"RPC-017", simConfig(), echo, "method"},
		{"RPC-018", simConfig(), notification, "reply to"},
		{"RES-007", simConfig(), nullMessage, "null"},
		{"RL-006", unlimited, nothing, "50000"},
		{"DUP-004", simConfig(), nothing, "older"},
		{"VER-001", simConfig(), nothing, "v1"},
	} {
		t.Run(c.check, func(t *testing.T) {
			if testing.Short() && c.check != "RES-007" {
				t.Skip("with -short one stands for all: each is a whole run of the judge")
			}
			r := judgeOn(t, nil, memory(func(t *testing.T) *bench {
				b := inMemory(t, c.config)
				b.target.Handler = rewriting(b.sim, c.change)
				b.opts.Load = false
				return b
			}))
			require.Empty(t, tripped(r), explain(r, tripped(r)))
			for _, got := range r.Checks {
				if got.ID == c.check {
					require.Equal(t, conformance.Pass, got.Status)
					require.Contains(t, strings.Join(got.Notes, "\n"), c.note)
				}
			}
		})
	}
}
