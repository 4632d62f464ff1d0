package server

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/internal/reach"
	"github.com/destkit/destkit/server/internal/control"
)

// arrivals are the calls that got to a server.
type arrivals struct {
	mu    sync.Mutex
	calls []arrival
}

type arrival struct {
	path, mark string
	code       int
}

func (a *arrivals) all() []arrival {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]arrival(nil), a.calls...)
}

// watch notes what comes to a handler, and what becomes of it.
func (a *arrivals) watch(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		recorded := serve(next, r)
		a.mu.Lock()
		a.calls = append(a.calls, arrival{r.URL.Path, r.Header.Get(reach.Outbound), recorded.Code})
		a.mu.Unlock()
		maps.Copy(w.Header(), recorded.Header())
		w.WriteHeader(recorded.Code)
		_, _ = w.Write(recorded.Body.Bytes())
	})
}

// listening is a service on a port, which it knows if told is set.
func listening(t *testing.T, told bool, change ...func(*Config)) (*world, *arrivals, string) {
	ln := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	w := newWorld(t, append(change, func(c *Config) {
		if told {
			c.Listeners = []netip.AddrPort{ln.Addr().(*net.TCPAddr).AddrPort()}
		}
	})...)
	came := &arrivals{}
	port := &http.Server{Handler: came.watch(w.s)}
	go func() { _ = port.Serve(ln) }()
	t.Cleanup(func() { _ = port.Close() })
	return w, came, ln.Addr().String()
}

// accepting gives each connection to a port to a function, one after the other.
func accepting(t testing.TB, each func(net.Conn)) (address string) {
	ln := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	ended := make(chan struct{})
	t.Cleanup(func() { _ = ln.Close(); <-ended })
	go func() {
		defer close(ended)
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			each(conn)
		}
	}()
	return ln.Addr().String()
}

// relay passes connections on, as what makes a port of another machine one of this.
func relay(t *testing.T, to string) string {
	return accepting(t, func(in net.Conn) {
		go func() {
			defer in.Close()
			out, err := net.Dial("tcp", to)
			if err != nil {
				return
			}
			defer out.Close()
			go func() { _, _ = io.Copy(out, in); _ = out.Close() }()
			_, _ = io.Copy(in, out)
		}()
	})
}

// TestServiceNeverCallsItself: a destination whose URL is a route of the control
// API, by whatever name of this machine, on whatever way, does nothing there.
func TestServiceNeverCallsItself(t *testing.T) {
	for name, tc := range map[string]struct {
		told, relayed bool
		token         string
	}{
		"its own listener": {told: true}, "through another port": {told: true, relayed: true},
		"a listener that it does not know": {}, "with the control token": {token: "control-token-of-all"},
	} {
		t.Run(name, func(t *testing.T) {
			w, came, address := listening(t, tc.told, func(c *Config) { c.AllowPlainHTTP, c.ControlToken = true, tc.token })
			if tc.relayed {
				address = relay(t, address)
			}
			_, port, _ := net.SplitHostPort(address)
			user := w.s.FirstTokens().UserID
			for _, host := range []string{"127.0.0.1", "localhost", "LOCALHOST.", "[::ffff:127.0.0.1]", "0.0.0.0", "[::ffff:7f00:1]"} {
				for _, path := range []string{"/_control/reset", "/_control/", "/_control/journal/calls", fmt.Sprintf("/_control/users/%d/token", user), "/_control/clock", "/metrics"} {
					body := customDestination("http://" + host + ":" + port + path)
					if tc.token != "" {
						body["service_connection"].(map[string]any)["credentials"].(map[string]any)["auth_token"] = tc.token
					}
					a := w.do("POST", "/destinations", w.key, body)
					if a.code == http.StatusCreated {
						require.Equal(t, false, a.at("data.last_test_succeeded"), string(a.text))
						continue
					}
					a.want(400)
					require.Contains(t, a.problems()["service_connection.credentials.webhook_url"], "does not call itself", string(a.text))
				}
			}
			for _, call := range came.all() {
				require.False(t, tc.told && !tc.relayed, "%+v", call)
				if strings.Contains(call.path, "_control") {
					require.Equal(t, 403, call.code, "%+v", call)
				}
				require.Equal(t, "service", call.mark, "%+v", call)
			}
			require.Equal(t, tc.told && !tc.relayed, len(came.all()) == 0)
		})
	}
}

// TestOutboundCallsAreMarked: each call of the service is marked as one, and no
// custom header replaces the mark.
func TestOutboundCallsAreMarked(t *testing.T) {
	sim := must(destsim.New(destsim.Config{Preset: "crm", Token: "destination-token"}))(t)
	defer sim.Close()
	var calls, hooks arrivals
	w := newWorld(t)
	w.sim, w.dest = sim, httptest.NewServer(calls.watch(sim))
	defer w.dest.Close()
	hook := httptest.NewTLSServer(hooks.watch(http.NotFoundHandler()))
	defer hook.Close()
	w.control("POST", "/trust", pemOf(hook)).want(200)
	id := w.newSync()
	w.do("POST", "/webhooks", w.key, map[string]any{"name": "Hook", "endpoint": hook.URL, "events": []string{"sync.triggered"}}).want(201)
	w.begin(id)
	w.control("POST", "/settle", nil).want(200)
	for name, came := range map[string]*arrivals{"destination": &calls, "webhook": &hooks} {
		require.NotEmpty(t, came.all(), name)
		for _, call := range came.all() {
			require.Equal(t, "service", call.mark, name)
		}
	}
	body := customDestination(w.destination())
	body["service_connection"].(map[string]any)["credentials"].(map[string]any)["custom_headers"] = map[string]any{
		strings.ToLower(reach.Outbound): map[string]any{"value": "nobody", "is_secret": false},
	}
	refused := w.do("POST", "/destinations", w.key, body).want(400)
	require.Contains(t, string(refused.text), "set by the service itself")
}

// TestControlRoutesRefuseBodies: what has no body to read refuses one, before it
// does anything; what reads one is listed.
func TestControlRoutesRefuseBodies(t *testing.T) {
	w := newWorld(t)
	w.control("POST", "/organizations", nil).want(201)
	known := map[string]bool{}
	for _, route := range w.s.door.Routes() {
		key := route.Method + " " + route.Path
		known[key] = true
		if control.TakesBody[key] {
			continue
		}
		path := strings.NewReplacer("{id}", "1", "{name}", "x").Replace(route.Path)
		for _, body := range []string{`{"jsonrpc":"2.0","method":"test_connection","id":"1","params":{}}`, "x", " "} {
			a := w.control(route.Method, path, body).want(400)
			require.Contains(t, string(a.text), "takes no body", key)
		}
	}
	for key := range control.TakesBody {
		require.True(t, known[key], "there is no route %s", key)
	}
	require.Len(t, w.control("GET", "/organizations", nil).want(200).at("organizations"), 2)
}

// knocked counts the connections to a port without answers.
func knocked(t *testing.T) (*atomic.Int64, string) {
	var n atomic.Int64
	return &n, accepting(t, func(c net.Conn) { n.Add(1); _ = c.Close() })
}

// TestHostsThatAreReached: every kind of call goes by the flags, and a connection
// that is refused is none that reaches the port.
func TestHostsThatAreReached(t *testing.T) {
	for flag, tc := range map[string]struct {
		change func(*Config)
		open   bool
	}{
		"--deny-loopback": {func(c *Config) { c.DenyLoopback = true }, false},
		"--allow-hosts":   {func(c *Config) { c.AllowHosts = []string{"192.0.2.0/24", "*.example"} }, false},
		"both":            {func(c *Config) { c.AllowHosts, c.DenyLoopback = []string{"localhost", "127.0.0.1"}, true }, false},
		"neither":         {func(*Config) {}, true},
		"its own entry":   {func(c *Config) { c.AllowHosts = []string{"localhost"} }, true},
		"its address":     {func(c *Config) { c.AllowHosts = []string{"127.0.0.0/8"} }, true},
	} {
		t.Run(flag, func(t *testing.T) {
			w := newWorld(t, tc.change)
			n, address := knocked(t)
			_, port, _ := net.SplitHostPort(address)
			said := func(a *answer) {
				if !tc.open {
					require.Regexp(t, "--deny-loopback|--allow-hosts", string(a.text)+a.header.Get("Warning"))
				}
			}
			before := n.Load()
			for _, host := range []string{"127.0.0.1", "localhost"} {
				said(w.do("POST", "/destinations", w.key, customDestination("http://"+host+":"+port+"/x")))
				said(w.do("POST", "/sources", w.key, connection(map[string]any{"name": "Database " + host, "type": "postgres", "credentials": map[string]any{
					"host": host, "port": json.Number(port), "database": "d", "username": "u", "password": "p", "sslmode": "disable",
				}})).want(201))
			}
			hook := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { n.Add(1) }))
			defer hook.Close()
			w.control("POST", "/trust", pemOf(hook)).want(200)
			_, failed := w.s.gate.HookClient(hook.URL)
			require.Empty(t, failed)
			client, _ := w.s.gate.HookClient(hook.URL)
			response, err := client.Get(hook.URL)
			if err == nil {
				response.Body.Close()
			}
			require.Equal(t, tc.open, err == nil, "%v", err)
			require.Equal(t, tc.open, n.Load() > before)
		})
	}
	_, err := New(t.Context(), Config{AllowHosts: []string{"10.0.0.0/99"}})
	require.ErrorContains(t, err, "10.0.0.0/99")
}
