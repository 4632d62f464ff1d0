package destination

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sync/destination/catalogue"
)

// creds makes credentials from JSON text.
func creds(t testing.TB, object string) Credentials {
	t.Helper()
	var c Credentials
	require.NoError(t, json.Unmarshal([]byte(object), &c), object)
	return c
}

// customCreds are checked credentials of a custom destination.
func customCreds(t testing.TB, g *Gate, object string) Credentials {
	t.Helper()
	merged, problems := g.CheckConnection(api.TypeCustomAPI, creds(t, object), nil)
	require.Empty(t, problems)
	return merged
}

// openURL opens a custom destination at a URL without a token.
func openURL(t testing.TB, g *Gate, url string) Connection {
	t.Helper()
	c, err := g.Open(1, api.TypeCustomAPI, customCreds(t, g, `{"webhook_url":`+quote(url)+`}`))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// call makes one call outside of a run.
func call(ctx context.Context, c Connection, method string, params any) (json.RawMessage, *CallError) {
	raw, x, failed := c.(interface {
		exchange(context.Context, string, any) (json.RawMessage, *Exchange, *CallError)
	}).exchange(ctx, method, params)
	x.leave()
	return raw, failed
}

// failedCall is what a call has failed with.
func failedCall(t testing.TB, err error) (failed *CallError) {
	t.Helper()
	require.ErrorAs(t, err, &failed)
	return failed
}

func quote(s string) string { return string(api.Raw(s)) }

// newGate makes a gate that is closed with the test.
func newGate(t testing.TB, options Options) *Gate {
	t.Helper()
	g := New(options)
	t.Cleanup(func() { require.NoError(t, g.Close()) })
	return g
}

// server answers over plain http on loopback.
func server(t testing.TB, handler http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s.URL
}

// secureServer answers over https with the given configuration and gives
// its port.
func secureServer(t testing.TB, config *tls.Config, handler http.Handler) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &http.Server{Handler: handler, ErrorLog: discardLog}
	go s.Serve(tls.NewListener(listener, config))
	t.Cleanup(func() { s.Close() })
	_, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	return port
}

// endpoint answers each method with a fixed result or error object, given as
// the JSON of "result": … or "error": ….
func endpoint(t testing.TB, answers map[string]string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var q rpc.Request
		if json.NewDecoder(r.Body).Decode(&q) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		answer, ok := answers[q.Method]
		if !ok {
			answer = `"error":{"code":-32601,"message":"method not found"}`
		}
		w.Write([]byte(`{"jsonrpc":"2.0","id":` + quote(q.ID) + `,` + answer + `}`))
	}
}

// simulator starts a simulated destination.
func simulator(t testing.TB, config destsim.Config) *destsim.Sim {
	t.Helper()
	s, err := destsim.New(config)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// simulators is an Emulator over destsim that counts what happens to stores.
type simulators struct {
	mu             sync.Mutex
	open, removed  []string
	closed, opened int
	last           *destsim.Sim
}

func (s *simulators) emulate(key string, objects []catalogue.EmulatedObject) (*Emulated, error) {
	config := destsim.Config{}
	for _, o := range objects {
		config.Objects = append(config.Objects, destsim.Described(o.Object, o.Operations, o.Fields))
	}
	sim, err := destsim.New(config)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = append(s.open, key)
	s.opened++
	s.last = sim
	return &Emulated{
		Endpoint: sim,
		Close: func() error {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.closed++
			return sim.Close()
		},
		Remove: func() error {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.removed = append(s.removed, key)
			return nil
		},
	}, nil
}

// steps gives the steps as "name status".
func steps(results api.TestResults) []string {
	list := []string{}
	for _, s := range results.Steps {
		list = append(list, s.Step+" "+s.Status)
	}
	return list
}

// failure gives the message of the failed step, "" without one.
func failure(results api.TestResults) string {
	for _, s := range results.Steps {
		if s.Error != nil {
			return s.Error.Message
		}
	}
	return ""
}

// silentListener accepts connections and sends nothing until hold is
// closed.
func silentListener(t testing.TB, hold <-chan struct{}) (port string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				<-hold
				conn.Close()
			}()
		}
	}()
	_, port, err = net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	return port
}

func readCloser(text []byte) io.ReadCloser { return io.NopCloser(bytes.NewReader(text)) }
